"""PP-OCRv6 as a recogniser: strips of text lines read by the package rapidocr, whose weights come with it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from homunculus.errors import InputError

MODEL = "PP-OCRv6_rec_small.onnx"
BATCH_PIXELS = 48 * 320 * 16  # strip pixels read at a time
MIN_WIDTH = 320  # pixels that strips are padded to at least, as in training
STEP = 32  # widths of a batch are multiples of this


class PPOCR:
    """Reads strips: call it with uint8 [n, 1, 48, W] and widths [n] to get (text, confidence) for each.

    It knows 18,710 characters and runs on the CPU by onnxruntime. Requires `pip install homunculus[ocr]`. No network
    is used.
    """

    height = 48

    def __init__(self) -> None:
        missing = [name for name in ("rapidocr", "onnxruntime") if find_spec(name) is None]
        if missing:
            raise InputError(f"PP-OCR needs {' and '.join(missing)}: pip install 'homunculus[ocr]'")
        self._recognizer = _recognizer()

    def __call__(self, strips: Tensor, widths: Tensor) -> list[tuple[str, float]]:
        """Texts and confidences of strips, read in batches of one width."""
        if strips.dtype != torch.uint8 or strips.ndim != 4 or strips.shape[1:3] != (1, self.height):
            raise InputError(f"strips must be uint8 [n, 1, {self.height}, W], got {strips.dtype} {list(strips.shape)}")
        wide = widths.clamp(1, strips.shape[3]).tolist()
        if len(wide) != len(strips):
            raise InputError(f"there are {len(strips)} strips but {len(wide)} widths")
        grey, found = strips[:, 0].cpu().numpy(), [("", 0.0)] * len(wide)
        for rows, columns in batches(wide, self.height):
            probs = self._recognizer.session(_normalized(grey, wide, rows, columns))
            lines, _ = self._recognizer.postprocess_op(probs)
            for row, (text, score) in zip(rows, lines, strict=True):
                found[row] = text.strip(), float(min(max(score, 0.0), 1.0)) if text.strip() else 0.0
        return found


def batches(widths: Sequence[int], height: int) -> list[tuple[list[int], int]]:
    """Rows of strips that are read together, and the width that they are padded to.

    A strip's own width alone decides its padding, so a reading does not depend on batch mates.
    """
    groups: dict[int, list[int]] = {}
    for row, width in enumerate(widths):
        groups.setdefault(max(MIN_WIDTH, -(-width // STEP) * STEP), []).append(row)
    found = []
    for columns, rows in sorted(groups.items()):
        count = max(1, BATCH_PIXELS // (height * columns))
        found += [(rows[i : i + count], columns) for i in range(0, len(rows), count)]
    return found


def _normalized(grey: np.ndarray[Any, Any], widths: Sequence[int], rows: list[int], columns: int) -> Any:
    """Strips as the network takes them, three equal channels from -1 to 1, 0 behind their ends. float32 [n, 3, H, W]"""
    batch = np.zeros((len(rows), 1, grey.shape[1], columns), np.float32)
    for place, row in enumerate(rows):
        batch[place, 0, :, : widths[row]] = grey[row, :, : widths[row]] / 127.5 - 1
    return np.repeat(batch, 3, 1)


def _recognizer() -> Any:
    """rapidocr's recogniser with the weights that its wheel carries."""
    import rapidocr
    from omegaconf import OmegaConf
    from rapidocr.ch_ppocr_rec import TextRecognizer

    logging.getLogger("RapidOCR").setLevel(logging.WARNING)
    folder = Path(rapidocr.__file__).parent
    weights = folder / "models" / MODEL
    if not weights.is_file():
        raise InputError(f"this rapidocr does not carry {MODEL}: pip install 'rapidocr>=3.10'")
    config = OmegaConf.load(folder / "config.yaml")
    config.Rec.engine_type = rapidocr.EngineType.ONNXRUNTIME
    config.Rec.engine_cfg = config.EngineConfig.onnxruntime
    config.Rec.engine_cfg.intra_op_num_threads = torch.get_num_threads()
    config.Rec.model_path = str(weights)
    return TextRecognizer(config.Rec)
