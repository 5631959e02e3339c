"""Synthetic pages, laid out: every kind of document by name, and a preview on the command line.

A page is laid out in plain Python and numpy (a worker's job) and drawn elsewhere; see `DrawnPage` for what it holds.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from homunculus.errors import InputError
from homunculus.runtime.files import replacing
from homunculus.train.synth.documents import (
    business,
    business_datasheet,
    business_forms,
    business_statements,
    business_tables,
    chart,
    form,
    invoice,
    letter,
    listing,
    receipt,
    sign,
    table,
)
from homunculus.train.synth.documents.asking import complete
from homunculus.train.synth.documents.page import DrawnPage, DrawnQuestion, Pen, Typefaces

__all__ = ["KINDS", "WEIGHTS", "DrawnPage", "DrawnQuestion", "Pen", "Typefaces", "lay_out", "preview"]

KINDS: dict[str, Callable[[Pen], None]] = {
    "letter": letter.letter,
    "memo": letter.memo,
    "article": letter.article,
    "report": letter.report,
    "form": form.form,
    "receipt": receipt.receipt,
    "invoice": invoice.invoice,
    "table": table.table,
    "bars": chart.bars,
    "line_chart": chart.line_chart,
    "pie_chart": chart.pie_chart,
    "sign": sign.sign,
    "label": sign.label,
    "dense": letter.dense,
    "cover": listing.cover,
    "card": sign.card,
    "list": listing.listing,
    "collage": sign.collage,
    "billing": business.billing,
    "statement": business_statements.statement,
    "boxed_form": business_forms.boxed_form,
    "dense_table": business_tables.dense_table,
    "datasheet": business_datasheet.datasheet,
}
WEIGHTS = {
    "form": 4, "table": 4, "letter": 3, "receipt": 3, "memo": 2, "report": 2, "invoice": 2, "bars": 2, "list": 2,
    "billing": 8, "statement": 8, "boxed_form": 8, "dense_table": 6, "datasheet": 4,
}  # fmt: skip
COLOURS = ((220, 30, 30), (20, 120, 220), (20, 150, 60))


def lay_out(
    kind: str | None, height: int, width: int, texts: Any, typefaces: Typefaces, rng: random.Random
) -> DrawnPage:
    """One page of a kind (None: drawn by weights) with its questions; the same random state gives the same page."""
    if kind is None:
        kind = rng.choices(tuple(KINDS), [WEIGHTS.get(name, 1) for name in KINDS])[0]
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    pen = Pen(height, width, texts, typefaces, rng)
    KINDS[kind](pen)
    layout = pen.finish(kind)
    complete(layout, pen)
    return layout


@lru_cache(256)
def _font(size: int) -> Any:
    return ImageFont.load_default(size)


def preview(layout: DrawnPage, answers: Sequence[Sequence[int]] = ()) -> Image.Image:
    """The page drawn plainly in one font, with frames around the words of some answers."""
    image = Image.new("RGB", (layout.width, layout.height), (250, 250, 248))
    draw = ImageDraw.Draw(image)
    for x0, y0, x1, y1, dark, tint in layout.fills.tolist():
        grey = 255 * (1 - dark)
        colour = tuple(int(grey + (255 - grey) * 0.5 * ((tint * k) % 1)) if tint else int(grey) for k in (3, 5, 7))
        draw.rectangle((min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)), fill=colour)
    for x0, y0, x1, y1, width, dark in layout.strokes.tolist():
        draw.line((x0, y0, x1, y1), fill=(int(255 * (1 - dark)),) * 3, width=max(1, round(width)))
    for code, _, x, y, size, ink, _ in layout.glyphs.tolist():
        grey = int(255 * (1 - ink)) if ink > 0 else int(-255 * ink)
        draw.text((x, y), chr(int(code) + 33), fill=(grey,) * 3, font=_font(round(size)), anchor="ls")
    for words, colour in zip(answers, COLOURS, strict=False):
        for word in words:
            draw.rectangle(tuple(layout.word_boxes[word].tolist()), outline=colour, width=2)
    return image


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw one page to a file, and print three of its questions."""
    from homunculus.train.synth.atlas import Atlas
    from homunculus.train.synth.text import Texts

    parser = argparse.ArgumentParser(prog="python -m homunculus.train.synth.layouts", description=main.__doc__)
    parser.add_argument("--kind", choices=tuple(KINDS))
    parser.add_argument("--height", type=int, default=1024)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="page.png")
    options = parser.parse_args(arguments)
    typefaces = Typefaces.of(Atlas.builtin())
    rng = random.Random(options.seed)
    layout = lay_out(options.kind, options.height, options.width, Texts.builtin(options.seed), typefaces, rng)
    chosen = rng.sample(layout.questions, min(len(COLOURS), len(layout.questions)))
    for asked in chosen:
        print(f"{asked.sort}: {asked.text} -> {asked.answer}")
    with replacing(options.out) as path:
        preview(layout, [asked.words for asked in chosen]).save(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
