"""A PDF in a process of its own, for a page of few bytes can ask for hours of work: what takes too much ends with it.

Started by homunculus.studio.files with the PDF as its input; it imports nothing of this package, and is there at once.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
from typing import Any

import pypdfium2


def main() -> None:
    """Write what is known of the PDF as a line of JSON and, if asked for, the page as rows of RGB."""
    order = json.loads(sys.argv[1])
    with contextlib.suppress(ImportError):  # a system without limits
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (order["seconds"], order["seconds"]))
        resource.setrlimit(resource.RLIMIT_AS, (order["memory"], order["memory"]))
    try:
        about, rows = read(sys.stdin.buffer.read(), order)
    except pypdfium2.PdfiumError as error:
        about, rows = {"error": str(error)}, b""
    sys.stdout.buffer.write(json.dumps(about).encode() + b"\n")
    sys.stdout.buffer.write(rows)


def read(content: bytes, order: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Pages of the PDF, and of the one page its size and its rows; neither beyond the limits."""
    document = pypdfium2.PdfDocument(content)
    number, scale = order["page"], order["dpi"] / 72  # a PDF point is 1/72 inch
    about: dict[str, Any] = {"pages": len(document)}
    if number >= min(about["pages"], order["pages"]):
        return about, b""
    if order["draw"]:
        document.init_forms()  # without it, filled-in fields stay empty
    width, height = document.get_page_size(number)  # without a look at what is on it
    about |= {"width": math.ceil(width * scale), "height": math.ceil(height * scale)}
    if not order["draw"] or about["width"] * about["height"] > order["pixels"]:
        return about, b""
    bitmap = document[number].render(scale=scale, rev_byteorder=True)
    about |= {"width": bitmap.width, "height": bitmap.height, "stride": bitmap.stride, "channels": bitmap.n_channels}
    return about, bitmap.buffer


if __name__ == "__main__":
    main()
