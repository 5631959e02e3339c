"""Wear keeps the shape and range of pages, and is as strong as it says."""

import numpy as np
import pytest
import torch

from homunculus.train.synth import degradations
from homunculus.train.synth.drafts import render
from training import draft_of, font


def test_every_degradation_keeps_shape_and_range():
    torch.manual_seed(0)
    for channels in (1, 3):
        images = torch.rand(4, channels, 48, 64)
        ways = {
            "blur": lambda x: degradations.blur(x, degradations.uniform(x, 0.3, 1.3)),
            "downscale": lambda x: degradations.downscale(x, 0.5),
            "binarize": degradations.binarize,
            "fax": degradations.fax,
            "salt_and_pepper": degradations.salt_and_pepper,
            "jpeg": lambda x: degradations.jpeg(x, degradations.uniform(x, 8, 60)),
            "degrade": degradations.degrade,
        }
        for name, way in ways.items():
            found = way(images.clone())
            assert found.shape == images.shape and torch.isfinite(found).all(), name
            assert found.min() > -0.5 and found.max() < 1.5, name
            assert name == "salt_and_pepper" or not torch.equal(found, images), name
        assert degradations.degrade(images.clone()).min() >= 0 and degradations.degrade(images.clone()).max() <= 1
        assert torch.equal(degradations.degrade(images.clone(), strength=0), images)
        clouds = degradations.smooth_noise(images)
        assert clouds.shape == (4, 1, 48, 64) and abs(float(clouds.mean())) < 1 and 0.1 < float(clouds.std()) < 3
        still = torch.eye(2, 3).expand(4, 2, 3)
        torch.testing.assert_close(degradations.affine(images, still), images, rtol=0, atol=1e-4)


def test_good_jpeg_is_nearly_the_identity_and_bad_jpeg_is_not():
    torch.manual_seed(0)
    images = render(draft_of("letter"), font()[1], strength=0).pixels.float() / 255
    near, far = (degradations.jpeg(images, torch.full((3, 1, 1, 1), float(q))) for q in (95, 5))
    assert (near - images).abs().mean() < 0.02 < (far - images).abs().mean()


def test_blur_spreads_a_point_by_its_sigma():
    image = torch.zeros(2, 1, 21, 21)
    image[:, :, 10, 10] = 1
    found = degradations.blur(image, torch.tensor([0.01, 1.0]).view(2, 1, 1, 1))
    torch.testing.assert_close(found[0], image[0], rtol=0, atol=1e-4)
    x = torch.arange(21) - 10.0
    assert float((found[1, 0].sum(0) * x**2).sum()) == pytest.approx(1, rel=0.1)


def test_random_apply_changes_as_many_as_it_says():
    torch.manual_seed(0)
    changed = []
    for _ in range(200):
        images = torch.zeros(10, 1, 2, 2)
        assert degradations.random_apply(images, 0.25, lambda x: x + 1) is images
        changed.append(int(images[:, 0, 0, 0].sum()))
    assert set(changed) == {2, 3} and np.mean(changed) == pytest.approx(2.5, abs=0.12)
    assert degradations.random_apply(torch.zeros(10, 1, 2, 2), 0.5, lambda x: x + 1).sum() == 20
    assert degradations.random_apply(torch.zeros(10, 1, 2, 2), 0.0, lambda x: x + 1).sum() == 0
