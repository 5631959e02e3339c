"""Grey pages with lines of text that are drawn where the tests say."""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

Box = tuple[float, float, float, float]
TEXTS = (
    "Invoice number 2024-117",
    "The meeting begins at nine",
    "Total amount 1284.50",
    "Deliver to the north gate",
    "Paid by card on 14 March",
    "Harbour Street 21",
)


def sheet(texts: Sequence[tuple[str, int, int, int]], height: int = 800, width: int = 640) -> tuple[Tensor, list[Box]]:
    """A page with texts at x, y in a size, uint8 [height, width], and the box of each text's ink."""
    image = Image.new("L", (width, height), 255)
    draw, boxes = ImageDraw.Draw(image), []
    for text, x, y, size in texts:
        font = ImageFont.load_default(size)
        draw.text((x, y), text, 0, font)
        boxes.append(draw.textbbox((x, y), text, font))
    return torch.from_numpy(np.array(image)), boxes


def letter(size: int = 24) -> tuple[Tensor, list[Box]]:
    """A page with the lines of TEXTS below each other."""
    return sheet([(text, 60, 70 + 110 * n, size) for n, text in enumerate(TEXTS)])


def card(size: int = 20) -> tuple[Tensor, list[Box]]:
    """A small page with the first four lines of TEXTS."""
    return sheet([(text, 30, 40 + 90 * n, size) for n, text in enumerate(TEXTS[:4])], 384, 416)


def lines_in(boxes: Sequence[Box]) -> Tensor:
    """The level lines that fill boxes: [n, 5]."""
    return torch.tensor([[x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, y1 - y0] for x0, y0, x1, y1 in boxes])


def shared(one: Sequence[float], other: Sequence[float]) -> float:
    """Overlap of two boxes: their intersection over their union."""
    wide = max(0.0, min(one[2], other[2]) - max(one[0], other[0]))
    high = max(0.0, min(one[3], other[3]) - max(one[1], other[1]))
    areas = [(x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in (one, other)]
    return wide * high / max(1e-9, sum(areas) - wide * high)


INVOICE = (  # the texts of examples/invoice.png that stand alone, but for its small print
    *("Tannhof Joinery", "Brightwater School", "Ms Ada Kern", "Harbour Street 21", "4040 Lindau"),
    *("Invoice", "2026-0417", "Date", "14 March 2026", "Customer", "K-2209", "Due", "13 April 2026"),
    *("Materials for the workshop benches", "Item", "Quantity", "Price", "Amount"),
    *("Oak plank, planed, 2.4 m", "12", "18.50", "222.00", "Brass hinge, 80 mm", "24", "3.15", "75.60"),
    *("Linseed oil, 5 l", "2", "41.90", "83.80", "Wood glue, waterproof", "4", "9.80", "39.20"),
    *("Countersunk screws, 4 x 40, box", "6", "7.25", "43.50", "Sandpaper, grain 120, roll", "3", "14.60", "43.80"),
    *("Drawer slide, pair, 450 mm", "8", "22.40", "179.20", "Delivery, two pallets", "1", "85.00", "85.00"),
    *("Net", "772.10", "VAT 20 %", "154.42", "Total EUR", "926.52"),
    *("Please pay within 30 days, quoting the invoice number.", "RECEIVED"),
)


def share_read(texts: Sequence[str], wanted: Sequence[str]) -> float:
    """How many of the wanted texts were read exactly, each text serving once."""
    return (Counter(texts) & Counter(wanted)).total() / len(wanted)


def likeness(texts: Sequence[str], wanted: Sequence[str]) -> float:
    """How similar the wanted texts are on average to the text most like them, from 0 to 1."""
    best = [max((SequenceMatcher(None, one, text).ratio() for text in texts), default=0.0) for one in wanted]
    return sum(best) / len(best)
