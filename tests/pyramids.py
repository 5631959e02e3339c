"""Noise, shapes and devices on which the tests of pyramids run, and how far two results are apart."""

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from homunculus.pyramid import SteerablePyramid

QUICK = settings(deadline=None, max_examples=80)

devices = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
shapes = st.tuples(st.lists(st.integers(1, 3), max_size=3), st.integers(1, 70), st.integers(1, 70)).map(
    lambda s: (*s[0], s[1], s[2])
)


def noise(*shape: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Tensor:
    rng = np.random.default_rng(sum(shape))
    return torch.from_numpy(rng.standard_normal(shape)).to(device, dtype)


def pixels(*shape: int, device: str = "cpu") -> Tensor:
    rng = np.random.default_rng(sum(shape))
    return torch.from_numpy(rng.integers(0, 256, shape, dtype=np.uint8)).to(device)


def relative(a: Tensor, b: Tensor) -> float:
    return float((a - b).norm() / b.norm())


def parts(pyramid: SteerablePyramid) -> list[Tensor]:
    return [pyramid.high, *pyramid.bands, pyramid.low]
