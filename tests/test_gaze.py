"""Agreement with gaze: maps worked by hand, and every measure against loops that say what it is."""

import itertools
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from homunculus import InputError
from homunculus.eval import gaze_agreement
from homunculus.eval.gaze import (
    auc_judd,
    auc_shuffled,
    cc,
    centre_prior,
    density,
    elsewhere,
    gaze_map,
    gaze_sets,
    kl,
    nss,
    painted,
)

DATA = Path(os.environ.get("HOMUNCULUS_DATA", "data"))

# ---- the definitions as loops -------------------------------------------------------------------------------------


def pixels_of(fixations) -> set[tuple[int, int]]:
    """Rows and columns, each once."""
    return {(math.floor(y), math.floor(x)) for x, y in fixations}


def looped_nss(values, fixations) -> float:
    cells = [float(v) for row in values for v in row]
    mean = sum(cells) / len(cells)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in cells) / len(cells))
    places = pixels_of(fixations)
    return sum((values[y][x] - mean) / deviation for y, x in places) / len(places) if max(cells) > min(cells) else 0.0


def brute_auc(positives, negatives) -> float:
    """The curve by counting at each threshold, then the area of its trapezoids."""
    points = [(0.0, 0.0)]
    for threshold in sorted({*positives, *negatives}, reverse=True):
        true = sum(v >= threshold for v in positives) / len(positives)
        false = sum(v >= threshold for v in negatives) / len(negatives)
        points.append((false, true))
    return sum((f1 - f0) * (t0 + t1) / 2 for (f0, t0), (f1, t1) in itertools.pairwise(points))


def brute_judd(values, fixations) -> float:
    places = pixels_of(fixations)
    others = [v for y, row in enumerate(values) for x, v in enumerate(row) if (y, x) not in places]
    return brute_auc([values[y][x] for y, x in places], others)


def counted_shuffled(values, fixations, others) -> float:
    pairs = [(values[y][x], values[v][u]) for y, x in pixels_of(fixations) for v, u in pixels_of(others)]
    return sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs) / len(pairs)


def looped_kl(values, density) -> float:
    eps, total, found = 2.0**-52, sum(map(sum, values)), 0.0
    for row, gazed in zip(values, density, strict=True):
        for v, g in zip(row, gazed, strict=True):
            share = g / sum(map(sum, density))
            found += share * math.log(eps + share / (v / total + eps))
    return found


def looped_density(fixations, height, width, sigma):
    found = [[0.0] * width for _ in range(height)]
    for x, y in fixations:
        for row in range(height):
            for column in range(width):
                away = (column - math.floor(x)) ** 2 + (row - math.floor(y)) ** 2
                found[row][column] += math.exp(-away / (2 * sigma**2))
    return np.array(found) / np.sum(found)


@st.composite
def looked_at(draw):
    """A small map with ties, fixations in it, and those of other images; never all pixels."""
    height, width = draw(st.integers(2, 5)), draw(st.integers(2, 5))
    values = draw(
        st.lists(st.lists(st.integers(0, 4), min_size=width, max_size=width), min_size=height, max_size=height)
    )
    place = st.tuples(st.floats(0, width - 0.01), st.floats(0, height - 0.01))
    fixations = draw(st.lists(place, min_size=1, max_size=height * width - 1))
    return np.array(values, dtype=float), fixations, draw(st.lists(place, min_size=1, max_size=9))


# ---- agreement ----------------------------------------------------------------------------------------------------

#  0 1 2
#  3 4 5   mean 4, variance (16+9+4+1+0+1+4+9+16) / 9 = 60/9
#  6 7 8
NINE = np.arange(9.0).reshape(3, 3)
TWO = np.array([[2.5, 2.0], [0.9, 1.2]])  # in the pixel of 8 and in that of 3


def test_worked_by_hand_on_nine_pixels():
    # 8 is 4 above the mean, 3 is 1 below: on average 1.5 above
    assert nss(NINE, TWO) == pytest.approx(1.5 / math.sqrt(60 / 9)) == pytest.approx(0.580948)
    # of the seven others 8 is above all, 3 is above 0, 1, 2: (7 + 3) / 14
    assert auc_judd(NINE, TWO) == pytest.approx(10 / 14)
    # others 4, 0, 8: 8 is above two and ties with one, 3 is above one: (2.5 + 1) / 6
    assert auc_shuffled(NINE, TWO, np.array([[1, 1], [0, 0], [2, 2]])) == pytest.approx(3.5 / 6)


