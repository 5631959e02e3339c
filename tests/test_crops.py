"""A view as ordinary images: the whole, small, and pieces where the question looks."""

import pytest
import torch
from PIL import Image
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize
from typer.testing import CliRunner

from homunculus import Eye
from homunculus.adapters.crops import COSTS, best_windows, cost, crops, fit_grid, resized_size
from homunculus.cli import app


def page(width: int, height: int) -> Image.Image:
    """Empty but for noise in two places."""
    image = Image.new("RGB", (width, height), "white")
    lots = torch.Generator().manual_seed(0)
    for x, y in ((width // 8, height // 8), (3 * width // 4, 3 * height // 4)):
        noise = (torch.rand(60, 90, 3, generator=lots) * 255).byte().numpy()
        image.paste(Image.fromarray(noise), (x, y))
    return image


@pytest.mark.parametrize("size", [(1240, 1754), (2000, 333), (700, 701), (3000, 90)])
@pytest.mark.parametrize("budget", [1, 15, 40, 64, 273])
def test_all_pieces_together_keep_to_the_budget_and_lie_in_the_image(size, budget):
    found = crops(page(*size), "", budget, Eye(relevance="information", scout=False))
    assert sum(crop.tokens for crop in found) <= budget
    assert found[0].box == (0, 0, *size)
    for crop in found[1:]:
        x0, y0, x1, y1 = crop.box
        assert 0 <= x0 < x1 <= size[0] and 0 <= y0 < y1 <= size[1]
        assert crop.image.size == (x1 - x0, y1 - y0)  # in full resolution
        assert -(-crop.image.width // 32) * -(-crop.image.height // 32) <= crop.tokens


def test_pieces_lie_where_something_is():
    found = crops(page(1280, 1792), "", 273, Eye(relevance="information", scout=False))
    assert len(found) == 3
    centres = [(160 + 45, 224 + 30), (960 + 45, 1344 + 30)]
    for x, y in centres:
        assert any(c.box[0] <= x <= c.box[2] and c.box[1] <= y <= c.box[3] for c in found[1:])


def test_what_fits_is_shown_as_it_is():
    image = page(320, 256)
    (only,) = crops(image, "", 80, Eye(relevance="information", scout=False))
    assert only.image.tobytes() == image.tobytes() and only.tokens == 80


def test_windows_take_what_is_worth_most_and_nothing_twice():
    worth = torch.zeros(10, 20, dtype=torch.float64)
    worth[2, 3], worth[8, 15], worth[8, 16] = 5, 2, 2
    (one,), held = best_windows(worth, 24, 1)
    assert held == 5 and one[0] <= 2 < one[0] + one[2] and one[1] <= 3 < one[1] + one[3]
    two, held = best_windows(worth, 24, 2)
    assert held == 9 and all(rows * columns <= 12 for _, _, rows, columns in two)
    assert fit_grid(56, 44, 64) in ((9, 7), (8, 8)) and fit_grid(3, 94, 20) == (1, 20)


def test_costs_are_those_of_the_published_rules():
    assert cost("Qwen3-VL", [(2048, 2048)]) == 4096 and cost("Qwen2.5-VL", [(1288, 1792)]) == 46 * 64
    assert cost("GPT-4o", [(1024, 1024)]) == 765 and cost("GPT-4o", [(2048, 4096)]) == 1105
    assert cost("Claude", [(1000, 1000)]) == 1334 and cost("Gemini", [(300, 300)]) == 258
    assert cost("LLaVA-1.5", [(10, 10), (9, 9)]) == 1152 and len(COSTS) >= 6


@pytest.mark.parametrize("size", [(1, 1), (640, 480), (33, 300), (5000, 60), (9000, 7000), (310, 299), (45, 8999)])
def test_sizes_are_those_of_transformers(size):
    for side, limits in ((28, (56 * 56, 12_845_056)), (32, (256 * 256, 1024 * 1024))):
        assert resized_size(*size, side, *limits)[::-1] == smart_resize(*size[::-1], side, *limits)


def test_the_command_writes_the_images_and_says_what_they_cost(tmp_path):
    page(1240, 1754).save(tmp_path / "page.png")
    words = ["view", str(tmp_path / "page.png"), "What?", "--out", str(tmp_path / "view"), "--relevance", "information"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    names = sorted(path.name for path in (tmp_path / "view").iterdir())
    assert names[0] == "0-whole.png" and names[1:] == [f"{n}-piece.png" for n in range(1, len(names))]
    assert "Qwen3-VL: " in result.output and "the image itself 2145" in result.output
