"""What one look at one image gives: the chosen cells, as pixels, a picture and numbers."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from homunculus import tokens
from homunculus.cells import CellTree, Selection
from homunculus.errors import InputError
from homunculus.relevance import Scene
from homunculus.runtime.files import replacing

if TYPE_CHECKING:
    from PIL import Image

PICTURES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP", ".tif": "TIFF", ".tiff": "TIFF"}


@dataclass(frozen=True, eq=False)
class Glance:
    """One look at one image.

    Shape:
        selection of batch 1; fixations [F, 2] in pixels, first look first; relevance [N] over scene.tree; cells uint8
        [K, 3, cell, cell] of a selection in rows.
    """

    question: str
    allocator: str
    budget: int
    selection: Selection
    fixations: Tensor
    relevance: Tensor
    scene: Scene
    cells: Tensor | None = None  # where they were cut out together with the choice

    @property
    def tree(self) -> CellTree:
        """The cells that could be chosen."""
        return self.scene.tree

    def patches(self) -> Tensor:
        """What a model reads: uint8 [K, 3, cell, cell], in the order of the selection."""
        return tokens.patches(self.scene.levels, self.selection)[0] if self.cells is None else self.cells

    def in_rows(self) -> Glance:
        """The same look with its cells as one reads them."""
        return self if self.cells is not None else replace(self, selection=self.selection.in_rows())

    def reconstruct(self, at: int = 0) -> Tensor:
        """The image as these tokens still know it, scaled by 2^-at. uint8 [3, h, w]"""
        return tokens.reconstruct(self.scene.levels, self.selection, at)[0].to(torch.uint8)

    def token_relevance(self) -> Tensor:
        """Relevance of each chosen cell; off the tree, of the tree's cell that lies under its centre. [K]"""
        if self.selection.indices is not None:
            return self.relevance[self.selection.indices[0]]
        level = self.selection.levels[0].round().long().clamp(max=self.tree.levels - 1)
        places = torch.stack([self.tree.locate(self.selection.centre, l)[0] for l in range(self.tree.levels)])
        return self.relevance[places.gather(0, level[None])[0]]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain numbers and text, ready for JSON; boxes in pixels of the original image."""
        entries = zip(
            self.selection.boxes[0].tolist(),
            self.selection.levels[0].tolist(),
            self.token_relevance().tolist(),
            strict=True,
        )
        return {
            "image": {"width": self.tree.width, "height": self.tree.height},
            "question": self.question,
            "allocator": self.allocator,
            "budget": self.budget,
            "fixations": self.fixations.tolist(),
            "coverage": float(self.selection.coverage()[0]),
            "tokens": [{"box": box, "level": level, "relevance": r} for box, level, r in entries],
        }

    def to_json(self) -> str:
        """`to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False) + "\n"

    def picture(self) -> Image.Image:
        """The page with the chosen cells and the fixations, and beside it what a model will see."""
        from homunculus.viz import picture

        return picture(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture (.png, .jpg, .webp) or the numbers (.json)."""
        save(self, path)


class Saveable(Protocol):
    """What can be saved as a picture or as numbers."""

    def picture(self) -> Image.Image:
        """The picture."""
        ...

    def to_json(self) -> str:
        """The numbers."""
        ...


def save(what: Saveable, path: str | os.PathLike[str]) -> None:
    """Write a picture (.png, .jpg, .webp) or numbers (.json), as the name ends."""
    ending = Path(path).suffix.lower()
    if ending not in (".json", *PICTURES):
        raise InputError(f"cannot write {path}: its ending must be .json or one of {', '.join(PICTURES)}")
    with replacing(path) as unfinished:
        if ending == ".json":
            unfinished.write_text(what.to_json())
        else:
            what.picture().save(unfinished, format=PICTURES[ending])
