"""Draw six typeset documents with their words and questions, as a test set that shares nothing with the training pages.

Run `python tools/draw_documents.py`; it writes tests/documents/images/*.png, questions.jsonl and words.jsonl.
Texts are our own: all names, numbers and addresses are made up.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT, DPI = 1240, 1754, 150  # A4
GREYS = 16
FACES = {"": "DejaVuSans", "b": "DejaVuSans-Bold", "i": "DejaVuSans-Oblique", "s": "DejaVuSerif",
         "sb": "DejaVuSerif-Bold", "m": "DejaVuSansMono"}  # fmt: skip
Box = tuple[float, float, float, float]


@cache
def font(face: str, points: float) -> ImageFont.FreeTypeFont:
    """A face at a size in points."""
    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{FACES[face]}.ttf"
    return ImageFont.truetype(str(path), points * DPI / 72)


class Page:
    """A page being drawn: its picture, its words with boxes, and its questions."""

    def __init__(self, name: str, points: float = 9.0) -> None:
        self.name, self.points = name, points
        self.image = Image.new("L", (WIDTH, HEIGHT), 255)
        self.draw = ImageDraw.Draw(self.image)
        self.words: list[tuple[str, Box]] = []
        self.named: dict[str, list[int]] = {}  # words that questions ask for
        self.questions: list[dict[str, Any]] = []

    def text(self, x: float, y: float, text: str, face: str = "", points: float = 0.0, align: str = "l",
             ink: int = 15, key: str = "") -> float:  # fmt: skip
        """A line on the baseline `y`, from, around or up to `x` (align l, m, r); its right end."""
        used = font(face, points or self.points)
        wide = used.getlength(text)
        x -= {"l": 0.0, "m": wide / 2, "r": wide}[align]
        self.draw.text((x, y), text, fill=ink, font=used, anchor="ls")
        at = 0
        for word in text.split():
            at = text.index(word, at)
            left = x + used.getlength(text[:at])
            x0, y0, x1, y1 = used.getbbox(word, anchor="ls")
            if key:
                self.named.setdefault(key, []).append(len(self.words))
            self.words.append((word, (round(left + x0, 1), y + y0, round(left + x1, 1), y + y1)))
            at += len(word)
        return x + wide

    def lines(self, x: float, y: float, texts: Sequence[str], step: float = 27, **how: Any) -> float:
        """Lines below each other; the baseline after the last."""
        for text in texts:
            self.text(x, y, text, **how)
            y += step
        return y

    def rule(self, x0: float, y0: float, x1: float, y1: float, width: int = 1, ink: int = 90) -> None:
        """A straight line."""
        self.draw.line((x0, y0, x1, y1), fill=ink, width=width)

    def fill(self, x0: float, y0: float, x1: float, y1: float, grey: int) -> None:
        """A filled rectangle."""
        self.draw.rectangle((x0, y0, x1, y1), fill=grey)

    def frame(self, x0: float, y0: float, x1: float, y1: float, width: int = 1, ink: int = 90) -> None:
        """A rectangle."""
        self.draw.rectangle((x0, y0, x1, y1), outline=ink, width=width)

    def boxes(self, x: float, y: float, height: float, cells: str) -> float:
        """Rows of framed boxes, `width|label|value|key` separated by `;`, labels at the top left; where they end."""
        for row in cells.strip().splitlines():
            left = x
            for cell in row.split(";"):
                wide, label, value, key = cell.strip().split("|")
                self.frame(left, y, left + float(wide), y + height)
                self.text(left + 8, y + 19, label, points=6.5, ink=70)
                self.text(left + 8, y + height - 11, value, key=key)
                left += float(wide)
            y += height
        return y

    def pairs(self, x: float, y: float, step: tuple[float, float], away: tuple[float, float], cells: str,
              label: dict[str, Any], value: dict[str, Any]) -> None:  # fmt: skip
        """Lines of `label|value|key`, each a step from the last, values away from their labels."""
        for at, row in enumerate(cells.strip().splitlines()):
            name, text, key = row.split("|")
            left, base = x + at * step[0], y + at * step[1]
            self.text(left, base, name, **label)
            self.text(left + away[0], base + away[1], text, key=key, **value)

    def row(self, y: float, stops: str, cells: str, face: str = "", named: bool = False, **how: Any) -> None:
        """Cells of a table row at stops such as `100l 400r`. Named ones have the first cell and their place as key."""
        texts = cells.split("|")
        for at, (stop, cell) in enumerate(zip(stops.split(), texts, strict=True)):
            if cell:
                key = f"{texts[0]} {at}" if named and at else ""
                self.text(float(stop[:-1]), y, cell, face, align=stop[-1], key=key, **how)

    def table(self, y: float, stops: str, cells: str, step: float, rule: tuple[float, float] = (0, 0)) -> float:
        """Rows one step apart, over rules if their ends are given; a line with `+` is a detail of the row above."""
        for row in cells.strip().splitlines():
            if row.startswith("+"):
                y -= step - 25
                x = float(stops.split()[1][:-1])
                self.fill(rule[0], y - 14, rule[1], y - 10, 255)
                self.text(x, y, row[1:], points=8, ink=80)
            else:
                self.row(y, stops, row, named=True)
            if rule[1]:
                self.rule(rule[0], y + 13, rule[1], y + 13, 1, 200)
            y += step
        return y

    def ask(self, questions: str) -> None:
        """Questions as lines of `question|key|other spellings`: answered by the words of the key."""
        for row in questions.strip().splitlines():
            question, key, *others = row.split("|")
            words = self.named[key]
            lines: dict[float, list[Box]] = {}
            for word in words:
                box = self.words[word][1]
                near = next((top for top in lines if abs(top - box[1]) < 14), box[1])
                lines.setdefault(near, []).append(box)
            boxes = [[*map(min, *(b[:2] for b in (*line, line[0]))), *map(max, *(b[2:] for b in (*line, line[0])))]
                     for line in lines.values()]  # fmt: skip
            answer = " ".join(self.words[word][0] for word in words)
            self.questions.append({
                "image": f"images/{self.name}.png", "question": question, "answers": [answer, *others],
                "qid": f"{self.name}_{len(self.questions) + 1}", "width": WIDTH, "height": HEIGHT,
                "answer_boxes": boxes, "words": None, "derived": False,
            })  # fmt: skip

    def save(self, folder: Path) -> int:
        """Write the picture with few greys; its size in bytes."""
        path = folder / f"{self.name}.png"
        self.image.quantize(GREYS, dither=Image.Dither.NONE).save(path, optimize=True)
        return path.stat().st_size


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw all pages and write the set."""
    from pages_bills import invoice, price_table, utility_bill
    from pages_office import bank_statement, insurance_form, payslip

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "tests" / "documents")
    out: Path = parser.parse_args(arguments).out
    (out / "images").mkdir(parents=True, exist_ok=True)
    pages = [make() for make in (invoice, bank_statement, payslip, insurance_form, price_table, utility_bill)]
    for page in pages:
        print(
            f"{page.name}: {len(page.words)} words, {len(page.questions)} questions, {page.save(out / 'images')} bytes"
        )
    asked = [question for page in pages for question in page.questions]
    words = [{"image": f"images/{page.name}.png", "words": [{"text": text, "box": box} for text, box in page.words]}
             for page in pages]  # fmt: skip
    for name, rows in (("questions", asked), ("words", words)):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (out / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