def test_worked_by_hand_on_sixteen_pixels():
    # 1 1 0 0
    # 1 1 0 0    mean 3/8, variance (6 * 25 + 10 * 9) / 64 / 16 = 15/64
    # 0 0 0 0
    # 0 0 1 1
    values = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]])
    fixations = [[0, 0], [1.9, 1.1], [1.0, 1.0], [3, 0], [0, 3]]  # 1, 1, the same 1 again, 0, 0
    # two of four pixels at 1: (1/2 - 3/8) / sqrt(15/64) = 1 / sqrt(15)
    assert nss(values, np.array(fixations)) == pytest.approx(1 / math.sqrt(15))
    # twelve others, four at 1: a fixated 1 is above 8 and ties with 4, a fixated 0 ties with 8
    assert auc_judd(values, np.array(fixations)) == pytest.approx((2 * (8 + 2) + 2 * 4) / (4 * 12))


def test_correlation_and_divergence_by_hand():
    # off the means -1 -1 -1 3 and -1 1 -1 1: products 1 - 1 + 1 + 3 = 4, squares 12 and 4
    assert cc([[0, 0], [0, 4]], [[0, 2], [0, 2]]) == pytest.approx(4 / math.sqrt(48))
    assert cc(NINE, 3 * NINE + 2) == pytest.approx(1) and cc(NINE, -NINE) == pytest.approx(-1)
    # halves told as quarters: twice 1/2 log 2
    assert kl(np.ones((2, 2)), np.eye(2)) == pytest.approx(math.log(2))
    # quarters told as 1/2 1/4 1/8 1/8: 1/4 (log 1/2 + log 1 + 2 log 2) = 1/4 log 2
    assert kl([[4, 2], [1, 1]], [[1, 1], [1, 1]]) == pytest.approx(math.log(2) / 4)
    assert kl(NINE, NINE) == pytest.approx(0, abs=1e-12)
    # all of it where the map has nothing: log(1 / eps) = 52 log 2
    assert kl([[1, 0]], [[0, 1]]) == pytest.approx(52 * math.log(2))


def test_perfect_flat_and_opposite_maps():
    fixated = np.zeros((4, 5))
    fixated[1, 2] = fixated[3, 0] = 1
    places = np.array([[2.5, 1.5], [0.0, 3.0]])
    assert auc_judd(fixated, places) == 1 and auc_judd(-fixated, places) == 0
    assert nss(fixated, places) == pytest.approx(3) == -nss(-fixated, places)  # (1 - 1/10) / sqrt(9/100)
    flat = np.full((4, 5), 0.1)
    assert auc_judd(flat, places) == auc_shuffled(flat, places, places) == 0.5
    assert nss(flat, places) == cc(flat, fixated) == cc(fixated, flat) == 0


@given(looked_at())
def test_agreement_is_what_the_loops_say(case):
    values, fixations, others = case
    assert nss(values, np.array(fixations)) == pytest.approx(looped_nss(values, fixations), abs=1e-9)
    assert auc_judd(values, np.array(fixations)) == pytest.approx(brute_judd(values, fixations))
    found = auc_shuffled(values, np.array(fixations), np.array(others))
    assert found == pytest.approx(counted_shuffled(values, fixations, others))
    chosen = [[values[y, x] for y, x in pixels_of(points)] for points in (fixations, others)]
    assert found == pytest.approx(brute_auc(*chosen))


@given(looked_at())
def test_correlation_and_divergence_are_what_the_loops_say(case):
    values, fixations, _ = case
    gazed = density(np.array(fixations), values.shape, 1.5)
    if values.max() > values.min():
        expected = np.corrcoef(values.ravel(), gazed.ravel())[0, 1]
        assert cc(values, gazed) == pytest.approx(expected, abs=1e-9)
    assert kl(values + 0.1, gazed) == pytest.approx(looped_kl((values + 0.1).tolist(), gazed.tolist()), abs=1e-9)
    assert kl(values + 0.1, gazed) > -1e-9


@given(looked_at())
def test_only_order_matters_to_auc_and_only_shape_to_nss(case):
    values, fixations, others = case
    places, elsewhere = np.array(fixations), np.array(others)
    assert auc_judd(np.exp(values), places) == pytest.approx(auc_judd(values, places))
    assert auc_shuffled(values**3, places, elsewhere) == pytest.approx(auc_shuffled(values, places, elsewhere))
    assert nss(7 * values - 3, places) == pytest.approx(nss(values, places), abs=1e-9)
    assert nss(1e-200 * values, places) == pytest.approx(nss(values, places), abs=1e-9)


