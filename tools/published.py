"""What the generators of pages share: results files, machines in words, pages and plots in docs/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from homunculus.runtime.files import replacing

ROOT = Path(__file__).parents[1]
RESULTS, DOCS = ROOT / "results", ROOT / "docs"


def read_results(name: str, folder: Path = RESULTS, missing_ok: bool = False) -> dict[str, Any]:
    """A results file by its name without .json; with `missing_ok` empty if there is none."""
    path = folder / f"{name}.json"
    return {} if missing_ok and not path.is_file() else json.loads(path.read_text())


def describe_machine(machine: dict[str, Any]) -> str:
    """Processor or GPU, version of torch, and commit."""
    place = machine["device"]
    if place == "cpu":
        place = f"{machine['cores']} cores of an {machine['processor']}"
    return f"{place}, torch {machine['torch']}, commit {machine['commit']}"


def write_page(name: str, text: str, folder: Path = DOCS) -> None:
    """Write a page of the documentation."""
    with replacing(folder / f"{name}.md") as unfinished:
        unfinished.write_text(text)


def write_plot(name: str, figure: Figure, folder: Path = DOCS) -> None:
    """Write a picture of the documentation, the same bytes for the same figure."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    with replacing(folder / "images" / f"{name}.png") as unfinished:
        figure.savefig(unfinished, format="png", dpi=130, metadata={"Software": None})
