"""Which network learns what, by the section of a plan that names it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from homunculus.errors import InputError
from homunculus.reader import load_scout
from homunculus.reader.bridge import Bridge, sizes_of
from homunculus.reader.encoder import Encoder
from homunculus.reader.scout import Scout
from homunculus.reader.weights import SHIPPED, checked, load
from homunculus.train.answering import Joint, ReaderTask
from homunculus.train.losses import EncoderTask, ScoutTask
from homunculus.train.recipe import Recipe
from homunculus.train.work import Task

if TYPE_CHECKING:
    from homunculus.train.loop import Pages

MAIN = {"encoder": "read", "scout": "find"}  # the loss that tells when to stop; that of answers for the reader


def task_of(name: str, recipe: Recipe, pages: Pages, start: Path | None) -> Task:
    """What the section of this name trains, from the weights in a folder if one is given."""
    try:
        return BUILD.get(name, _reader)(recipe, pages, start).to(pages.device)
    except TypeError as error:
        raise InputError(f"{name}.sizes does not fit the network: {error}") from error


def _encoder(recipe: Recipe, _: Pages, start: Path | None) -> Task:
    encoder = Encoder(**recipe.sizes)
    if start is not None:
        load(encoder, checked(start, "encoder"))
    return EncoderTask(encoder, seed=recipe.seed)


def _scout(recipe: Recipe, _: Pages, start: Path | None) -> Task:
    scout = Scout(**recipe.sizes)
    if start is not None:
        load(scout, checked(start, "scout"))
    return ScoutTask(scout)


def _reader(recipe: Recipe, pages: Pages, start: Path | None) -> Task:
    """A stage of the reader: from another stage's run, from a folder of weights, or from the shipped encoder alone."""
    language, folder = pages.language, start or SHIPPED
    joint = Joint(Bridge(**(sizes_of(language.model) | recipe.sizes)), Encoder())
    if (folder / "last.safetensors").is_file():
        load(joint, folder / "last.safetensors")
    else:
        load(joint.encoder, checked(folder, "encoder"))
        if start is not None and (folder / "bridge.safetensors").is_file():  # else a new one
            load(joint.bridge, checked(folder, "bridge"))
    joint.encoder.requires_grad_(recipe.encoder > 0)
    own = replace(language, model=copy.deepcopy(language.model))  # the next stage wants it as it was
    return ReaderTask(joint, own, load_scout(pages.scout, pages.device), recipe.told, recipe.dictated, recipe.seed)


BUILD: dict[str, Callable[[Recipe, Pages, Path | None], Task]] = {"encoder": _encoder, "scout": _scout}
