"""Write a tiled TIFF of any size with legible labels at known places, in strips: memory does not grow with it.

python tools/draw_giant.py out/giant.tif --side 32768
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyvips
from PIL import Image, ImageDraw, ImageFont

LETTERS = 30  # pixels: the size of the type
PATCH = 1024  # side of the texture that is repeated
FIELDS = 48  # rectangles of other colours, which compete with the labels
PLACES = {  # text: where its label begins, in shares of the side
    "SAMPLE 4711": (0.2137, 0.3391),
    "North gate 58 m": (0.7712, 0.1283),
    "Batch 2031-B": (0.5523, 0.8017),
}


@dataclass(frozen=True)
class Label:
    """A text and its box in pixels."""

    text: str
    box: tuple[int, int, int, int]

    @property
    def middle(self) -> tuple[float, float]:
        """A place to look at."""
        return (self.box[0] + self.box[2]) / 2, (self.box[1] + self.box[3]) / 2


def draw(path: Path, side: int, pyramid: bool = True, tile: int = 256, labels: int = len(PLACES)) -> list[Label]:
    """Write the image, `side` x `side`, as JPEG tiles, with its coarse levels if it is a pyramid; gives its labels."""
    image, placed = _ground(side), []
    for text, (x, y) in list(PLACES.items())[:labels]:
        drawn = _label(text)
        left, top = round(x * side), round(y * side)
        image = image.insert(drawn, left, top)
        placed.append(Label(text, (left, top, left + drawn.width, top + drawn.height)))
    image.tiffsave(
        str(path), tile=True, tile_width=tile, tile_height=tile, pyramid=pyramid, compression="jpeg", Q=90, bigtiff=True
    )
    return placed


def _ground(side: int) -> pyvips.Image:
    """A slow change of colour, a fine texture, and rectangles."""
    rng = np.random.default_rng(0)
    grain = _image(rng.normal(0, 3, (PATCH, PATCH, 1)).round().astype(np.int8).view(np.uint8), "char")
    repeats = -(-side // PATCH)
    grain = grain.replicate(repeats, repeats).crop(0, 0, side, side)
    place = pyvips.Image.xyz(side, side)
    colours = [200 + place[0] * (20 / side), 196 + place[1] * (24 / side), 190 + place[0] * (-16 / side)]
    image = (colours[0].bandjoin(colours[1:]) + grain).cast("uchar").copy(interpretation="srgb")
    pick = random.Random(0)
    for _ in range(FIELDS):
        width, height = (pick.randint(side // 64, side // 12) for _ in range(2))
        shade = [pick.randint(170, 225) for _ in range(3)]
        field = (pyvips.Image.black(width, height, bands=3) + shade).cast("uchar")
        image = image.insert(field, pick.randrange(side - width), pick.randrange(side - height))
    return image


def _label(text: str) -> pyvips.Image:
    """Dark letters on white paper."""
    font = ImageFont.load_default(LETTERS)
    paper = Image.new("RGB", (round(font.getlength(text)) + 40, 2 * LETTERS + 4), "white")
    ImageDraw.Draw(paper).text((20, 12), text, "#101418", font)
    return _image(np.asarray(paper), "uchar")


def _image(pixels: np.ndarray, kind: str) -> pyvips.Image:
    height, width, bands = pixels.shape
    return pyvips.Image.new_from_memory(np.ascontiguousarray(pixels).tobytes(), width, height, bands, kind)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--side", type=int, default=32768)
    parser.add_argument("--flat", action="store_true", help="without coarse levels")
    args = parser.parse_args()
    args.path.parent.mkdir(parents=True, exist_ok=True)
    for label in draw(args.path, args.side, not args.flat):
        print(f"{label.text}: {label.box}")


if __name__ == "__main__":
    main()
