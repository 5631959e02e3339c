"""Charts: bars standing and lying, lines, pies, with axes, legends, value labels and sources."""

from __future__ import annotations

import math
from dataclasses import dataclass

from homunculus.train.synth.documents.data import UNITS, Data, draw_data, stranger
from homunculus.train.synth.documents.letter import body
from homunculus.train.synth.documents.page import LEAST, NOTHING, Mark, Pen
from homunculus.train.synth.documents.parts import NTH, after_label
from homunculus.train.synth.documents.reasoning import Series, compare, count, plural, read_off


@dataclass
class Plot:
    """The area of a chart and its fonts' size."""

    x0: float
    y0: float
    x1: float
    y1: float
    size: float


def framed(
    pen: Pen, data: Data, legend: bool, wide_labels: float, axes: bool = True, lying: bool = False
) -> tuple[Plot, list[Mark]]:
    """Title, legend and source around the plot; the plot is what is left. Legend marks come with it."""
    rng, pen.noun = pen.rng, pen.rng.choice(("chart", "graph", "figure"))
    size = min(max((pen.height * pen.width) ** 0.5 / rng.uniform(32, 62), 9.5), 40.0)
    left, right = pen.width * 0.05, pen.width * 0.96
    top, low = around(pen)
    if rng.random() < 0.75 or not axes:
        top = heading(pen, data, left, right, top, size)
    top += 0.6 * size
    if rng.random() < 0.6:
        text = rng.choice(("Source: ", "Source: ", "Data: ", "SOURCE: ")) + pen.texts("company")
        align, x = rng.choice((("left", left), ("right", right)))
        mark = pen.write(text, x, low - size, size * 0.85, align=align)
        pen.ask("source", "source", after_label(mark, "Source:"))
        low -= 1.5 * size
    below = rng.random() < 0.5
    entries: list[Mark] = []
    if legend:
        y = low - 1.1 * size if below else top
        entries = legend_row(pen, data, left, right, y, size)
        low, top = (low - 1.8 * size, top) if below else (low, top + 1.8 * size)
    along, across = data.thing.capitalize(), f"{data.measure} {rng.choice(UNITS)}"
    along, across = (across, along) if lying else (along, across)
    if axes and rng.random() < 0.6:
        pen.ask("chart", "x_axis", pen.write(along, (left + right) / 2, low - 1.1 * size, size, align="center"))
        low -= 1.5 * size
    if axes and rng.random() < 0.6:
        pen.ask("chart", "y_axis", pen.write(across, left, top, size))
        top += 1.6 * size
    return Plot(left + wide_labels * size, top + 0.8 * size, right, low, size), entries


def heading(pen: Pen, data: Data, left: float, right: float, top: float, size: float) -> float:
    """The title over a chart, sometimes with a sentence; returns where they end."""
    rng, style = pen.rng, pen.style
    head = size * rng.uniform(1.1, 1.9)
    text = pen.texts("title") if rng.random() < 0.5 else f"{data.measure} by {data.thing} {rng.choice(UNITS)}"
    lines = pen.wrap(text, right - left, head, style.head)[:2]
    align, x = rng.choice((("left", left), ("center", pen.width / 2)))
    marks = []
    for line in lines:
        marks.append(pen.write(line, x, top, head, style.head, align))
        top += 1.15 * head
    pen.ask("title", "chart_title", marks)
    if rng.random() < 0.3:
        pen.write(pen.texts("sentence"), x, top, size, align=align, limit=(right - left) * 0.98)
        top += 1.2 * size
    return top


def around(pen: Pen) -> tuple[float, float]:
    """The top and the end of the chart's part of the page; on a tall page there may be text above and below."""
    rng, top, low = pen.rng, pen.height * 0.03, pen.height * 0.98
    if pen.height < 1.15 * pen.width or rng.random() < 0.25:
        return top, low
    end = rng.uniform(0.55, 0.9) * pen.height
    pen.y, pen.bottom = top, rng.uniform(0.05, 0.3) * pen.height
    body(pen, rng.randint(0, 3))
    top, pen.y, pen.bottom = pen.y + 0.02 * pen.height, end + 0.02 * pen.height, pen.height * 0.97
    body(pen, rng.randint(0, 3))
    return top, end


