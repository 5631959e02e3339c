"""A glyph atlas: fonts as tensors of coverage, so that pages can be drawn on a GPU.

F faces, 94 glyphs chr(33)..chr(126). To pack one, run
`python -m homunculus.train.synth.atlas FONT_DIR... --out atlas.npz`.
"""

from __future__ import annotations

import argparse
import os
import sys
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from homunculus.errors import InputError
from homunculus.runtime.files import replacing

TILE = 64
EM = 40
ORIGIN = 10
BASELINE = 44
CHARS = "".join(map(chr, range(33, 127)))
ENDINGS = (".ttf", ".otf", ".pfb", ".t1")
TRAITS = ("serif", "sans", "mono", "hand", "display")

FINE = 4  # glyphs are drawn this much larger and averaged down, which leaves no trace of hinting
SMALL, TALL, DEEP = "acemnorsuvwxz", "bdhklABCDEHKLMNRTUVWXZ", "gpqy"
SAME = 2.0  # faces of one name whose coverage differs less, of 255, are one face in two file formats
HAND = "hand breip femke script steve delphine humor comic dkg rufs kristi ecolier chancery chorus z003 domestic magic"
DISPLAY = "black heavy 3270 glass vt220 px_ ocr unifont terminus spleen proggy osifont routed display jura"
SAMPLE = "Handgloves Jumpy fix: (A-1043/B) Total DUE $1,234.50 06/27/89 #8 & Qty. 50% @x"


@dataclass(frozen=True, eq=False)
class Face:
    """One font as tiles [94, 64, 64], advances of chr(32)..chr(126) in em [95], and what it is called."""

    glyphs: np.ndarray
    advance: np.ndarray
    xheight: float
    name: str
    trait: str


@dataclass(frozen=True, eq=False)
class Atlas:
    """Coverage and metrics of F faces; a tile has its pen at x = ORIGIN and its baseline at y = BASELINE.

    `glyphs` is uint8 [F, 94, 64, 64] at EM pixels per em, `advance` float32 [F, 95] in em with the space first,
    `xheight` float32 [F] in em. Coverage row y lies wholly above the baseline where y < BASELINE.
    """

    glyphs: Tensor
    advance: Tensor
    xheight: Tensor
    names: list[str]
    traits: list[str]

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of(cls, faces: Sequence[Face]) -> Atlas:
        """The atlas of faces that were read already."""
        if not faces:
            raise InputError("an atlas needs at least one font with all of printable ASCII, got none")
        return cls(
            glyphs=torch.from_numpy(np.stack([face.glyphs for face in faces])),  # [F, 94, 64, 64]
            advance=torch.from_numpy(np.stack([face.advance for face in faces])),  # [F, 95]
            xheight=torch.tensor([face.xheight for face in faces]),
            names=[face.name for face in faces],
            traits=[face.trait for face in faces],
        )

    @classmethod
    def builtin(cls) -> Atlas:
        """The one font that comes with Pillow, for machines where no other is."""
        return cls.of([_builtin_face()])

    @classmethod
    def open(cls, path: str) -> Atlas:
        """The atlas of a file, or the built-in one where the path is empty."""
        return cls.load(path) if path else cls.builtin()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Atlas:
        """The atlas that `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                glyphs, advance, xheight = (torch.from_numpy(file[name]) for name in ("glyphs", "advance", "xheight"))
                return cls(glyphs, advance, xheight, file["names"].tolist(), file["traits"].tolist())
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(f"cannot read {path} as a glyph atlas: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it as a compressed .npz file."""
        arrays = {name: getattr(self, name).cpu().numpy() for name in ("glyphs", "advance", "xheight")}
        arrays |= {"names": np.array(self.names), "traits": np.array(self.traits)}
        with replacing(path) as unfinished, unfinished.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    def to(self, device: str | torch.device) -> Atlas:
        """The same atlas with its tensors on `device`."""
        moved = {name: getattr(self, name).to(device) for name in ("glyphs", "advance", "xheight")}
        return replace(self, **moved)


