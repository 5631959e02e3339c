"""One loop for every network: it trains, validates, logs and saves, and goes on where a killed run was saved.

Under `torchrun` each process takes its own share of the batches.
"""

from __future__ import annotations

import ast
import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from homunculus.errors import InputError
from homunculus.reader.weights import save
from homunculus.runtime.files import replacing
from homunculus.train.config import Recipe
from homunculus.train.tasks.base import METRICS, BatchSource, Losses
from homunculus.train.tasks.registry import TASKS, task_of
from homunculus.train.trainer.distributed import rank_of
from homunculus.train.trainer.forward_backward import ForwardBackward
from homunculus.train.trainer.optim import Update, build_optimizers
from homunculus.train.trainer.plot import plot


class Trainer:
    """Trains one network by its recipe into a folder: state.pt, log.jsonl, log.png and the weights.

    Args:
        name: section of the plan.
        workers: processes that make batches.
        start: folder of weights to begin with.
    """

    def __init__(
        self, name: str, recipe: Recipe, source: BatchSource, out: Path, workers: int = 0, start: Path | None = None
    ) -> None:
        self.name, self.recipe, self.source, self.out, self.workers = name, recipe, source, out, workers
        self.rank, cuda = rank_of(), source.device.type == "cuda"
        torch.manual_seed(recipe.seed + self.rank.rank)
        self.task = task_of(name, recipe, source, start)
        self.model = self.task.model
        self.forward_backward = ForwardBackward(self.task, cuda, self.rank.world, recipe.compile)
        self.average = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.optimizers = build_optimizers(self.model, recipe)
        self.prefetch_stream = torch.cuda.Stream(priority=-1) if cuda else None
        self.step, self.best = 0, math.inf
        self.seconds, self.began = 0.0, time.monotonic()
        out.mkdir(parents=True, exist_ok=True)
        if (out / "state.pt").is_file():
            self._resume()
        weights = list(self.model.state_dict().values())
        self.update = Update(weights, list(self.average.values()), self.optimizers)
        if self.rank.world > 1:  # each process draws its own pages, all begin with the same weights
            for tensor in (*weights, *self.average.values()):
                dist.broadcast(tensor, 0)

    def run(self, seconds: float = math.inf) -> None:
        """Train to the recipe's last step, or for some seconds of this process; what is done is saved either way."""
        self.began = began = saved = time.monotonic()
        if self._progress() >= 1:
            return  # done already
        recipe, recent, pages = self.recipe, list[Losses](), 0
        with self._progress_bar() as show:
            for losses, count in self._steps():
                recent.append({name: value.detach() for name, value in losses.items()})
                pages += count
                done = self._any_process(self._progress() >= 1)
                over = self._any_process(time.monotonic() - began > seconds) or done
                if self.step % recipe.log_every == 0 or done:
                    show(self._log(recent, pages))
                    recent, pages = [], 0
                if self.step % recipe.val_every == 0 or done:
                    self._validate()
                if over or time.monotonic() - saved > recipe.save_seconds:
                    self._save()
                    saved = time.monotonic()
                if over:
                    break
        self.seconds = self._elapsed()
        self.began = time.monotonic()

    @contextmanager
    def _progress_bar(self) -> Iterator[Any]:
        """Shows the step and a note on a terminal."""
        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.fields[note]}"))
        with Progress(TextColumn(self.name), *columns, disable=self.rank.rank > 0 or not sys.stdout.isatty()) as bar:
            line = bar.add_task(self.name, total=self.recipe.steps, completed=self.step, note="")
            yield lambda note: bar.update(line, completed=self.step, note=note)

    def _any_process(self, value: bool) -> bool:
        """Whether it is so in any process: clocks differ, and nobody may wait for one that has stopped."""
        if self.rank.world == 1:
            return value
        flag = torch.tensor(float(value), device=self.source.device)
        dist.all_reduce(flag, dist.ReduceOp.MAX)
        return bool(flag)

    def _steps(self) -> Iterator[tuple[Losses, int]]:
        """Takes steps for ever; yields the losses of each and how many of its pages were new."""
        batches = self.source.train_batches(self.task, self.recipe, self.step, self.rank, self.workers)
        batch, count = self._prefetch(batches)
        while True:
            losses = self.forward_backward.gradients(batch, self.recipe.loss_weights)
            self.update(self._lr(), min(self.recipe.ema, (self.step + 1) / (self.step + 10)))
            self.step += 1
            new = count
            batch, count = self._prefetch(batches)
            yield losses, new

    def _prefetch(self, batches: Iterator[tuple[list[Tensor], int]]) -> tuple[list[Tensor], int]:
        """The next batch, made on a stream of its own while the GPU still works on the last."""
        if self.prefetch_stream is None:
            return next(batches)
        main = torch.cuda.current_stream()
        with torch.cuda.stream(self.prefetch_stream):
            batch, count = next(batches)
        main.wait_stream(self.prefetch_stream)
        for tensor in batch:
            if tensor.is_cuda:
                tensor.record_stream(main)
        return batch, count

    def _lr(self) -> float:
        """Learning rate: up in a line, down in a cosine."""
        recipe, warmup = self.recipe, min(1.0, (self.step + 1) / max(1, self.recipe.warmup))
        return recipe.lr * warmup * (0.51 + 0.49 * math.cos(math.pi * self._progress()))

    def _progress(self) -> float:
        """How much of the run is done, from 0 to 1: by its clock, or by its steps."""
        if self.recipe.seconds:
            return min(1.0, self._elapsed() / self.recipe.seconds)
        return min(1.0, self.step / max(1, self.recipe.steps))

    def _elapsed(self) -> float:
        """Seconds of training, those of earlier processes included."""
        return self.seconds + time.monotonic() - self.began

    @torch.no_grad()
    def _validate(self) -> None:
        """Log the losses of the averaged weights on validation pages; keep the weights if they are the best so far."""
        torch_state, task_state = torch.get_rng_state(), self.task.rng.getstate()
        self.task.rng.seed(1)
        torch.manual_seed(1)
        values: dict[str, list[float]] = {}
        with self._averaged():
            for batch in self.source.val_batches(self.task, self.recipe):
                for name, value in self.forward_backward.losses(batch).items():
                    values.setdefault(f"val_{name}", []).append(float(value))
        torch.set_rng_state(torch_state)
        self.task.rng.setstate(task_state)
        if not values:
            return
        means = {name: sum(found) / len(found) for name, found in values.items()}
        self._write({"step": self.step} | means)
        metric = means[f"val_{TASKS[self.name].metric}"]
        if metric < self.best and self.rank.rank == 0:
            self.best = metric
            self._save_weights("best")

    def _log(self, recent: list[Losses], pages: int) -> str:
        """Log the means of recent steps; returns them as a note."""
        names = dict.fromkeys(name for row in recent for name in row)  # not every kind of step has every loss
        means = {k: round(float(torch.stack([row[k].float() for row in recent if k in row]).mean()), 4) for k in names}
        if any(not math.isfinite(v) for k, v in means.items() if k not in METRICS):
            raise InputError(f"{self.name} diverged at step {self.step}: {means}; lower lr and start again")
        head = {"step": self.step, "seconds": round(self._elapsed(), 1), "pages": pages, "lr": self._lr()}
        self._write(head | means)
        return " ".join(f"{k} {v:.3f}" for k, v in means.items())

    def _write(self, row: dict[str, Any]) -> None:
        if self.rank.rank == 0:
            with (self.out / "log.jsonl").open("a") as log:
                log.write(json.dumps(row) + "\n")
            if not sys.stdout.isatty():
                print(f"{self.name} {json.dumps(row)}", flush=True)

    def _save(self) -> None:
        if self.rank.rank:
            return
        state = {
            "recipe": asdict(self.recipe),
            "model": self.model.state_dict(),
            "average": self.average,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "step": self.step,
            "best": self.best,
            "seconds": self._elapsed(),
            "torch_rng": torch.get_rng_state(),
            "task_rng": repr(self.task.rng.getstate()),
        }
        with replacing(self.out / "state.pt") as unfinished:
            torch.save(state, unfinished)
        self._save_weights("last")
        plot(self.out / "log.jsonl", self.out / "log.png")

    def _resume(self) -> None:
        state = torch.load(self.out / "state.pt", map_location=self.source.device, weights_only=True)
        if state["recipe"]["sizes"] != self.recipe.sizes:
            raise InputError(f"{self.out} holds a run of another network size; choose another --out")
        self.model.load_state_dict(state["model"])
        self.average = state["average"]
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.best, self.seconds = state["step"], state["best"], state["seconds"]
        torch.set_rng_state(state["torch_rng"].cpu())
        self.task.rng.setstate(ast.literal_eval(state["task_rng"]))

    def _save_weights(self, which: str) -> None:
        """Write the averaged weights in full precision."""
        header = {"network": self.name, "sizes": self.recipe.sizes, "step": self.step, "recipe": asdict(self.recipe)}
        with self._averaged():
            save(self.model, self.out / f"{which}.safetensors", header | self.task.header, int8=False)

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """The model with its averaged weights for a while."""
        now = {k: v.clone() for k, v in self.model.state_dict().items()}
        self.model.load_state_dict(self.average)
        try:
            yield
        finally:
            self.model.load_state_dict(now)