def tint(index: int, shift: float) -> tuple[float, float]:
    """Darkness and tint of a series."""
    return 0.35 + 0.5 * ((index * 0.37 + shift) % 1), (
        0.0 if shift > 0.85 else 0.05 + 0.95 * ((index * 0.29 + shift) % 1)
    )


def legend_row(pen: Pen, data: Data, left: float, right: float, y: float, size: float) -> list[Mark]:
    """Small squares with the names of the series, side by side; names that do not fit are left out."""
    x, entries = left, []
    shift = pen.shift
    for index, name in enumerate(data.series):
        wide = pen.measure(name, size)
        if x + 1.2 * size + wide > right:
            break
        dark, hue = tint(index, shift)
        pen.fill(x, y + 0.1 * size, x + 0.7 * size, y + 0.8 * size, dark, hue)
        mark = pen.write(name, x + size, y, size)
        entries.append(mark)
        if mark and index < len(NTH):
            pen.ask("chart", "legend", mark, nth=NTH[index])
        x += 2.5 * size + wide
    return entries


def ticks(pen: Pen, plot: Plot, data: Data, lying: bool = False) -> float:
    """Numbers along the value axis, with rules across the plot. Returns the value at its end."""
    rng, top, steps = pen.rng, data.top(), pen.rng.choice((4, 5, 5))
    ruled, marks = rng.random() < 0.6, []
    decimals = 0 if top / steps == int(top / steps) else 2 if top < 5 else 1
    crowded = pen.measure(f"{top:,.{decimals}f}", plot.size) > (plot.x1 - plot.x0) / steps * 0.85
    for index in range(steps + 1):
        text = f"{top * index / steps:,.{decimals}f}".replace(",", data.grouped)
        if lying:
            x = plot.x0 + (plot.x1 - plot.x0) * index / steps
            mark = NOTHING
            if not crowded or index in (0, steps):
                mark = pen.write(text, x, plot.y1 + 0.3 * plot.size, plot.size * 0.9, align="center")
            pen.rule(x, plot.y0, x, plot.y1, 1, 0.15) if ruled else None
        else:
            y = plot.y1 - (plot.y1 - plot.y0) * index / steps
            mark = pen.write(text, plot.x0 - 0.4 * plot.size, y - 0.4 * plot.size, plot.size * 0.9, align="right")
            pen.rule(plot.x0, y, plot.x1, y, 1, 0.15) if ruled else None
        marks.append(mark)
    axis = "x" if lying else "y"
    pen.ask("chart", "axis_end", marks[-1], axis=axis)
    pen.ask("chart", "axis_start", marks[0], axis=axis)
    pen.rule(plot.x0, plot.y1, plot.x1, plot.y1)
    if rng.random() < 0.6:
        pen.rule(plot.x0, plot.y0, plot.x0, plot.y1)
    return top


def asked(
    pen: Pen, data: Data, names: list[Mark], series: list[Mark], values: list[list[Mark]], shape: str, end: float = 0.0
) -> None:
    """Questions about values, and what can be worked out from them; `end` is the last value of the axis, if any."""
    rng, measure = pen.rng, data.measure.lower()
    for row, marks in enumerate(values):
        for column, mark in enumerate(marks):
            if not (mark and names[column]):
                continue
            name = names[column].text
            if len(values) == 1:
                pen.ask("chart", "chart_value", mark, category=name, measure=measure)
                pen.facts.append((name, mark.text))
                if [other.text for other in marks].count(mark.text) == 1 and rng.random() < 0.2:
                    pen.ask("chart", "with_value", names[column], thing=data.thing, value=mark.text)
            elif row < len(series) and series[row]:
                pen.ask("chart", "chart_series", mark, series=series[row].text, category=name)
    for nth, mark in zip(NTH[:6], names, strict=False):
        if mark and rng.random() < 0.3:
            pen.ask("chart", "nth_category", mark, nth=nth, thing=data.thing)
    if end:
        read(pen, data, names, series, values, end)
    other = stranger(pen, data)
    pen.strangers.append(("chart_value", other, {"category": other, "measure": measure}))
    compared(pen, data, names, series, values, shape, end)


