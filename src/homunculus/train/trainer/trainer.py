"""One loop for every network: batches in, losses down, nothing lost when it is killed.

bf16, compiled layers, a moving average of the weights, a look at held-back pages now and then; the state is saved as it
goes and found again at the next start. Under `torchrun` each process takes its own share of the batches.
"""

from __future__ import annotations

import ast
import json
import math
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn

from homunculus.errors import InputError
from homunculus.reader.weights import save
from homunculus.runtime.files import replacing
from homunculus.train.config import DataSources, Recipe
from homunculus.train.pages import Draft, Sheets, draw, to
from homunculus.train.scans.scans import Placed, Scans, photos
from homunculus.train.synth.atlas import Atlas
from homunculus.train.synth.rasterize import Glyphs
from homunculus.train.synth.text import Texts
from homunculus.train.tasks.page_stream import Stream
from homunculus.train.tasks.registry import MAIN, task_of
from homunculus.train.trainer.optim import Muon, Update
from homunculus.train.trainer.plot import plot
from homunculus.train.trainer.step import FIGURES, LAYERS, Losses, Share, SheetTask, Task, Work

if TYPE_CHECKING:
    from homunculus.train.tasks.registry import Feed

HELD_BATCHES = 6


class Pages:
    """All that training pages are made of, on one device."""

    def __init__(self, sources: DataSources, device: torch.device) -> None:
        self.atlas = Atlas.load(Path(sources.atlas)) if sources.atlas else Atlas.builtin()
        self.texts = Texts.load(Path(sources.texts), 0) if sources.texts else Texts.builtin(0)
        folders = [Path(folder) for folder in sources.scans]
        self.scans = Scans(folders, device) if folders else None
        self.held = Scans(folders, device, held=True) if folders else None
        self.photos = photos(Path(sources.photos)).to(device) if sources.photos else None
        self.glyphs, self.device = Glyphs.of(self.atlas, device), device

    def lessons(
        self, task: Task, recipe: Recipe, step: int, share: Share, workers: int
    ) -> Iterator[tuple[list[Tensor], int]]:
        """What each step learns from, and how many pages it is the first to see: a batch serves several steps."""
        assert isinstance(task, SheetTask)
        first = step // recipe.looks * share.world + share.rank
        stream = Stream(recipe, self.atlas, self.texts, self.scans, first, share.world)
        for batch in stream.loader(workers):
            sheets = self.sheets(batch, recipe.hard)
            for look in range(recipe.looks):
                yield task.prepare(sheets), 0 if look else len(sheets.pixels)

    def held_lessons(self, task: Task, recipe: Recipe) -> Iterator[list[Tensor]]:
        """Lessons of pages held back."""
        assert isinstance(task, SheetTask)
        for n in range(HELD_BATCHES if self.held is not None else 0):
            assert self.held is not None
            canvas = recipe.canvases[n % len(recipe.canvases)]
            size = canvas.height, canvas.width
            placed = self.held.draft(canvas.batch, size, random.Random(n), asks=recipe.asks, crops=recipe.crops)
            yield task.prepare(self.sheets(placed, held=True))

    def sheets(self, batch: Draft | Placed, hard: float = 1.0, held: bool = False) -> Sheets:
        """A laid-out batch as pixels and labels on the device."""
        batch = to(batch, self.device)
        if isinstance(batch, Draft):
            return draw(batch, self.glyphs, self.photos, hard)
        scans = self.held if held else self.scans
        assert scans is not None
        return scans.show(batch, 0.0 if held else 0.5 * hard)