def read_faces(paths: Iterable[str | os.PathLike[str]], limit: int | None = None) -> tuple[list[Face], dict[Path, str]]:
    """The usable faces, each look once, and for every other file why it was left out."""
    faces: dict[str, Face] = {}
    left_out: dict[Path, str] = {}
    for path in map(Path, paths):
        if limit is not None and len(faces) >= limit:
            left_out[path] = f"the limit of {limit} is reached"
            continue
        try:
            face = read_face(path)
        except InputError as error:
            left_out[path] = str(error)
            continue
        twin = faces.get(face.name)
        if twin and np.abs(twin.glyphs - face.glyphs.astype(np.float32)).mean() < SAME:
            left_out[path] = f"{face.name} is there already"
        else:  # some bold faces bear the name of the regular one
            name = f"{face.name} ({path.stem})" if twin else face.name
            faces[name] = replace(face, name=name)
    return list(faces.values()), left_out


def read_face(path: Path) -> Face:
    """One font file as tiles; an InputError says in a few words why it is of no use."""
    try:
        font = ImageFont.truetype(path, EM * FINE, layout_engine=ImageFont.Layout.BASIC)
        missing = [char for char in CHARS if not _has(font, char)]
        face = _draw(font, path.stem) if not missing else None
    except (OSError, ValueError) as error:  # Pillow's word for broken and for bitmap-only files
        raise InputError(f"cannot be drawn: {error}") from error
    if face is None:
        raise InputError(f"lacks {len(missing)} glyphs: {''.join(missing[:8])}")
    if not _latin(face.glyphs):
        raise InputError("is of symbols, capitals or another script")
    return face


def _has(font: ImageFont.FreeTypeFont, char: str) -> bool:
    """Whether the font draws `char`, and not the box or blank that it draws for U+FFFF, which is no character."""
    mask, nothing = font.getmask(char), font.getmask("\uffff")
    return mask.getbbox() is not None and (mask.size != nothing.size or bytes(mask) != bytes(nothing))


def _draw(font: ImageFont.FreeTypeFont, stem: str) -> Face:
    glyphs = np.stack([_tile(font, char) for char in CHARS])  # [94, 64, 64]
    advance = np.array([font.getlength(char) / font.size for char in " " + CHARS], dtype=np.float32)
    name = " ".join(part for part in font.getname() if part)
    xheight = -font.getbbox("x", anchor="ls")[1] / font.size
    return Face(glyphs, advance, xheight, name, _trait(f"{name} {stem}".lower(), glyphs, advance))


def _tile(font: ImageFont.FreeTypeFont, char: str) -> np.ndarray:
    """Coverage of one character, uint8 [64, 64]."""
    canvas = Image.new("L", (TILE * FINE, TILE * FINE))
    ImageDraw.Draw(canvas).text((ORIGIN * FINE, BASELINE * FINE), char, 255, font, anchor="ls")
    return np.asarray(canvas.reduce(FINE))


@cache
def _builtin_face() -> Face:
    font = ImageFont.load_default(EM * FINE)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise InputError("this Pillow was built without FreeType and cannot draw TrueType fonts: reinstall pillow")
    return _draw(font, "")


