"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from homunculus.errors import InputError

_COUNT = itertools.count()  # threads write into one folder at the same time


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name beside `path` to write to; it becomes `path` when all went well, and vanishes when not.

    Links are followed; what exists and is no ordinary file, such as a pipe or a device, is written to directly.
    """
    target, unfinished = Path(os.path.realpath(path)), None
    try:
        if not target.parent.is_dir():
            raise InputError(f"cannot write {path}: there is no folder {target.parent}")
        if target.is_dir():
            raise InputError(f"cannot write {path}: it is a folder")
        if target.exists() and not target.is_file():
            yield Path(path)
            return
        unfinished = target.with_name(f".unfinished-{os.getpid()}-{next(_COUNT)}{target.suffix[:16]}")
        yield unfinished
        unfinished.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if unfinished:
            unfinished.unlink(missing_ok=True)