def test_tensors_are_maps_too():
    values, places = torch.arange(9).reshape(3, 3).float().requires_grad_(), torch.tensor(TWO)
    assert nss(values, places) == nss(NINE, TWO) and auc_judd(values, places) == auc_judd(NINE, TWO)
    assert cc(values, torch.eye(3)) == cc(NINE, np.eye(3)) and kl(values, torch.eye(3)) == kl(NINE, np.eye(3))


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda: nss(np.ones(3), TWO), "finite numbers"),
        (lambda: nss(np.full((2, 2), np.nan), TWO), "finite numbers"),
        (lambda: nss(NINE, np.array([[3.0, 0.0], [-0.1, 1.0]])), "none of 2 fixations"),
        (lambda: auc_judd(NINE, np.zeros((0, 2))), "none of 0 fixations"),
        (lambda: nss(NINE, np.ones((2, 3))), "x, y"),
        (lambda: auc_judd(np.ones((1, 2)), np.array([[0, 0], [1, 0]])), "every pixel"),
        (lambda: cc(NINE, np.ones((2, 2))), "one size"),
        (lambda: kl(-NINE, NINE), "no less than 0"),
        (lambda: kl(NINE, np.zeros((3, 3))), "no less than 0"),
        (lambda: density(TWO, (3, 3), 0), "sigma"),
        (lambda: density(TWO, (1, 1), 1), "none of 2 fixations"),
        (lambda: centre_prior((3, 3), 0), "spread"),
    ],
)
def test_what_cannot_be_measured_says_so(measure, message):
    with pytest.raises(InputError, match=message):
        measure()


def test_fixations_outside_do_not_count():
    assert nss(NINE, np.concatenate((TWO, [[3, 3], [-1, 0], [0, 9]]))) == nss(NINE, TWO)


# ---- maps ---------------------------------------------------------------------------------------------------------


@given(looked_at(), st.floats(0.3, 4))
def test_density_is_a_sum_of_gaussians(case, sigma):
    values, fixations, _ = case
    found = density(np.array(fixations), values.shape, sigma)
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(found, looped_density(fixations, *values.shape, sigma), atol=1e-12)


def test_density_by_hand():
    # one step off the middle exp(-1/2), diagonally exp(-1)
    one, edge, corner = 1.0, math.exp(-0.5), math.exp(-1)
    expected = np.array([[corner, edge, corner], [edge, one, edge], [corner, edge, corner]])
    found = density(np.array([[1.2, 1.8]]), (3, 3), 1)
    np.testing.assert_allclose(found, expected / expected.sum())


def test_the_centre_prior_is_widest_where_the_image_is():
    found = centre_prior((60, 80))
    assert found.sum() == pytest.approx(1) and found.shape == (60, 80)
    np.testing.assert_allclose(found, found[::-1, ::-1])
    assert found[30, 60] / found[30, 40] == pytest.approx(found[45, 40] / found[30, 40], rel=0.03)  # a quarter off
    # pixel centres lie 20.5 across and 0.5 off the middle: exp(-(20.5² - 0.5²) / 2 / 20²)
    assert found[30, 60] / found[30, 40] == pytest.approx(math.exp(-420 / 800))
    alike = centre_prior((60, 80), isotropic=True)  # sigma 15 both ways
    assert alike[30, 60] / alike[30, 40] == pytest.approx(math.exp(-420 / 450))
    assert alike[45, 40] / alike[30, 40] == pytest.approx(math.exp(-(15.5**2 - 0.25) / 450))


def test_words_are_painted_the_highest_on_top():
    found = painted([((0, 0, 2, 1), 0.5), ((1, 0, 3.5, 2), 0.25), ((-5, 2, 1, 9), 1.0)], (3, 4))
    np.testing.assert_array_equal(found, [[0.5, 0.5, 0.25, 0.25], [0, 0.25, 0.25, 0.25], [1, 0, 0, 0]])


# ---- sets ---------------------------------------------------------------------------------------------------------