def read(pen: Pen, data: Data, names: list[Mark], series: list[Mark], values: list[list[Mark]], end: float) -> None:
    """A few values that are not printed, as read off the axis."""
    places = [(row, column) for row, marks in enumerate(values) for column, mark in enumerate(marks) if not mark]
    for row, column in pen.rng.sample(places, min(len(places), 5)):
        name, answer = names[column], read_off(data.values[row][column], end)
        if len(values) == 1 and name:
            slots = {"category": name.text, "measure": data.measure.lower()}
            pen.reply("chart", "chart_value", answer, name, **slots)
        elif name and row < len(series) and series[row]:
            pen.reply("chart", "chart_series", answer, name, series=series[row].text, category=name.text)


def compared(
    pen: Pen, data: Data, names: list[Mark], series: list[Mark], values: list[list[Mark]], shape: str, end: float
) -> None:
    """Comparisons along one series or across the series of one category, and how many there are."""
    rng, gap, measure = pen.rng, 0.04 * (end or data.top()), data.measure.lower()
    if len(values) == 1:
        summed = shape == "slice"
        compare(pen, Series("chart", data.thing, measure, names, data.values[0], values[0], data.decimals, "", shape,
                            gap, summed=summed))  # fmt: skip
        count(pen, plural(data.thing if all(names) and rng.random() < 0.4 else shape), len(names), names)
        return
    if len(series) < len(values):
        return
    row, column = rng.randrange(len(values)), rng.randrange(len(names))
    group = rng.choice((" in {}", " for {}")).format(series[row].text)
    compare(pen, Series("chart", data.thing, "value", names, data.values[row], values[row], data.decimals, group,
                        shape, gap))  # fmt: skip
    if names[column]:
        group, across = f" in {names[column].text}", [numbers[column] for numbers in data.values]
        marks = [line[column] for line in values]
        compare(pen, Series("chart", "series", measure, series, across, marks, data.decimals, group, shape, gap))
    things = "entries in the legend", "series", "lines in the chart" if shape == "point" else "colours of bars"
    count(pen, rng.choice(things), len(series), series)


def labels_below(pen: Pen, plot: Plot, data: Data, centres: list[float]) -> list[Mark]:
    """Category names below the axis: in up to two lines, each or every second one."""
    step = (centres[1] - centres[0]) if len(centres) > 1 else plot.x1 - plot.x0
    size = plot.size * 0.9
    widest = max(pen.measure(word, size) for name in data.categories for word in name.split())
    every = max(1, math.ceil((widest + 0.5 * size) / step))
    marks = []
    for index, (name, x) in enumerate(zip(data.categories, centres, strict=True)):
        if index % every:
            marks.append(NOTHING)
            continue
        lines = pen.wrap(name, every * step - 0.4 * size, size)[:2]
        found = [
            pen.write(line, x, plot.y1 + (0.35 + 1.05 * row) * size, size, align="center")
            for row, line in enumerate(lines)
        ]
        found = [mark for mark in found if mark]
        marks.append(Mark(" ".join(m.text for m in found), found[0].first, found[-1].last) if found else NOTHING)
    return marks


def bars(pen: Pen) -> None:
    """Bars of one to three series, standing or lying."""
    pen.shift = pen.rng.random()
    if pen.rng.random() < 0.35:
        lying(pen)
    else:
        standing(pen)


