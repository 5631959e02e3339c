"""The same evaluation by several processes of a machine, or by a Ray cluster; each has its own model."""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any

from homunculus.errors import InputError

if TYPE_CHECKING:
    from homunculus.eval.backends import Backend, Row
    from homunculus.eval.runner import Batch, ModelSpec

_backend: Backend | None = None


def _begin(spec: ModelSpec, share: float) -> None:
    global _backend
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _backend = spec.load(share)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # workers have one
    parent.join()
    os._exit(1)


def _answer(batch: Batch) -> list[Row]:
    assert _backend is not None  # `_begin` ran first
    return [row for _, rows in _backend.answers(batch.samples, batch.settings) for row in rows]


def in_processes(batches: Sequence[Batch], spec: ModelSpec, workers: int) -> Iterator[list[Row]]:
    """Rows of batches as they are done, by so many processes."""
    fresh = multiprocessing.get_context("spawn")  # a GPU cannot be shared with a fork
    with ProcessPoolExecutor(workers, fresh, _begin, (spec, 1 / workers)) as pool:
        futures = [pool.submit(_answer, batch) for batch in batches]
        try:
            for done in as_completed(futures):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def on_ray(batches: Sequence[Batch], spec: ModelSpec, workers: int) -> Iterator[list[Row]]:
    """The same on the Ray cluster that this machine belongs to, or on one of its own."""
    try:
        import ray
        from ray.util import ActorPool
    except ImportError as error:
        raise InputError("--ray needs Ray: pip install 'homunculus[ray]'") from error

    class Actor:
        def __init__(self, share: float) -> None:
            self.backend = spec.load(share)

        def answer(self, batch: Batch) -> list[Row]:
            return [row for _, rows in self.backend.answers(batch.samples, batch.settings) for row in rows]

    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False, include_dashboard=False, configure_logging=False)
    try:
        has, on_gpu = ray.cluster_resources(), spec.device.startswith("cuda")
        cpus, gpus = (_each(has.get(name, 0.0), workers) for name in ("CPU", "GPU"))
        if on_gpu and not gpus:
            raise InputError(f"the Ray cluster has no GPU for --device {spec.device}")
        remote: Any = ray.remote(num_cpus=cpus, num_gpus=gpus if on_gpu else 0.0)(Actor)
        pool: Any = ActorPool([remote.remote(gpus if on_gpu else 1 / workers) for _ in range(workers)])
        yield from pool.map_unordered(lambda actor, batch: actor.answer.remote(batch), list(batches))
    finally:
        if started:
            ray.shutdown()


def _each(count: float, workers: int) -> float:
    """What each worker takes of GPUs or cores, at most 1, so that all find room: Ray would wait for others for ever."""
    return math.floor(1e4 / math.ceil(workers / count)) / 1e4 if count else 0.0
