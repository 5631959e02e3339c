"""Noise, images and PDF files written by hand, and their pixels, for the tests of loading."""

import io
import struct
import zlib

import numpy as np
import torch
from PIL import Image

NOISE = np.random.default_rng(0).integers(0, 256, (24, 17, 3), dtype=np.uint8)
WHITE, BLACK = (255, 255, 255), (0, 0, 0)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def at(pixels: torch.Tensor, row: int, column: int) -> tuple[int, ...]:
    return tuple(pixels[:, row, column].tolist())


def channels_first(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array.transpose(2, 0, 1).copy())


def png(width: int, height: int, depth: int, colour: int, rows: bytes | None, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG written by hand; without rows, only its header."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = [(b"IHDR", header), *chunks]
    if rows is not None:
        parts += [(b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    body = (struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


def pdf(trailer: bytes = b"", end: bytes = b"%%EOF") -> bytes:
    """A page of 72 x 36 points: its left half red, and at its right edge a form field shown in blue."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[5 0 R]>>>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 36]/Contents 4 0 R/Annots[5 0 R]>>",
        b"<</Length 26>>stream\n1 0 0 rg 0 0 36 36 re f   \nendstream",
        b"<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/F 4/Rect[60 0 72 36]/AP<</N 6 0 R>>>>",
        b"<</Type/XObject/Subtype/Form/BBox[0 0 12 36]/Length 26>>stream\n0 0 1 rg 0 0 12 36 re f   \nendstream",
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj%bendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(out)
    out += b"xref\n0 7\n0000000000 65535 f \n" + table
    return out + b"trailer<</Size 7/Root 1 0 R%b>>\nstartxref\n%d\n%b" % (trailer, start, end)


def gray(values: list[float], dtype: str) -> Image.Image:
    return Image.fromarray(np.array([values], dtype))