def standing(pen: Pen) -> None:
    """Standing bars with values on top."""
    rng, count = pen.rng, pen.rng.choice((1, 1, 1, 2, 3))
    data = draw_data(pen, count, max(3, min(16, int(pen.width / 60 / count))))
    plot, entries = framed(pen, data, len(data.series) > 1, 3.6)
    plot.y1 -= 2.6 * plot.size
    end = ticks(pen, plot, data)
    pitch = (plot.x1 - plot.x0) / len(data.categories)
    share = rng.uniform(0.5, 0.9) / len(data.series)
    centres = [plot.x0 + (index + 0.5) * pitch for index in range(len(data.categories))]
    values: list[list[Mark]] = []
    labelled = rng.random() < 0.85
    for row, numbers in enumerate(data.values):
        dark, hue = tint(row, pen.shift)
        marks = []
        for x, value in zip(centres, numbers, strict=True):
            x0 = x + (row - len(data.series) / 2) * share * pitch
            y = plot.y1 - (plot.y1 - plot.y0) * value / end
            pen.fill(x0, y, x0 + share * pitch * 0.95, plot.y1, dark, hue)
            size, text = plot.size * 0.85, data.shown(value)
            room = pen.measure(text, size) < (pitch if len(data.series) == 1 else share * pitch) * 0.98
            top, middle = y - 1.1 * size, x0 + share * pitch / 2
            marks.append(pen.write(text, middle, top, size, align="center") if labelled and room else NOTHING)
        values.append(marks)
    asked(pen, data, labels_below(pen, plot, data, centres), entries, values, "bar", end)


def lying(pen: Pen) -> None:
    """Lying bars with names at the left and values at their ends."""
    rng = pen.rng
    data = draw_data(pen, 1, max(4, min(24, int(pen.height / 34))))
    plot, _ = framed(pen, data, False, 0.0, lying=True)
    size = plot.size
    widest = min(max(pen.measure(name, size) for name in data.categories), pen.width * 0.35)
    plot.x0 += widest + 0.6 * size
    plot.x1 -= 3.5 * size
    plot.y1 -= 1.5 * size
    scaled = rng.random() < 0.7
    end = ticks(pen, plot, data, lying=True) if scaled else data.top()
    pitch = (plot.y1 - plot.y0) / len(data.categories)
    size = max(9.0, min(size, pitch * 0.8))
    share, names, marks = rng.uniform(0.5, 0.85), [], []
    dark, hue = tint(0, pen.shift)
    for index, (name, value) in enumerate(zip(data.categories, data.values[0], strict=True)):
        y = plot.y0 + (index + 0.5) * pitch
        x = plot.x0 + (plot.x1 - plot.x0) * value / end
        pen.fill(plot.x0, y - share * pitch / 2, x, y + share * pitch / 2, dark, hue)
        names.append(
            pen.write(name, plot.x0 - 0.4 * size, y - 0.45 * size, size, align="right", limit=widest + 1, shrink=True)
        )
        x, text = x + 0.4 * size, data.shown(value)
        room = pen.measure(text, max(size * 0.9, LEAST)) < pen.width - 2 - x
        marks.append(pen.write(text, x, y - 0.45 * size, size * 0.9) if room else NOTHING)
    asked(pen, data, names, [], [marks], "bar", end if scaled else 0.0)


def line_chart(pen: Pen) -> None:
    """One to three lines over years or categories."""
    pen.shift = pen.rng.random()
    rng, count = pen.rng, pen.rng.choice((1, 1, 2, 3))
    data = draw_data(pen, count, max(4, min(20, int(pen.width / 50))))
    plot, entries = framed(pen, data, len(data.series) > 1, 3.6)
    plot.y1 -= 2.6 * plot.size
    end, step = ticks(pen, plot, data), (plot.x1 - plot.x0) / len(data.categories)
    centres = [plot.x0 + (index + 0.5) * step for index in range(len(data.categories))]
    values: list[list[Mark]] = []
    labelled = len(data.series) == 1 or rng.random() < 0.5
    for row, numbers in enumerate(data.values):
        points = [(x, plot.y1 - (plot.y1 - plot.y0) * value / end) for x, value in zip(centres, numbers, strict=True)]
        pen.path(points, max(1.5, plot.size * 0.12), 0.4 + 0.2 * row)
        radius, marks, size = plot.size * 0.22, [], plot.size * 0.85
        for (x, y), value in zip(points, numbers, strict=True):
            dark, hue = tint(row, pen.shift)
            pen.fill(x - radius, y - radius, x + radius, y + radius, dark, hue)
            marks.append(
                pen.squeeze(data.shown(value), x, y - 1.4 * size, size, align="center") if labelled else NOTHING
            )
        values.append(marks)
    asked(pen, data, labels_below(pen, plot, data, centres), entries, values, "point", end)


