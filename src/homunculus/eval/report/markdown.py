"""Tables and figures as Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def markdown_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *lines)) + "\n"


def score_cell(figure: dict[str, float] | None, best: bool = False) -> str:
    """A score with its interval; the best in bold."""
    if not figure:
        return ""
    text = f"{figure['value']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"
    return f"**{text}**" if best else text