class Trainer:
    """Trains one network by its recipe into a folder: state.pt, log.jsonl, log.png and the weights."""

    def __init__(
        self, name: str, recipe: Recipe, pages: Feed, out: Path, workers: int = 0, start: Path | None = None
    ) -> None:
        self.name, self.recipe, self.pages, self.out, self.workers = name, recipe, pages, out, workers
        self.rank, self.world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        device = pages.device
        torch.manual_seed(recipe.seed + self.rank)
        self.task = task_of(name, recipe, pages, start)
        self.model: nn.Module = self.task.model
        self.work = Work(self.task, device.type == "cuda", self.world, recipe.compile)
        self.average = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.tensors = list(self.model.state_dict().values())
        self.optimizers = _optimizers(self.model, recipe)
        self.aside = torch.cuda.Stream(priority=-1) if device.type == "cuda" else None
        self.step, self.best = 0, math.inf
        self.seconds, self.began = 0.0, time.monotonic()
        out.mkdir(parents=True, exist_ok=True)
        if (out / "state.pt").is_file():
            self._resume()
        self.update = Update(self.tensors, list(self.average.values()), self.optimizers)
        if self.world > 1:  # each process draws its own pages, all begin with the same weights
            for tensor in (*self.tensors, *self.average.values()):
                dist.broadcast(tensor, 0)

    def run(self, until: float = math.inf) -> None:
        """Train to the recipe's last step, or for `until` seconds of this process; what is done is saved either way."""
        recipe = self.recipe
        self.began = began = saved = time.monotonic()
        if self._part() >= 1:
            return  # done already
        lessons = self.pages.lessons(self.task, recipe, self.step, Share(self.rank, self.world), self.workers)
        figures = TextColumn("{task.fields[note]}")
        columns = (TextColumn(self.name), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), figures)
        with Progress(*columns, disable=self.rank > 0 or not sys.stdout.isatty()) as progress:
            bar = progress.add_task(self.name, total=recipe.steps, completed=self.step, note="")
            recent: list[Losses] = []
            pages = 0
            for losses, count in self._steps(lessons):
                recent.append({name: value.detach() for name, value in losses.items()})
                pages += count
                done, over = self._agreed(self._part() >= 1), self._agreed(time.monotonic() - began > until)
                if self.step % recipe.log_every == 0 or done:
                    note = self._log(recent, pages, self.seconds + time.monotonic() - began)
                    progress.update(bar, completed=self.step, note=note)
                    recent, pages = [], 0
                if self.step % recipe.held_every == 0 or done:
                    self._look_at_held()
                over = over or done
                if over or time.monotonic() - saved > recipe.save_seconds:
                    self._save(self.seconds + time.monotonic() - began)
                    saved = time.monotonic()
                if over:
                    break
        self.seconds += time.monotonic() - began

    def _agreed(self, wish: bool) -> bool:
        """Whether any process wishes it: clocks differ, and nobody may wait for one that has stopped."""
        if self.world == 1:
            return wish
        say = torch.tensor(float(wish), device=self.pages.device)
        dist.all_reduce(say, dist.ReduceOp.MAX)
        return bool(say)

    def _steps(self, lessons: Iterator[tuple[list[Tensor], int]]) -> Iterator[tuple[Losses, int]]:
        """Take steps for ever; yields the losses of each and how many pages it was the first to see."""
        lesson, count = self._ahead(lessons)
        while True:
            losses = self.work.gradients(lesson, self.recipe.weights)
            self.update(self._rate(), 1 - min(self.recipe.ema, (self.step + 1) / (self.step + 10)))
            self.step += 1
            seen = count
            lesson, count = self._ahead(lessons)
            yield losses, seen

    def _ahead(self, lessons: Iterator[tuple[list[Tensor], int]]) -> tuple[list[Tensor], int]:
        """The next lesson, made on a stream of its own while the GPU still works on the last."""
        if self.aside is None:
            return next(lessons)
        main = torch.cuda.current_stream()
        with torch.cuda.stream(self.aside):
            lesson, count = next(lessons)
        main.wait_stream(self.aside)
        for tensor in lesson:
            if tensor.is_cuda:
                tensor.record_stream(main)
        return lesson, count

    def _rate(self) -> float:
        """Learning rate: up in a line, down in a cosine."""
        recipe = self.recipe
        part = self._part()
        return recipe.lr * min(1.0, (self.step + 1) / max(1, recipe.warmup)) * (0.51 + 0.49 * math.cos(math.pi * part))

    def _part(self) -> float:
        """How much of the run is done, from 0 to 1: by its clock, or by its steps."""
        if self.recipe.seconds:
            return min(1.0, (self.seconds + time.monotonic() - self.began) / self.recipe.seconds)
        return min(1.0, self.step / max(1, self.recipe.steps))

    @torch.no_grad()
    def _look_at_held(self) -> None:
        """Losses of the averaged weights on pages held back; the best so far are kept."""
        state, lots = torch.get_rng_state(), self.task.rng.getstate()
        self.task.rng.seed(1)
        torch.manual_seed(1)
        total: dict[str, list[float]] = {}
        with self._averaged():
            for lesson in self.pages.held_lessons(self.task, self.recipe):
                for name, value in self.work.losses(lesson).items():
                    total.setdefault(f"held_{name}", []).append(float(value))
        torch.set_rng_state(state)
        self.task.rng.setstate(lots)
        if not total:
            return
        means = {name: sum(values) / len(values) for name, values in total.items()}
        self._write({"step": self.step} | means)
        main = means[f"held_{MAIN[self.name]}"]
        if main < self.best and self.rank == 0:
            self.best = main
            self._weights("best")

    def _log(self, recent: list[Losses], pages: int, seconds: float) -> str:
        """Note the means of recent steps."""
        names = dict.fromkeys(name for row in recent for name in row)  # not every kind of step has every loss
        figures = {
            k: round(float(torch.stack([row[k].float() for row in recent if k in row]).mean()), 4) for k in names
        }
        if any(not math.isfinite(v) for k, v in figures.items() if k not in FIGURES):
            raise InputError(f"{self.name} diverged at step {self.step}: {figures}; lower lr and start again")
        self._write({"step": self.step, "seconds": round(seconds, 1), "pages": pages, "lr": self._rate()} | figures)
        return " ".join(f"{k} {v:.3f}" for k, v in figures.items())

    def _write(self, row: dict[str, Any]) -> None:
        if self.rank == 0:
            with (self.out / "log.jsonl").open("a") as log:
                log.write(json.dumps(row) + "\n")
            if not sys.stdout.isatty():
                print(f"{self.name} {json.dumps(row)}", flush=True)

    def _save(self, seconds: float) -> None:
        if self.rank:
            return
        with replacing(self.out / "state.pt") as unfinished:
            torch.save(
                {
                    "recipe": asdict(self.recipe),
                    "model": self.model.state_dict(),
                    "average": self.average,
                    "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
                    "step": self.step,
                    "best": self.best,
                    "seconds": seconds,
                    "random": torch.get_rng_state(),
                    "lots": repr(self.task.rng.getstate()),
                },
                unfinished,
            )
        self._weights("last")
        plot(self.out / "log.jsonl", self.out / "log.png")

    def _resume(self) -> None:
        state = torch.load(self.out / "state.pt", map_location=self.pages.device, weights_only=True)
        if state["recipe"]["sizes"] != self.recipe.sizes:
            raise InputError(f"{self.out} holds a run of another network size; choose another --out")
        self.model.load_state_dict(state["model"])
        self.average = state["average"]
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.step, self.best, self.seconds = state["step"], state["best"], state["seconds"]
        torch.set_rng_state(state["random"].cpu())
        self.task.rng.setstate(ast.literal_eval(state["lots"]))

    def _weights(self, which: str) -> None:
        """Write the averaged weights in full precision."""
        header = {"network": self.name, "sizes": self.recipe.sizes, "step": self.step, "recipe": asdict(self.recipe)}
        header |= self.task.about
        with self._averaged():
            save(self.model, self.out / f"{which}.safetensors", header, int8=False)

    @contextmanager
    def _averaged(self) -> Iterator[None]:
        """The model with its averaged weights for a while."""
        now = {k: v.clone() for k, v in self.model.state_dict().items()}
        self.model.load_state_dict(self.average)
        try:
            yield
        finally:
            self.model.load_state_dict(now)


