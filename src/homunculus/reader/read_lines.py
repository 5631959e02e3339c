"""What one look at a page could read: its lines, as numbers and as a picture."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from homunculus.eye import Glance, save
from homunculus.reader.lines import Line

if TYPE_CHECKING:
    from PIL import Image

    from homunculus.reader.session import Page


@dataclass(frozen=True, eq=False)
class ReadLines:
    """Lines that a look shows legibly, from top to bottom; boxes are in pixels of the image as it was given."""

    lines: tuple[Line, ...]
    glance: Glance
    page: Page

    @property
    def visual_tokens(self) -> int:
        """Tokens spent on the image."""
        return int(self.glance.selection.mask.sum())

    def to_dict(self) -> dict[str, Any]:
        """The glance's entries with the lines, ready for JSON."""
        lines = [
            {"text": line.text, "box": list(line.box), "confidence": round(line.confidence, 4), "level": line.level}
            for line in self.lines
        ]
        return glance_as_given(self.glance, self.page) | {"lines": lines, "visual_tokens": self.visual_tokens}

    def to_json(self) -> str:
        """`to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False) + "\n"

    def picture(self, caption: str = "") -> Image.Image:
        """The picture of the glance with frames around the lines that were read."""
        from homunculus.viz import picture

        upright = [] if self.page.turns else [line.box for line in self.lines]
        return picture(self.glance, caption, upright)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture (.png, .jpg, .webp) or the numbers (.json)."""
        save(self, path)


def glance_as_given(glance: Glance, page: Page) -> dict[str, Any]:
    """The glance's entries, with boxes and fixations in pixels of the image as it was given."""
    looked = glance.to_dict()
    if not page.turns:
        return looked
    tokens = [token | {"box": list(page.box_as_given(token["box"]))} for token in looked["tokens"]]
    places = [list(page.box_as_given((x, y, x, y))[:2]) for x, y in looked["fixations"]]
    size = {"width": page.shape[1], "height": page.shape[0]}
    return looked | {"image": size, "tokens": tokens, "fixations": places}
