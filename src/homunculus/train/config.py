"""Training plans: TOML files of data sources and recipes, checked before anything starts."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from homunculus.errors import InputError

T = TypeVar("T")
EYE, STAGES = ("encoder", "scout"), ("finder", "recognizer", "vision", "answer", "photo")
SECTIONS = (*EYE, *STAGES)


@dataclass(frozen=True)
class DataSources:
    """Where pages come from; without an atlas and texts the built-in ones are used, without scans only drawn pages."""

    atlas: str = ""
    texts: str = ""
    scans: list[str] = field(default_factory=list)  # folders with questions.jsonl, words.jsonl, images/
    photos: str = ""  # a folder of photographs for backgrounds
    transcripts: str = ""  # what the recogniser reads on the scans, see `homunculus train transcripts`
    images: list[str] = field(default_factory=list)  # folders of photographs with images/ (vision)
    weights: str = ""  # folder of the shipped weights that photo builds on
    teacher: str = ""  # ONNX file of the vision encoder's teacher; empty for the one of the package
    language: str = ""  # folder or hub id of the language model; empty for the one of the package
    workers: int = 0  # processes that lay out pages


@dataclass(frozen=True)
class Canvas:
    """Pages of one size: how many at a time, and how often this size is drawn."""

    height: int
    width: int
    batch: int
    weight: float = 1.0


@dataclass(frozen=True)
class Recipe:
    """How one network is trained."""

    steps: int
    canvases: list[Canvas] = field(default_factory=list)
    batch: int = 16  # crops, strips of 512 pixels, or 1,024 tokens of text (finder, recognizer, answer)
    seconds: float = 0.0  # where above 0, the clock ends the run and its schedule; steps are then an estimate
    crops: bool = False  # whether scans larger than a canvas may be cut
    lr: float = 1e-3  # of AdamW; Muon's is half as much again
    warmup: int = 200
    weight_decay: float = 0.02
    optimizer: str = "muon"  # or "adamw"
    real: float = 0.0  # share of batches that are real scans
    real_final: float = 0.0  # the same in the final part of the run
    final_fraction: float = 0.3  # how long that part is
    compile: bool = True  # layers by torch.compile, on a GPU
    kinds: dict[str, float] = field(default_factory=dict)  # how often each kind of document is drawn
    degrade: float = 1.0  # how often pages are degraded: blur, noise, JPEG ...
    steps_per_batch: int = 1  # steps taken on each batch of pages (encoder, scout)
    questions: int = 8  # about each page (scout)
    mix: dict[str, float] = field(default_factory=dict)  # how often each set is drawn (finder, recognizer, answer)
    order: str = "question-first"  # of the prompt, or "page-first" (answer)
    max_text_tokens: list[int] = field(default_factory=list)  # of a page's text, drawn at random (answer)
    ema: float = 0.999
    loss_weights: dict[str, float] = field(default_factory=dict)  # 1 unless named
    sizes: dict[str, Any] = field(default_factory=dict)  # of the network, where not the default ones
    log_every: int = 50
    val_every: int = 1000
    save_seconds: float = 120.0
    seed: int = 0


@dataclass(frozen=True)
class TrainingPlan:
    """A whole file: sources, and a recipe for each network that is trained."""

    sources: DataSources
    recipes: dict[str, Recipe]


def read_plan(path: Path, **changes: Any) -> TrainingPlan:
    """Read a plan; relative paths in it start where the command is given. `changes` go into every recipe."""
    try:
        with path.open("rb") as file:
            raw = tomllib.load(file)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is no TOML file: {error}") from error
    unknown = raw.keys() - {"sources", *SECTIONS}
    if unknown:
        raise InputError(f"{path}: unknown section {sorted(unknown)[0]!r}; known: sources, {', '.join(SECTIONS)}")
    recipes = {name: _recipe(path, name, raw[name] | changes) for name in SECTIONS if name in raw}
    return TrainingPlan(_made(DataSources, path, "sources", raw.get("sources", {})), recipes)


def _recipe(path: Path, name: str, entries: dict[str, Any]) -> Recipe:
    canvases = [_made(Canvas, path, f"{name}.canvases", canvas) for canvas in entries.get("canvases", [])]
    missing = not canvases and name != "answer"
    if missing or any(c.height % 32 or c.width % 32 for c in canvases):
        raise InputError(f"{path}: {name}.canvases must be given, with sides that divide by 32")
    return _made(Recipe, path, name, entries | {"canvases": canvases})


def _made(kind: type[T], path: Path, section: str, entries: dict[str, Any]) -> T:
    names = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(entries.keys() - names)
    if unknown:
        raise InputError(f"{path}: {section} has no entry {unknown[0]!r}; known: {', '.join(sorted(names))}")
    try:
        made = kind(**entries)
    except TypeError as error:
        raise InputError(f"{path}: {section}: {error}") from error
    for name in entries:
        expected, given = str(kind.__annotations__[name]).split("[")[0], entries[name]
        if type(given).__name__ not in (expected, "int" if expected == "float" else expected):
            raise InputError(f"{path}: {section}.{name} must be of type {expected}, got {given!r}")
    return made
