"""The two ways in which input can be wrong. Both carry one sentence that says what to do."""

from __future__ import annotations

import operator
import reprlib
from typing import Any


class InputError(ValueError):
    """A value that cannot be used: its message names the value and what would be right."""


class ImageError(OSError):
    """An image that cannot be read: its message names the file and why."""


class TooLargeError(ImageError):
    """An image of more pixels than may be decoded."""


class BatchError(ImageError):
    """Some images of a list failed: `results` holds what the others gave, and in their places the errors."""

    def __init__(self, results: list[object]) -> None:
        failed = [result for result in results if isinstance(result, (ImageError, InputError))]
        reasons = "; ".join(str(error) for error in failed)
        super().__init__(f"{len(failed)} of {len(results)} images failed, the others are in `.results`: {reasons}")
        self.results = results

    def __reduce__(self) -> tuple[type[BatchError], tuple[list[object]]]:
        return type(self), (self.results,)


def whole_number(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """A value that must be a whole number, as Python's own int."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or (most is not None and number > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(f"{name} must be a whole number {bounds}, got {shown(value)}")
    return number


def shown(value: object) -> str:
    """A value as a message shows it: in one line, and not all of a long one."""
    return " ".join(reprlib.repr(value).split())
