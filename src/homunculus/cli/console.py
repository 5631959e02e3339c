"""Where commands write: standard output and error, pictures and JSON, one sentence for an error."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from homunculus.runtime.files import replacing

STANDARD_OUTPUT = Path("-")
out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def print_error(error: Exception | str) -> None:
    """One sentence on standard error."""
    err.print(f"[bold red]homunculus:[/bold red] {escape(str(error))}")


def loading(name: str) -> AbstractContextManager[object]:
    """A spinner while `name` is loaded; nothing where standard error is no terminal."""
    return err.status(f"loading {name}") if err.is_terminal else nullcontext()


@dataclass(frozen=True)
class OutputFiles:
    """Where a command writes: a picture, and JSON to a file or, named "-", to standard output."""

    png: Path | None = None
    json: Path | None = None

    @property
    def console(self) -> Console:
        """Where messages go: standard output, unless that is the JSON's alone."""
        return err if self.json == STANDARD_OUTPUT else out

    def write_json(self, text: str) -> None:
        """Write lines of JSON, if they are wanted."""
        if self.json == STANDARD_OUTPUT:
            sys.stdout.write(text)
        elif self.json:
            with replacing(self.json) as unfinished:
                unfinished.write_text(text)

    def print_written(self, *paths: Path | None) -> None:
        """Say which files were written."""
        for path in paths:
            if path and path != STANDARD_OUTPUT:
                self.console.print(f"  wrote {escape(str(path))}")

    def of_image(self, i: int, images: list[str]) -> OutputFiles:
        """The files of one of several images: look-NAME.png, numbered where two images have the same name."""
        if len(images) == 1:
            return self
        stems = [Path(each).stem for each in images]
        name = stems[i] if stems.count(stems[i]) == 1 else f"{i + 1}-{stems[i]}"
        return OutputFiles(_with_suffix(self.png, name), _with_suffix(self.json, name))

    def of_question(self, i: int, count: int) -> OutputFiles:
        """The files of one of several questions: a picture each, look-1.png; the JSON is one for all."""
        return self if count == 1 else replace(self, png=_with_suffix(self.png, str(i + 1)))


def _with_suffix(path: Path | None, suffix: str) -> Path | None:
    if path is None or path == STANDARD_OUTPUT:
        return path
    return path.with_name(f"{path.stem}-{suffix}{path.suffix}")
