"""Where the eye looks: centre, peaks that inhibit their surround, places that words name."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from homunculus import CellTree, InputError
from homunculus.fixation import centre, eccentricity, peak, pixels_per_degree, words


def bump(tree: CellTree, *places: tuple[float, float, float]) -> torch.Tensor:
    relevance = torch.zeros(1, tree.size, dtype=torch.float64)
    for x, y, height in places:
        away = (tree.centre - torch.tensor([x, y])).square().sum(1)
        relevance = relevance + height * torch.exp(-away / (2 * 60**2))
    return relevance


@given(st.integers(1, 2000), st.integers(1, 2000))
def test_a_flat_relevance_looks_near_the_middle_and_inside(height, width):
    tree = CellTree(height, width)
    (x, y), (cx, cy) = peak(tree, torch.ones(1, tree.size))[0, 0].tolist(), centre(tree)[0, 0].tolist()
    assert 0 <= x <= width and 0 <= y <= height
    assert abs(x - cx) <= 32 and abs(y - cy) <= 32


def test_peaks_come_best_first_and_the_next_lies_elsewhere():
    tree = CellTree(2000, 2000)
    relevance = bump(tree, (300, 400, 1.0), (1500, 1600, 0.8), (1700, 200, 0.6))
    found = peak(tree, relevance, 3)[0]
    expected = torch.tensor([[300, 400], [1500, 1600], [1700, 200]])
    assert ((found - expected).abs().amax(1) <= 32).all()
    assert torch.equal(peak(tree, relevance)[0, 0], found[0])
    crowd = peak(tree, bump(tree, (300, 400, 1.0), (380, 400, 0.99), (1500, 1600, 0.5)), 2)[0]
    assert (crowd[1] - torch.tensor([1500, 1600])).abs().amax() <= 32, "no inhibition of return"


def test_inhibition_reaches_as_far_as_told():
    tree = CellTree(2000, 2000)
    relevance = bump(tree, (1000, 1000, 1.0), (1250, 1000, 0.9), (200, 1800, 0.5))
    near, far = (peak(tree, relevance, 2, inhibition=d)[0, 1] for d in (0.5, 6.0))
    assert (near - torch.tensor([1250, 1000])).abs().amax() <= 64
    assert (far - torch.tensor([200, 1800])).abs().amax() <= 64
    with pytest.raises(InputError, match="inhibition"):
        peak(tree, relevance, 2, inhibition=0)
    with pytest.raises(InputError, match="count"):
        peak(tree, relevance, 0)


def test_cells_that_share_the_peak_share_the_place():
    tree = CellTree(320, 320, cell=32)
    finest = torch.arange(tree.size)[tree.at(0)]  # 10 x 10
    relevance = torch.zeros(1, tree.size).scatter(1, finest[[42, 43, 52, 53, 99]][None], 1.0)  # four adjoin, one is far
    assert peak(tree, relevance)[0, 0].tolist() == [96.0, 160.0]


def test_each_image_of_a_bucket_has_its_own_peak_inside_itself():
    bucket = CellTree.bucket([(100, 900), (700, 300)])
    found = peak(bucket, torch.ones(2, bucket.size))
    assert found.shape == (2, 1, 2)
    assert (found[:, 0] <= bucket.sizes.flip(1)).all()


def test_degrees_come_from_the_height_of_the_page():
    tree = CellTree(1000, 500)
    assert float(pixels_per_degree(tree)) == 50 and float(pixels_per_degree(tree, 10)) == 100
    e = eccentricity(tree, torch.tensor([[[16.0, 16.0], [400.0, 900.0]]]))[0]
    right = tree.locate(torch.tensor([[[70.0, 10.0]]]))[0, 0]
    assert float(e[right]) == pytest.approx(64 / 50), "distance to the nearer of two fixations"
    with pytest.raises(InputError, match="degrees"):
        pixels_per_degree(tree, 0)
    with pytest.raises(InputError, match="fixation is needed"):
        eccentricity(tree, torch.zeros(1, 0, 2))


def test_words_point_at_a_place():
    tree = CellTree(1000, 800)
    assert words(tree, "What is the total?") is None
    (x, y) = words(tree, "who signed at the bottom right")[0, 0].tolist()
    assert x > 500 and y > 700
    assert words(tree, "top left and bottom right").shape == (1, 2, 2)