def pie_chart(pen: Pen) -> None:
    """A pie or a ring; names and shares around it."""
    pen.shift = pen.rng.random()
    rng = pen.rng
    data = draw_data(pen, 1, 7)
    data.thing = "category" if data.thing == "year" else data.thing
    plot, _ = framed(pen, data, False, 0.0, axes=False)
    data.categories = [shortened(pen, name, pen.width * 0.27, plot.size) for name in data.categories]
    total = sum(data.values[0])
    data.decimals = rng.choice((0, 1, 1, 2))
    data.values = [[round(100 * value / total, data.decimals) for value in data.values[0]]]
    sign = rng.choice(("%", "%", " %", ""))
    cx, cy = (plot.x0 + plot.x1) / 2, (plot.y0 + plot.y1) / 2 - 0.3 * plot.size
    radius = min((plot.x1 - plot.x0) * 0.2, (plot.y1 - plot.y0) / 2 - 3.2 * plot.size)
    if radius < 12:
        return
    filled, hole = rng.random() < 0.6, rng.choice((0.0, 0.0, 0.55))
    angle, names, marks = rng.uniform(0, 6.28), [], []
    for index, (name, value) in enumerate(zip(data.categories, data.values[0], strict=True)):
        turn = 6.2832 * value / 100
        if filled:
            shade(pen, cx, cy, radius, (angle, angle + turn, hole), 0.15 + 0.6 * ((index * 0.37 + pen.shift) % 1))
        dx, dy = math.cos(angle), math.sin(angle)
        pen.rule(cx + hole * radius * dx, cy + hole * radius * dy, cx + radius * dx, cy + radius * dy)
        named, shown = outside(pen, plot, (cx, cy, radius), angle + turn / 2, name, data.shown(value) + sign)
        names.append(named)
        marks.append(shown)
        angle += turn
    steps = 40
    for inner in (radius, radius * hole) if hole else (radius,):
        pen.path(
            [
                (cx + inner * math.cos(6.2832 * i / steps), cy + inner * math.sin(6.2832 * i / steps))
                for i in range(steps + 1)
            ]
        )
    asked(pen, data, names, [], [marks], "slice")


def shortened(pen: Pen, text: str, width: float, size: float) -> str:
    """As many of the first words as fit, and at least one."""
    return pen.wrap(text, width, size)[0]


def shade(pen: Pen, x: float, y: float, radius: float, arc: tuple[float, float, float], dark: float) -> None:
    """A slice filled by rays that are as wide as their distance at the rim."""
    start, end, hole = arc
    count = max(1, int((end - start) / 0.05))
    step = (end - start) / count
    for index in range(count):
        dx, dy = math.cos(start + (index + 0.5) * step), math.sin(start + (index + 0.5) * step)
        inner = max(hole, 0.06) * radius
        pen.rule(x + inner * dx, y + inner * dy, x + radius * dx, y + radius * dy, step * radius * 1.02, dark)


def outside(
    pen: Pen, plot: Plot, pie: tuple[float, float, float], angle: float, name: str, value: str
) -> tuple[Mark, Mark]:
    """Name and share of a slice beside the pie, where there is room."""
    cx, cy, radius = pie
    dx, dy = math.cos(angle), math.sin(angle)
    size, align = plot.size, "left" if dx > 0 else "right"
    wide = max(pen.measure(name, size), pen.measure(value, size))
    for away in (1.12, 1.35, 1.6):
        x, y = cx + dx * radius * away, cy + dy * radius * away - 0.8 * size
        x0 = x if dx > 0 else x - wide
        if pen.free(x0 - 2, y, x0 + wide + 2, y + 2.15 * size):
            pen.rule(cx + dx * radius, cy + dy * radius, x, y + 0.8 * size, 1, 0.5) if away > 1.2 else None
            return pen.write(name, x, y, size, align=align), pen.write(value, x, y + 1.05 * size, size, align=align)
    return NOTHING, NOTHING
