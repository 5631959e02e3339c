import random

import numpy as np
import pytest

from homunculus.errors import InputError
from homunculus.train.synth.documents import wording
from homunculus.train.synth.layouts import KINDS, DrawnPage, Typefaces, lay_out, main, preview
from homunculus.train.synth.text import Texts

CANVASES = [(1024, 768), (1408, 640), (1792, 1408), (768, 1024), (320, 320)]
SEEDS = 20
WORKED = {"count", "compare", "yesno", "absent"}


def fonts() -> Typefaces:
    """Faces of differing width: narrow, wide, one pitch; some have a bold and an italic of their own."""
    rng = np.random.default_rng(0)
    base = rng.uniform(0.28, 0.75, 95)
    base[0] = 0.28
    names = ["Plain-Regular", "Plain-Bold", "Plain-Italic", "Roman", "Roman-Bold", "Typed", "Script", "Poster"]
    traits = ["sans", "sans", "sans", "serif", "serif", "mono", "hand", "display"]
    rows = [base * scale for scale in (1, 1.08, 0.97, 0.93, 1.02, 0, 0.85, 1.2)]
    rows[5] = np.full(95, 0.6)
    return Typefaces(np.array(rows, np.float32), traits, names)


TYPE = fonts()


def page(kind: str | None, height: int, width: int, seed: int) -> DrawnPage:
    return lay_out(kind, height, width, Texts.builtin(seed), TYPE, random.Random(seed))


def overlap(boxes: np.ndarray) -> np.ndarray:
    """Shared area of every two boxes as a share of the smaller one. [L, L], zero on and below the diagonal."""
    low, high = np.maximum(boxes[:, None, :2], boxes[None, :, :2]), np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = (high - low).clip(0).prod(2)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    return np.triu(shared / np.minimum(area[:, None], area[None]), 1)


def check_boxes(layout: DrawnPage) -> None:
    for boxes in (layout.word_boxes, layout.line_boxes):
        assert (boxes >= 0).all() and (boxes[:, 2] <= layout.width).all() and (boxes[:, 3] <= layout.height).all()
        assert (boxes[:, 2:] > boxes[:, :2]).all()
    for array in (layout.fills, layout.strokes):
        assert array.shape[1] == 6 and np.isfinite(array).all()
    shared = overlap(layout.line_boxes)
    worst = np.unravel_index(shared.argmax(), shared.shape)
    assert shared[worst] <= 0.3, [layout.lines[index] for index in worst]


def check_text(layout: DrawnPage) -> None:
    code, font, x, y, size, ink, word = layout.glyphs.T
    assert len(layout.words) == len(layout.word_boxes) == len(layout.word_lines)
    joined: list[list[str]] = [[] for _ in layout.words]
    for letter, index in zip(code.astype(int), word.astype(int), strict=True):
        joined[index].append(chr(letter + 33))
    assert ["".join(letters) for letters in joined] == layout.words
    held: list[list[str]] = [[] for _ in layout.lines]
    for text, line in zip(layout.words, layout.word_lines, strict=True):
        held[line].append(text)
    assert [" ".join(words) for words in held] == layout.lines
    box = layout.word_boxes[word.astype(int)]
    assert (x >= box[:, 0] - 0.1).all() and (x < box[:, 2]).all() and ((y > box[:, 1]) & (y < box[:, 3])).all()
    assert (code >= 0).all() and (code < 94).all() and (font >= 0).all() and (font < len(TYPE.names)).all()
    assert (size >= 8).all() and (np.abs(ink) <= 1).all() and (ink != 0).all()


def check_questions(layout: DrawnPage) -> None:
    seen: dict[str, tuple[list[int], str]] = {}
    for question, words, sort, answer in layout.questions:
        assert question.isascii() and 0 < len(question) <= 120 and sort and answer
        assert "{" not in question.replace("{", "", "".join(layout.lines).count("{"))
        assert all(0 <= word < len(layout.words) for word in words) and len(set(words)) == len(words)
        assert words or sort in WORKED
        assert seen.setdefault(question, (words, answer)) == (words, answer)
        if sort == "search":
            text = " ".join(layout.words[word] for word in words).rstrip(".,:;").lower()
            assert text in question.lower()
            assert "\n".join(layout.lines).lower().count(text) == 1


@pytest.mark.parametrize("height, width", CANVASES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_holds_what_it_says(kind: str, height: int, width: int) -> None:
    asked = []
    for seed in range(SEEDS):
        layout = page(kind, height, width, seed)
        assert layout.kind == kind and layout.words and len(layout.glyphs) < 3000
        check_boxes(layout)
        check_text(layout)
        check_questions(layout)
        asked.append(len(layout.questions))
    assert max(asked) <= 40 and np.mean(asked) >= (12 if height > 400 else 6)


def test_the_same_seed_gives_the_same_page() -> None:
    for kind in (*KINDS, None):
        first, second = page(kind, 1024, 768, 3), page(kind, 1024, 768, 3)
        assert first.words == second.words and first.questions == second.questions and first.kind == second.kind
        assert (first.glyphs == second.glyphs).all() and (first.strokes == second.strokes).all()
    assert page("form", 1024, 768, 3).words != page("form", 1024, 768, 4).words


def test_a_label_is_asked_by_its_words_and_by_what_it_means() -> None:
    rng = random.Random(0)
    asked = set(wording.key_phrases("Inv. No.:", rng, "invoice", 300))
    assert "What is the value of the field 'Inv. No'?" in asked and "What is the invoice number?" in asked
    assert len(asked) > 60
    senders = {question.lower().strip(" ?") for question in wording.key_phrases("FROM:", rng, "memo", 300)}
    assert "who sent this memo" in senders


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InputError, match="kind must be one of letter"):
        page("poem", 320, 320, 0)


def test_the_preview_shows_a_page(tmp_path, capsys) -> None:
    layout = page("form", 320, 320, 0)
    ink = np.asarray(preview(layout)).min(2) < 128
    x0, y0, x1, y1 = layout.line_boxes[0].astype(int)
    assert ink[y0:y1, x0:x1].any()
    assert main(["--kind", "receipt", "--out", str(tmp_path / "page.png")]) == 0
    assert (tmp_path / "page.png").exists() and "->" in capsys.readouterr().out