def _trait(name: str, glyphs: np.ndarray, advance: np.ndarray) -> str:
    """What a face looks like: hand and display by its name, the others by measure."""
    for trait, words in (("hand", HAND), ("display", DISPLAY)):
        if any(word in name for word in words.split()):
            return trait
    if np.ptp(advance[1:]) < 0.02:
        return "mono"
    rows = (glyphs[CHARS.index("H")] / 255.0).sum(1)  # ink of each row: serifs make the foot of an H wide
    top = int(np.argmax(rows > 0.5))
    foot, leg = rows[BASELINE - 2 : BASELINE].max(), rows[BASELINE - (BASELINE - top) // 4]
    return "serif" if foot > 1.4 * leg else "sans"


def _latin(glyphs: np.ndarray) -> bool:
    """Whether the letters stand as Latin ones do: small, tall and descending where they must be, at least mostly."""
    rows = glyphs.max(axis=2) > 64  # [94, 64]
    top, bottom = rows.argmax(1), TILE - rows[:, ::-1].argmax(1)  # [94], bottom is the row below
    above, below = (dict(zip(CHARS, reach, strict=True)) for reach in (BASELINE - top, bottom - BASELINE))
    small = float(np.median([above[letter] for letter in SMALL]))
    shares = (
        np.mean([0.75 * small < above[letter] < 1.25 * small for letter in SMALL]),
        np.mean([above[letter] > 1.15 * small for letter in TALL]),
        np.mean([below[letter] > 0.06 * EM for letter in DEEP]),
        np.mean([below[letter] < 0.12 * EM for letter in SMALL + TALL]),
    )
    return min(shares) >= 0.7


def sheet(atlas: Atlas, sample: str = SAMPLE) -> Image.Image:
    """A contact sheet: one line per face, set from its own tiles, with its number, trait and name."""
    advance, glyphs = atlas.advance.cpu().numpy(), atlas.glyphs.cpu().numpy()
    width = 300 + int(EM * max(_length(row, sample) for row in advance)) + TILE
    page = Image.new("L", (width, TILE * len(atlas)), 255)
    draw, small = ImageDraw.Draw(page), ImageFont.load_default(15)
    for i, name in enumerate(atlas.names):
        draw.text((4, i * TILE + 22), f"{i} {atlas.traits[i]}: {name}"[:44], 0, small)
        for k, char in enumerate(sample):
            x = 300 + round(EM * _length(advance[i], sample[:k])) - ORIGIN
            if char != " ":
                page.paste(0, (x, i * TILE), Image.fromarray(glyphs[i, ord(char) - 33]))
    return page


def _length(advance: np.ndarray, text: str) -> float:
    return float(sum(advance[ord(char) - 32] for char in text))


def find_fonts(folders: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """All font files in these folders and below, in order; a name of a file stands for itself."""
    found: list[Path] = []
    for folder in map(Path, folders):
        if not folder.exists():
            raise InputError(f"there is no folder of fonts {folder}")
        below = sorted(folder.rglob("*")) if folder.is_dir() else [folder]
        found += [path for path in below if path.suffix.lower() in ENDINGS]
    return found


def picked(paths: Iterable[Path], listing: str) -> list[Path]:
    """The files whose names stand in `listing`, each on a line of its own, in that order and each name once."""
    by_name = {path.name: path for path in reversed(list(paths))}
    lines = dict.fromkeys(line.strip() for line in listing.splitlines())
    return [by_name[line] for line in lines if line in by_name]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: scan folders, pack what is usable, say what was left out."""
    parser = argparse.ArgumentParser(prog="python -m homunculus.train.synth.atlas", description="Pack fonts.")
    parser.add_argument("folders", nargs="+", metavar="FONT_DIR")
    parser.add_argument("--out", required=True, help="the .npz file to write")
    parser.add_argument("--pick", help="a text with the file names to take, one on a line; else all are taken")
    parser.add_argument("--limit", type=int, help="pack at most so many faces")
    parser.add_argument("--sheet", help="also draw a contact sheet to this image file")
    options = parser.parse_args(arguments)
    try:
        paths = find_fonts(options.folders)
        if options.pick:
            paths = picked(paths, Path(options.pick).read_text(encoding="utf-8"))
        faces, left_out = read_faces(paths, options.limit)
        atlas = Atlas.of(faces)
        atlas.save(options.out)
        if options.sheet:
            with replacing(options.sheet) as unfinished:
                sheet(atlas).save(unfinished)
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    counts = ", ".join(f"{atlas.traits.count(trait)} {trait}" for trait in TRAITS if trait in atlas.traits)
    print(f"{len(atlas)} of {len(paths)} fonts packed ({counts}); left out {len(left_out)}")
    for path, reason in left_out.items():
        print(f"  {path.name}: {reason}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