def _optimizers(model: nn.Module, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside layers and AdamW for the rest, or AdamW for all."""
    fast = next(model.parameters()).is_cuda
    inside = {id(p) for m in model.modules() if isinstance(m, LAYERS) for p in m.parameters() if p.ndim == 2}
    inside = inside if recipe.optimizer == "muon" else set()
    matrices: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    learned = [p for p in model.parameters() if p.requires_grad]
    rest = [p for p in learned if id(p) not in inside]
    matrices.append({"params": [p for p in learned if id(p) in inside], "pace": 1.5})
    others.append({"params": [p for p in rest if p.ndim >= 2], "weight_decay": recipe.weight_decay, "pace": 1.0})
    others.append({"params": [p for p in rest if p.ndim < 2], "weight_decay": 0.0, "pace": 1.0})
    matrices, others = ([group for group in groups if group["params"]] for groups in (matrices, others))
    adam = torch.optim.AdamW(others, lr=recipe.lr, betas=(0.9, 0.98), fused=fast, capturable=fast)
    return [Muon(matrices, recipe.lr, recipe.weight_decay), adam] if matrices else [adam]


def set_up(device: str) -> torch.device:
    """The device to train on; joins the other processes when started by torchrun."""
    if int(os.environ.get("WORLD_SIZE", 1)) > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
    if device == "cuda":
        if not torch.cuda.is_available():
            raise InputError("this machine has no CUDA device; use --device cpu")
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    if device != "cpu":
        raise InputError(f"device must be cuda or cpu, got {device!r}")
    return torch.device(device)


def take_down() -> None:
    """Leave the other processes."""
    if dist.is_initialized():
        dist.destroy_process_group()
