"""Intervals over whole pages and the share of flips, against a slow and plain writing of each."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homunculus import InputError
from homunculus.eval.metrics import across, interval, paired, resamples

PAGES = st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=3), min_size=1, max_size=6)


@given(PAGES)
def test_an_interval_resamples_whole_pages(pages):
    scores = [score for page in pages for score in page]
    groups = [f"page {i}" for i, page in enumerate(pages) for _ in page]
    means = []
    for drawn in resamples(len(pages)):
        sample = [score for page, times in zip(pages, drawn, strict=True) for score in page * int(times)]
        means.append(sum(sample) / len(sample))
    found = interval(scores, groups)
    assert found["value"] == pytest.approx(sum(scores) / len(scores))
    assert [found["low"], found["high"]] == pytest.approx(np.percentile(means, [2.5, 97.5]).tolist())


@given(PAGES, st.randoms(use_true_random=False))
def test_p_is_the_share_of_all_flips(pages, random):
    a = [score for page in pages for score in page]
    b = [random.choice([0.0, 0.25, 1.0]) for _ in a]
    groups = [i for i, page in enumerate(pages) for _ in page]
    gaps = [sum(x - y for x, y, g in zip(a, b, groups, strict=True) if g == page) for page in range(len(pages))]
    flips = itertools.product((-1, 1), repeat=len(pages))
    far = [abs(sum(s * gap for s, gap in zip(signs, gaps, strict=True))) >= abs(sum(gaps)) for signs in flips]
    found = paired(a, b, groups)
    assert found["p"] == pytest.approx(sum(far) / len(far))
    assert found["value"] == pytest.approx(sum(a) / len(a) - sum(b) / len(b))
    count = Counter((x > y) - (x < y) for x, y in zip(a, b, strict=True))
    assert [found["wins"], found["ties"], found["losses"]] == [count[1], count[0], count[-1]]
    back = paired(b, a, groups)
    assert back["p"] == found["p"] and back["value"] == -found["value"]
    assert (back["low"], back["high"]) == pytest.approx((-found["high"], -found["low"]))


def test_many_pages_are_flipped_at_random_but_always_the_same():
    gaps = [0.4, 0.1, -0.2, 0.3, 0.05, -0.1, 0.2, 0.15, -0.3, 0.1, 0.25, -0.05, 0.35, 0.0]
    signs = np.array(list(itertools.product((-1, 1), repeat=len(gaps))))
    share = (np.abs(signs @ gaps) >= sum(gaps) - 1e-9).mean()
    found = paired(gaps, [0.0] * len(gaps), range(len(gaps)))
    assert found["p"] == pytest.approx(share, abs=4 * (share * (1 - share) / 10_000) ** 0.5)
    assert found == paired(gaps, [0.0] * len(gaps), range(len(gaps)))
    sure = paired([1.0] * 30, [0.0] * 30, range(30))
    assert sure["p"] == 1 / 10_001 and sure["low"] == sure["high"] == sure["value"] == 1 and sure["wins"] == 30


def test_sets_count_alike_and_pages_are_resampled_within_them():
    large, small = ([0.5] * 1000, [0.4] * 1000, range(1000)), ([0.9] * 10, [0.6] * 10, range(10))
    sure = across([large, small])  # every page of a set says the same: nothing is uncertain
    assert [sure[name] for name in ("value", "low", "high")] == pytest.approx([0.2] * 3)
    assert (sure["wins"], sure["ties"], sure["losses"], sure["n"]) == (1010, 0, 0, 1010)
    unsure = ([1.0, 0.0] * 5, [0.0] * 10, range(10))
    alone, both = paired(*unsure), across([unsure, small])
    assert both["value"] == pytest.approx((alone["value"] + 0.3) / 2)
    assert [both["low"], both["high"]] == pytest.approx([(alone[name] + 0.3) / 2 for name in ("low", "high")])
    assert across([unsure, unsure])["low"] > alone["low"]  # two sets are drawn apart


def test_twelve_pages_that_all_win_and_none_that_differ():
    assert paired([1.0] * 12, [0.0] * 12, range(12))["p"] == 2 / 2**12
    same = paired([0.3, 0.6], [0.3, 0.1 + 0.5], ["x", "y"])
    assert same["p"] == 1 and same["value"] == 0 and same["ties"] == 2


@pytest.mark.parametrize(
    "arguments", [([], [], []), ([1.0], [1.0, 0.0], ["x"]), ([1.0], [1.0], ["x", "y"]), ([np.nan], [1.0], ["x"])]
)
def test_scores_must_be_of_the_same_questions(arguments):
    with pytest.raises(InputError, match="each question"):
        paired(*arguments)
