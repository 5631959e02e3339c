"""Training pages: what is drawn is where the labels say."""

from dataclasses import fields, replace

import pytest
import torch
import torch.nn.functional as F

from homunculus.cells import CellTree
from homunculus.reader.letters import BLANK
from homunculus.reader.scout import QUESTION
from homunculus.train.pages import Labels, affine_theta
from homunculus.train.synth.drafts import random_affine, render
from training import CPU, draft_of, font, glyph, middle_of


@pytest.mark.parametrize("kind", ["letter", "form", "receipt", "sign"])
def test_labelled_letters_stand_on_ink(kind):
    torch.manual_seed(0)
    pages = render(draft_of(kind), font()[1], strength=0)
    assert pages.pixels.dtype == torch.uint8 and pages.pixels.shape == (3, 3, 320, 320)
    assert len(pages.levels) == CellTree(320, 320).levels
    contrasts = []
    for page, _, x, y, em in pages.labels.letters.tolist():
        left, top = max(0, int(x - 0.25 * em)), max(0, int(y - 0.35 * em))
        box = pages.pixels[int(page), :, top : int(y + 0.35 * em) + 1, left : int(x + 0.25 * em) + 1].float()
        if box.numel():
            contrasts.append(float((box.amax((1, 2)) - box.amin((1, 2))).max()))
    assert len(contrasts) > 10 and (torch.tensor(contrasts) > 0).float().mean() >= 0.95
    assert torch.tensor(contrasts).median() > 40


def test_a_letter_lies_at_its_label_after_the_tilt():
    draft = draft_of("letter", pages=1)
    rows = torch.tensor([glyph("o", x, 170, 30) for x in (50, 250)])
    labels = replace(
        draft.labels,
        letters=torch.tensor([[0, 80, x + 30 * float(font()[0].advance[0, 79]) / 2, 162, 30] for x in (50, 250)]),
    )
    draft = replace(draft, glyphs=rows, fills=torch.zeros(0, 7), strokes=torch.zeros(0, 7), labels=labels)
    for seed in range(8):
        torch.manual_seed(seed)
        pages = render(draft, font()[1], strength=0)
        page = pages.pixels[0].float().mean(0)
        ink = (page - page.median()).abs()
        ink = torch.where(ink > 0.5 * ink.max(), ink, 0.0)
        for half, (_, _, x, y, em) in zip((slice(0, 160), slice(160, 320)), pages.labels.letters.tolist(), strict=True):
            found_x, found_y = middle_of(ink[:, half])
            assert found_x + half.start == pytest.approx(x, abs=2) and found_y == pytest.approx(y, abs=2.5)
            assert 26 < em < 31


def test_moved_labels_are_those_of_moved_points():
    labels = draft_of("form").labels
    torch.manual_seed(0)
    matrix = random_affine(3, 320, 320, CPU)
    moved = labels.moved(matrix)

    def direct(page: int, x: float, y: float) -> list[float]:
        return (matrix[page, :, :2] @ torch.tensor([x, y]) + matrix[page, :, 2]).tolist()

    for before, after in zip(labels.letters[::17], moved.letters[::17], strict=True):
        page, _, x, y, em = before.tolist()
        growth = float(torch.linalg.det(matrix[int(page), :, :2])) ** 0.5
        assert after[2:4].tolist() == pytest.approx(direct(int(page), x, y), abs=1e-3)
        assert after[:2].tolist() == before[:2].tolist() and float(after[4]) == pytest.approx(em * growth, rel=1e-4)
    for page in range(3):
        for name in ("query_free", "answers"):
            before, after = (getattr(l, name)[page].reshape(-1, 4) for l in (labels, moved))
            full = (before[:, 2:] > before[:, :2]).all(1)
            assert full.any() and torch.equal(after[~full], torch.zeros_like(after[~full]))
            for old, new in zip(before[full], after[full], strict=True):
                middle = (new[:2] + new[2:]) / 2
                assert middle.tolist() == pytest.approx(direct(page, *((old[:2] + old[2:]) / 2).tolist()), abs=1e-3)
                size = (old[2:] - old[:2]) * matrix[page, :, :2].norm(dim=0)
                torch.testing.assert_close(new[2:] - new[:2], size, rtol=1e-3, atol=1e-3)
    still = torch.eye(2, 3).expand(3, 2, 3)
    for field in fields(Labels):
        torch.testing.assert_close(getattr(labels.moved(still), field.name), getattr(labels, field.name))


def test_questions_have_answers_inside_the_page():
    labels = draft_of("receipt").labels
    assert labels.questions.shape == (3, 8, QUESTION) and labels.answers.shape == (3, 8, 4, 4)
    asked = labels.questions[:, :, 0] != BLANK
    full = (labels.answers[..., 2:] > labels.answers[..., :2]).all(3)
    assert asked.sum() > 6 and torch.equal(full.any(2), asked)
    for boxes in (labels.answers, labels.query_free):
        assert (boxes >= 0).all() and (boxes <= 320).all()
    first = labels.first(1)
    assert len(first.answers) == 1 and (first.letters[:, 0] == 0).all() and len(first.letters) < len(labels.letters)


def test_the_same_seed_draws_the_same_pages():
    batches = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        batches.append(render(draft_of("table"), font()[1]))
    for field in fields(Labels):
        one, other = (getattr(batch.labels, field.name) for batch in batches[:2])
        assert (one is None and other is None) or torch.equal(one, other)
    assert torch.equal(batches[0].pixels, batches[1].pixels) and not torch.equal(batches[0].pixels, batches[2].pixels)


def test_a_known_shift_is_a_known_grid():
    image = torch.rand(1, 1, 24, 40)
    matrix = torch.tensor([[[1.0, 0, 5], [0, 1, 3]]])
    for target in ((24, 40), (30, 50)):
        theta = affine_theta(matrix, torch.tensor([[24, 40]]), target)
        grid = F.affine_grid(theta, [1, 1, *target], align_corners=False)
        found = F.grid_sample(image, grid, align_corners=False)[0, 0]
        expected = torch.zeros(target)
        part = image[0, 0, : target[0] - 3, : target[1] - 5]
        expected[3 : 3 + part.shape[0], 5 : 5 + part.shape[1]] = part
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    double = affine_theta(matrix * 2, torch.tensor([[24, 40]]), (48, 80))
    point = double[0] @ torch.tensor([2 * (2 * 12.0 + 10) / 80 - 1, 2 * (2 * 7.0 + 6) / 48 - 1, 1.0])
    torch.testing.assert_close(point, torch.tensor([2 * 12.0 / 40 - 1, 2 * 7.0 / 24 - 1]), rtol=0, atol=1e-5)
