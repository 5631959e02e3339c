"""Drawn pages with words, and a plan in miniature, for the tests of the reader's training."""

import json
import random
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from lined import TEXTS

HEIGHT, WIDTH, SIZE = 352, 416, 20
FINDER = {"widths": [8, 8, 16, 16, 24], "neck": 8}
RECOGNIZER = {"stages": [8, 8, 16, 16], "width": 24, "depth": 1, "heads": 2}
STAGES = ("finder", "recognizer", "answer")
FIGURES = {
    "finder": {"core", "dice", "height", "offset", "turn", "hit"},
    "recognizer": {"ctc", "exact"},
    "answer": {"answer", "exact"},
}


def word_rows(draw: ImageDraw.ImageDraw, text: str, x: int, y: int) -> list[dict]:
    """Draws a line; its words with the boxes of their ink."""
    font, rows = ImageFont.load_default(SIZE), []
    draw.text((x, y), text, 0, font)
    for n, word in enumerate(text.split()):
        before = " ".join([*text.split()[:n], ""])
        rows.append({"text": word, "box": draw.textbbox((x + font.getlength(before), y), word, font)})
    return rows


def write_pages(root: Path, name: str = "docvqa", count: int = 14) -> Path:
    """A data folder of drawn pages with their words and a question about each."""
    folder, rng = root / name / "train", random.Random(name)
    (folder / "images").mkdir(parents=True)
    words, questions = [], []
    for n in range(count):
        page, number = Image.new("L", (WIDTH, HEIGHT), 255), str(rng.randint(10_000, 99_999))
        draw, rows = ImageDraw.Draw(page), []
        for place, text in enumerate(
            (f"Invoice number: {number}", rng.choice(TEXTS), f"field {n} of {name}", "Total 7")
        ):
            rows += word_rows(draw, text, 20, 24 + 80 * place)
        image = f"images/{name}{n}.png"
        page.save(folder / image)
        words.append({"image": image, "words": rows})
        questions.append({"image": image, "question": "What is the invoice number?", "answers": [number]})
    (folder / "words.jsonl").write_text("".join(json.dumps(row) + "\n" for row in words))
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    return folder


def plan_of(place: Path, folder: Path, language: Path, steps: int) -> Path:
    """A plan of all stages in miniature."""
    common = f"steps = {steps}\nwarmup = 1\nema = 0.5\nbatch = 1\nlog_every = 1\nval_every = 2\nreal = 0.5\n"
    common += "canvases = [{ height = 192, width = 256, batch = 2 }]\n"
    parts = [f'[sources]\nlanguage = "{language}"\nscans = ["{folder}"]\n']
    sizes = {"finder": FINDER, "recognizer": RECOGNIZER, "answer": {"rank": 2}}
    for stage in STAGES:
        entries = ", ".join(f"{name} = {json.dumps(value)}" for name, value in sizes[stage].items())
        parts.append(f"[{stage}]\n{common}sizes = {{ {entries} }}\n")
    path = place / f"plan{steps}.toml"
    path.write_text("\n".join(parts))
    return path
