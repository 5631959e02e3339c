"""Many sets x methods x budgets: answers are appended as they come, and a killed run goes on where it was.

Questions are taken in fixed batches, page by page, so that an answer is the same whatever was done before: a batch of
which some answers are there is answered again, and only what was missing is added.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import torch
from filelock import FileLock, Timeout
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from homunculus.errors import InputError
from homunculus.eval.backends import Backend, EvalSample, ReaderBackend, Row, VLMBackend
from homunculus.eval.data import Item
from homunculus.eval.regions import region_samples
from homunculus.eval.settings import ORACLE, Setting
from homunculus.reader.model import MAX_NEW_TOKENS
from homunculus.reader.prompt import MAX_TOKENS
from homunculus.runtime.files import replacing

BATCH_SIZE = 16  # questions of a batch
SETTINGS_PER_PIECE = 12  # settings of what a worker is given; what it has not done when it is killed is lost

RUN = "run.json"  # what a folder of results says of its run
READER = ("finder", "scout", "recognizer", "lora")  # networks of the reader

Key = tuple[str, str, str, str, int, str]


@dataclass(frozen=True)
class Batch:
    """Questions that are answered together, in each of some settings."""

    samples: tuple[EvalSample, ...]
    settings: tuple[Setting, ...]

    def keys(self, setting: Setting) -> list[Key]:
        """The rows that a setting gives: an oracle is silent where it does not know the place."""
        known = [sample for sample in self.samples if setting.relevance != ORACLE or sample.target.boxes]
        return [key_of(sample, setting) for sample in known]


def key_of(sample: EvalSample, setting: Setting) -> Key:
    """What tells a row of results from all others."""
    return sample.item.dataset, sample.item.qid, setting.method, setting.relevance, setting.budget, sample.region


def key_in(row: Row) -> Key:
    """The same of a row."""
    return row["dataset"], row["qid"], row["allocator"], row["relevance"], row["budget"], row.get("region", "")


def plan(
    items: Sequence[Item], settings: Sequence[Setting], regions: Sequence[Setting] = (), batch_size: int = BATCH_SIZE
) -> list[Batch]:
    """Fixed batches, set by set and page by page; `regions` are the settings that are asked about other places too."""
    batches = []
    for _, group in groupby(items, key=lambda item: item.dataset):
        listed = list(group)
        samples = [EvalSample(item, item) for item in listed]
        for some, each in ((samples, settings), (region_samples(listed) if regions else [], regions)):
            batches += [Batch(tuple(some[i : i + batch_size]), tuple(each)) for i in range(0, len(some), batch_size)]
    return batches


# ---- what is kept -------------------------------------------------------------------------------------------------


class Results:
    """results.jsonl of a folder: what is there already, and more. One writer at a time.

    `config` is kept in run.json: the fingerprint of the model, and where the questions come from.
    """

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "results.jsonl"
        self.lock = FileLock(folder / ".results.lock")
        try:
            self.lock.acquire(timeout=0)
        except Timeout as error:
            raise InputError(f"another run is writing to {self.path}; wait for it or choose another --out") from error
        self.file: IO[str] = self.path.open("a", encoding="utf-8")
        known = run_config(folder)
        for name, what in (("fingerprint", "of"), ("split", "to the split")):
            if known.get(name) and config.get(name) and known[name] != config[name]:
                raise InputError(
                    f"{folder} holds answers {what} {known[name]}, not {config[name]}; choose another --out"
                )
        if not known:
            with replacing(folder / RUN) as unfinished:
                unfinished.write_text(json.dumps(config, indent=1) + "\n")
        drop_half_line(self.file, self.path)
        rows = read(self.path)
        self.done = {key_in(row) for row in rows}
        self.questions = {(row["dataset"], row["qid"]): row["question"] for row in rows}

    def add(self, rows: Iterable[Row]) -> int:
        """Append those rows that are not there, and see to it that they are on the disk; how many these are."""
        fresh = [row for row in rows if key_in(row) not in self.done]
        self.file.write("".join(map(dumped, fresh)))
        self._settle()
        self.done.update(map(key_in, fresh))
        return len(fresh)

    def close(self) -> None:
        """Let others write."""
        self.file.close()
        self.lock.release()

    def _settle(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())


def run_config(folder: Path) -> dict[str, Any]:
    """What a folder of results says of its run: `fingerprint`, `spec`, `data`, `split`, `machine`; or nothing."""
    path = folder / RUN
    return dict(json.loads(path.read_text())) if path.is_file() else {}


def dumped(row: Row) -> str:
    """A row as its line."""
    return json.dumps(row, ensure_ascii=False) + "\n"


def drop_half_line(file: IO[str], path: Path) -> None:
    """Clear away a last line that a kill cut off; `file` is `path`, opened to append to."""
    file.truncate(path.read_bytes().rfind(b"\n") + 1)


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:  # texts may hold other ends of lines
        return list(file)


def parsed(path: Path) -> list[Row]:
    """The lines of a file of them, if there is one; a line that was cut off is left out."""
    rows = []
    for line in _lines(path):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(row, dict) and line.endswith("\n"):
            rows.append(row)
    return rows


def read(path: Path) -> list[Row]:
    """The rows of a file of results, each once."""
    rows: dict[Key, Row] = {}
    for row in parsed(path):
        rows.setdefault(key_in(row), row)
    return list(rows.values())


# ---- what answers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelSpec:
    """What answers, in words, so that another process can load it too.

    Args:
        model: folder or hub id of a VLM; without one it is the reader.
        where: of the VLM's adapter, see `VLM.prepare`.
        weights: folder of the reader's weights; without one the shipped ones.
        language: folder or hub id of the reader's language model; without one that of the package.
        exact: float32 on every device.
        max_text_tokens: of the page's text that the reader's language model is given.
    """

    model: str = ""
    where: str = ""
    weights: str = ""
    language: str = ""
    device: str = "cpu"
    exact: bool = False
    max_new_tokens: int = MAX_NEW_TOKENS
    max_text_tokens: int = MAX_TOKENS

    def load(self, share: float = 1.0) -> Backend:
        """The loaded model, which may take this share of the machine."""
        if self.device.startswith("cuda"):
            torch.set_float32_matmul_precision("high")
            torch.cuda.set_per_process_memory_fraction(share)  # what one keeps beyond it, another would miss
        elif share < 1:
            torch.set_num_threads(max(1, round((os.cpu_count() or 1) * share)))
        if self.model:
            from homunculus import adapters

            return VLMBackend(adapters.load(self.model, self.device), self.where, self.max_new_tokens)
        from homunculus.reader import load_reader

        dtype = torch.float32 if self.exact else None
        weights = Path(self.weights) if self.weights else None
        reader = load_reader(weights, self.language or None, self.device, dtype)
        return ReaderBackend(reader, self.max_new_tokens, self.max_text_tokens)

    def fingerprint(self) -> dict[str, Any]:
        """What answers depend on: the model by name, the reader by the hashes of its weights."""
        if self.model:
            return {"model": self.model, "where": self.where}
        from homunculus.reader.weights import SHIPPED

        folder = Path(self.weights) if self.weights else SHIPPED
        try:
            hashes = json.loads((folder / "hashes.json").read_text())
            known = {"reader": {name: hashes[f"{name}.safetensors"] for name in READER}, "exact": self.exact}
            return known | ({"language": self.language} if self.language else {})
        except (OSError, json.JSONDecodeError, KeyError) as error:
            raise InputError(
                f"{folder} is no folder of the reader's weights: its hashes.json cannot be read"
            ) from error


def run(
    batches: Sequence[Batch],
    spec: ModelSpec,
    folder: Path,
    workers: int = 1,
    ray: bool = False,
    console: Console | None = None,
    config: dict[str, Any] | None = None,
    load: Callable[[], Backend] | None = None,
) -> list[Row]:
    """Answer all that is missing; all rows of the folder. `config` is kept in run.json beside the model.

    `load` gives the model that answers in this process, if it is not to be loaded for this run alone.
    """
    _check_settings(batches, spec)
    results = Results(folder, {"fingerprint": spec.fingerprint(), "spec": asdict(spec)} | (config or {}))
    try:
        _check_questions(batches, results)
        keys = [key for batch in batches for setting in batch.settings for key in batch.keys(setting)]
        left = [rest for batch in batches if (rest := _missing(batch, results.done)).settings]
        with _progress(len(keys), sum(key in results.done for key in keys), console) as advance:
            for rows in _answers(left, spec, workers, ray, load or spec.load) if left else ():
                advance(results.add(rows))
    finally:
        results.close()
    return read(results.path)


def _check_settings(batches: Sequence[Batch], spec: ModelSpec) -> None:
    """A wrapped model looks for itself, for each question; the reader has no visual tokens that a peer could prune."""
    for batch in batches:
        regions = any(sample.region for sample in batch.samples)
        for setting in batch.settings:
            if not spec.model and setting.is_peer:
                raise InputError(
                    f"{setting.rule} prunes visual tokens, which the reader does not give to its language model: "
                    "peers need a VLM, name one with --model"
                )
            if spec.model and (setting.degrees_off or setting.relevance == ORACLE or regions):
                raise InputError(f"oracle, off and regions are for the reader, not for a wrapped model, got {setting}")


def _check_questions(batches: Sequence[Batch], results: Results) -> None:
    for item in (sample.item for batch in batches for sample in batch.samples):
        if results.questions.get((item.dataset, item.qid), item.question) != item.question:
            raise InputError(
                f"{results.path} holds answers to another question {item.qid} of {item.dataset}; choose another --out"
            )


def _missing(batch: Batch, done: set[Key]) -> Batch:
    """The settings of a batch of which something is missing."""
    return Batch(batch.samples, tuple(s for s in batch.settings if any(key not in done for key in batch.keys(s))))


def _answers(
    left: Sequence[Batch], spec: ModelSpec, workers: int, ray: bool, load: Callable[[], Backend]
) -> Iterator[list[Row]]:
    if ray:
        from homunculus.eval.cluster import on_ray

        yield from on_ray(_pieces(left), spec, workers)
    elif workers > 1:
        from homunculus.eval.cluster import in_processes

        yield from in_processes(_pieces(left), spec, workers)
    else:
        backend = load()
        for batch in left:
            for _, rows in backend.answers(batch.samples, batch.settings):
                yield rows


def _pieces(batches: Sequence[Batch]) -> list[Batch]:
    """Batches with few settings each, for several workers: the first settings of all, then the next."""
    size = SETTINGS_PER_PIECE
    rounds = range(0, max((len(batch.settings) for batch in batches), default=0), size)
    return [Batch(batch.samples, some) for i in rounds for batch in batches if (some := batch.settings[i : i + size])]


@contextmanager
def _progress(total: int, completed: int, console: Console | None) -> Iterator[Callable[[int], None]]:
    columns = TextColumn("answers"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left")
    with Progress(*columns, TimeRemainingColumn(), console=console or Console(stderr=True)) as progress:
        bar = progress.add_task("", total=total, completed=completed)
        yield lambda count: progress.advance(bar, count)
