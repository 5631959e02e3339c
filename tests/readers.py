"""A reader small enough to be loaded many times, on disk, and a set of questions for it."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image, ImageDraw

from homunculus.reader import Scout
from homunculus.reader.language import fingerprint
from homunculus.reader.session import PageReader
from homunculus.reader.weights import SHIPPED, save, write_hashes
from speaking import loud_lora, small_language, tiny_language

SCOUT = {"width": 64, "depth": 2, "heads": 2, "joint": 96, "joint_depth": 1, "question_depth": 1}


def tiny_reader(folder: Path) -> tuple[Path, Path]:
    """Weights and language model of a reader that finds and reads lines as shipped; the rest of it is untrained."""
    language, weights = tiny_language(folder / "language"), folder / "weights"
    weights.mkdir()
    torch.manual_seed(0)
    save(Scout(**SCOUT), weights / "scout.safetensors", {"sizes": SCOUT})
    for name in ("finder", "recognizer"):
        shutil.copy(SHIPPED / f"{name}.safetensors", weights)
    lora = loud_lora()
    header = {"sizes": lora.sizes, "fits": fingerprint(small_language(300))}
    save(lora, weights / "lora.safetensors", header)
    write_hashes(weights)
    return weights, language


def pages(folder: Path, name: str = "funsd", count: int = 3) -> Path:
    """A set of pages with four lines each, and a question for each line whose place is known."""
    place = folder / name / "val"
    (place / "images").mkdir(parents=True)
    rows = []
    for n in range(count):
        page = Image.new("L", (300 + 40 * n, 400), 255)
        draw = ImageDraw.Draw(page)
        for line in range(4):
            draw.text((20, 30 + 90 * line), f"field {line} of {n}: {line * 17 + n}", fill=0)
            box = [20, 30 + 90 * line, 200, 45 + 90 * line]
            row = {"image": f"images/{n}.webp", "question": f"What is field {line}?", "answers": [str(line * 17 + n)]}
            rows.append(row | {"qid": f"{n}-{line}", "answer_boxes": [box]})
        page.save(place / "images" / f"{n}.webp", lossless=True)
    (place / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def count_work(reader: PageReader, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """What a reader does from now on: images searched for lines, pages that the scout encoded, strips that it read."""
    counts, recognizer = {"found": 0, "encoded": 0, "read": 0}, reader.recognizer

    def counting(name, call):
        def counted(*given):
            counts[name] += 1
            return call(*given)

        return counted

    class Counting:
        height = recognizer.height

        def __call__(self, strips, widths):
            counts["read"] += len(strips)
            return recognizer(strips, widths)

    monkeypatch.setattr(reader.finder, "find", counting("found", reader.finder.find))
    monkeypatch.setattr(reader.scout, "_encode_page", counting("encoded", reader.scout._encode_page))
    monkeypatch.setattr(reader, "recognizer", Counting())
    return counts
