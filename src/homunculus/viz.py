"""The picture: the page with the chosen cells by level and the fixations, beside it what a model will see."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

if TYPE_CHECKING:
    from homunculus.eye import Glance

PANEL = (860, 1080)  # largest width and height of either panel
MARGIN, LINE = 24, 26
PAPER, INK, FAINT, FIXATION, READ = "#ffffff", "#1b1f24", "#5b6470", "#e4007c", "#00875a"
# finest to coarsest: dark red, orange, gold, green, blue, violet; told apart by lightness too
LEVELS = ("#b30021", "#e4572e", "#d99a00", "#2e8b57", "#2676b8", "#5b3fa0", "#3a3a3a")


def picture(glance: Glance, answer: str = "", lines: Sequence[Sequence[float]] = ()) -> Image.Image:
    """Two panels with a caption above and a legend below; side by side, or one above the other for wide images.

    An answer is written under the question; lines that were read, boxes in pixels, are framed in what a model sees.
    """
    size = _panel_size(glance)
    at = _level_for(glance, size)
    page = _as_image(glance.scene.levels[at][0]).resize(size, Image.Resampling.LANCZOS)
    seen = _as_image(glance.reconstruct(at)).resize(size, Image.Resampling.LANCZOS)
    _draw_lines(seen, glance, lines)
    _draw_cells(page, glance)
    _draw_fixations(page, glance)
    stacked = size[0] > 2 * size[1]
    width = max(size[0] if stacked else 2 * size[0] + MARGIN, 720)
    caption, legend = _caption(glance, width, answer), _legend_layout(_legend(glance), width)
    top = MARGIN + LINE * len(caption) + MARGIN // 2
    below = top + (2 * (size[1] + LINE) if stacked else size[1] + LINE)
    rows = legend[-1][1] + 1 if legend else 0  # an image that got no token has no levels to explain
    sheet = Image.new("RGB", (width + 2 * MARGIN, below + LINE * rows + MARGIN // 2), PAPER)
    draw = ImageDraw.Draw(sheet)
    for i, line in enumerate(caption):
        draw.text((MARGIN, MARGIN + i * LINE), line[1], line[0], _font(18 if i else 20))
    places = ((MARGIN, top), (MARGIN, top + size[1] + LINE) if stacked else (MARGIN + size[0] + MARGIN, top))
    for place, panel in zip(places, (page, seen), strict=True):
        sheet.paste(panel, place)
        draw.rectangle((place[0] - 1, place[1] - 1, place[0] + size[0], place[1] + size[1]), outline=FAINT)
    for x, row, colour, text in legend:
        y = below + row * LINE
        draw.rectangle((MARGIN + x, y, MARGIN + x + 16, y + 16), outline=colour, width=3)
        draw.text((MARGIN + x + 24, y - 2), text, FAINT, _font(16))
    return sheet


def _panel_size(glance: Glance) -> tuple[int, int]:
    width, height = glance.tree.width, glance.tree.height
    limit = (2 * PANEL[0], PANEL[1] // 2) if width > 2 * height else PANEL
    scale = min(limit[0] / width, limit[1] / height, 2.0)
    return max(1, round(width * scale)), max(1, round(height * scale))


def _level_for(glance: Glance, size: tuple[int, int]) -> int:
    """The coarsest level that still has as many pixels as the panel: no more are worth reconstructing."""
    fits = [l for l, level in enumerate(glance.scene.levels) if level.shape[3] >= size[0] and level.shape[2] >= size[1]]
    return max(fits, default=0)


def _as_image(pixels: Tensor) -> Image.Image:
    return Image.fromarray(pixels.permute(1, 2, 0).contiguous().cpu().numpy())


def _draw_cells(page: Image.Image, glance: Glance) -> None:
    """Outlines by level, coarse first; finer cells are drawn bolder, the page shows through."""
    scale = page.width / glance.tree.width, page.height / glance.tree.height
    draw = ImageDraw.Draw(page, "RGBA")
    boxes, levels = glance.selection.boxes[0].tolist(), glance.selection.levels[0].tolist()
    for (x0, y0, x1, y1), level in zip(boxes, levels, strict=True):
        colour = _colour(level)
        corners = (
            x0 * scale[0],
            y0 * scale[1],
            max(x1 * scale[0] - 1, x0 * scale[0]),
            max(y1 * scale[1] - 1, y0 * scale[1]),
        )
        draw.rectangle(corners, fill=colour + ("22" if level < 0.5 else "11"), outline=colour + "cc")


def _draw_lines(seen: Image.Image, glance: Glance, lines: Sequence[Sequence[float]]) -> None:
    """Frames around lines of text."""
    scale = seen.width / glance.tree.width, seen.height / glance.tree.height
    draw = ImageDraw.Draw(seen)
    for x0, y0, x1, y1 in lines:
        draw.rectangle((x0 * scale[0], y0 * scale[1], x1 * scale[0], y1 * scale[1]), outline=READ)


def _draw_fixations(page: Image.Image, glance: Glance) -> None:
    draw = ImageDraw.Draw(page)
    for i, (x, y) in enumerate(glance.fixations.tolist()):
        x, y = x * page.width / glance.tree.width, y * page.height / glance.tree.height
        for radius, width in ((15, 4), (3, 3)):
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=FIXATION, width=width)
        if len(glance.fixations) > 1:
            draw.text((x + 18, y - 12), str(i + 1), FIXATION, _font(22))


def _caption(glance: Glance, width: int, answer: str) -> list[tuple[str, str]]:
    """Question, answer and facts in lines: their colour and text."""
    chosen = glance.selection.boxes.shape[1]
    facts = (
        f"{glance.allocator}: {chosen} of {glance.tree.size} cells, {float(glance.selection.coverage()[0]):.0%} of the "
        f"{glance.tree.width} x {glance.tree.height} image covered"
    )
    columns = max(20, width // 11)
    lines = textwrap.wrap(glance.question, columns, max_lines=4, placeholder=" ...") or ["(a free look)"]
    answer_lines = textwrap.wrap(answer, columns, max_lines=4, placeholder=" ...")
    parts = (INK, lines), (FIXATION, answer_lines), (FAINT, textwrap.wrap(facts, max(20, width // 10)))
    return [(colour, line) for colour, written in parts for line in written]


def _legend(glance: Glance) -> list[tuple[str, str]]:
    levels = glance.selection.levels[0].double()
    rows = []
    for level in levels.unique().tolist():
        count, span = int((levels == level).sum()), glance.selection.cell * 2**level
        rows.append((_colour(level), f"level {level:.3g}: {count} cells of {span:.4g} px"))
    return rows


def _legend_layout(legend: list[tuple[str, str]], width: int) -> list[tuple[int, int, str, str]]:
    """Entries from left to right, in as many rows as the width asks for: x, row, colour, text."""
    placed, x, row = [], 0, 0
    for colour, text in legend:
        takes = 24 + round(_font(16).getlength(text)) + MARGIN
        if x and x + takes > width:
            x, row = 0, row + 1
        placed.append((x, row, colour, text))
        x += takes
    return placed


def _colour(level: float) -> str:
    return LEVELS[min(round(level), len(LEVELS) - 1)]


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