def write(folder: Path, name: str, *rows: dict) -> None:
    place = folder / name / "val"
    place.mkdir(parents=True)
    (place / "gaze.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def word(box: list[float], score: float) -> dict:
    return {"text": "x", "box": box, "score": score}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The three sets, in small."""
    about = {"qid": None, "question": None, "width": 8, "height": 6}
    viewers = [[[1, 2, 150.0], [7.9, 5.9, 200.0], [8.0, 1, 90.0]], [[0, 0, 99.0]]]  # one lies beside the image
    wide = {"image": "b.webp", "qid": None, "question": None, "width": 16, "height": 12, "fixations": [[[8, 6, 100.0]]]}
    write(tmp_path, "osie", {"image": "a.webp", **about, "fixations": viewers}, wide)
    task = {"image": "c.webp", **about, "question": "how many?", "fixations": [[[1, 2, None]], []]}
    write(tmp_path, "taskvis", task)
    trials = [
        {"pre_typing": [word([0, 0, 2, 1], 1.0), word([4, 2, 6, 4], 0.5)], "typing": [word([0, 0, 8, 6], 1.0)]},
        {"pre_typing": [word([4, 2, 6, 4], 1.0)], "typing": []},
        {"pre_typing": [], "typing": []},
    ]
    write(tmp_path, "docvqa_gaze", {"image": "d.webp", **about, "question": "who?", "word_scores": trials})
    return tmp_path


def test_sets_are_read(folder):
    free, wide, task, page = gaze_sets(folder)
    assert [gaze.dataset for gaze in (free, wide, task, page)] == ["osie", "osie", "taskvis", "docvqa_gaze"]
    assert free.image == folder / "osie" / "val" / "a.webp" and free.question is None and free.size == (6, 8)
    assert [viewer.tolist() for viewer in free.fixations] == [[[1, 2], [7.9, 5.9]], [[0, 0]]]
    assert len(free.points) == 3 and [len(viewer) for viewer in task.fixations] == [1, 0]
    assert page.words == (((0, 0, 2, 1), pytest.approx(1 / 3)), ((4, 2, 6, 4), pytest.approx(0.5)))
    assert gaze_sets(folder, ["taskvis"])[0].question == "how many?"


def test_gaze_becomes_a_map(folder):
    free, _, _, page = gaze_sets(folder)
    np.testing.assert_allclose(gaze_map(free, 2), density(free.points, (6, 8), 2))
    found = gaze_map(page)  # two pixels of 1/3, four of 1/2
    assert (
        found.sum() == pytest.approx(1) and found[0, 0] == pytest.approx(1 / 8) and found[3, 5] == pytest.approx(3 / 16)
    )
    assert (found > 0).sum() == 6


def test_elsewhere_is_on_other_images_of_the_set_in_this_size(folder):
    free, wide, task, page = found = gaze_sets(folder)
    assert elsewhere(found, free).tolist() == [[4, 3]]
    np.testing.assert_allclose(elsewhere(found, wide), [[2, 4], [15.8, 11.8], [0, 0]])
    assert elsewhere(found, task).shape == elsewhere(found, page).shape == (0, 2)


def test_sets_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="none of the sets osie"):
        gaze_sets(tmp_path)
    with pytest.raises(InputError, match="no set of gaze"):
        gaze_sets(tmp_path, ["osie"])
    write(tmp_path, "osie", {"image": "a.webp", "width": 8, "height": 6, "question": None, "fixations": [[[1, 2]]]})
    with pytest.raises(InputError, match="cannot be used"):
        gaze_sets(tmp_path)
    (tmp_path / "osie" / "val" / "gaze.jsonl").write_text('{"image": "a.webp"}\n')
    with pytest.raises(InputError, match="cannot be used"):
        gaze_sets(tmp_path)


@pytest.mark.skipif(not (DATA / "osie" / "val" / "gaze.jsonl").is_file(), reason="needs HOMUNCULUS_DATA")
def test_the_centre_of_osie_is_as_good_as_others_found():
    gazes = gaze_sets(DATA, ["osie"])[:60]
    prior = centre_prior(gazes[0].size, isotropic=True)
    assert np.mean([nss(prior, gaze.points) for gaze in gazes]) == pytest.approx(0.8, abs=0.08)
    assert np.mean([auc_judd(prior, gaze.points) for gaze in gazes]) == pytest.approx(0.72, abs=0.02)


def test_a_set_of_one_image_and_one_that_nobody_looked_at(tmp_path):
    place = tmp_path / "osie" / "val"
    place.mkdir(parents=True)
    Image.new("RGB", (64, 48), "white").save(place / "0.png")
    row = {"image": "0.png", "question": None, "height": 48, "width": 64}
    rows = [row | {"image": "none.png", "fixations": [[[900, 3, 100]], []]}, row | {"fixations": [[[30, 20, 100]]]}]
    (place / "gaze.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    (found,) = json.loads(gaze_agreement.measure(tmp_path, tmp_path, ["centre"]).read_text())["rows"]
    assert found["n"] == 1 and found["nss"] > 1 and "sauc" not in found  # no other image has fixations
