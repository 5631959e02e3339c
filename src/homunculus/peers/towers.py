"""What the vision tower of a VLM attends to, noted while it runs as it always does, for each visual token.

Late is the last layer whose output reaches the language model, early the one at a quarter of the depth. Where most
layers see windows only (Qwen2.5-VL), both are the nearest of those that see everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import isqrt
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.adapters.base import Family, Shown
from homunculus.adapters.qwen import Qwen
from homunculus.runtime.attention import attention_of, attention_probs, capture_attention

EARLY = 1 / 4  # of the depth
TOWERS = ("visual", "vision_tower", "vision_model")
CLASSES = ("class_embedding", "cls_token")  # what a class token begins as
ROOM = 1 << 26  # products of queries and keys that are held at once


class Noted(NamedTuple):
    """Of the tokens of one image: attention [n] of a late and of an early layer, keys [n, d] of the late one.

    Tokens that only end a row, bool ends [n], show nothing: they have the least attention of all and no key.
    """

    attention: Tensor
    early: Tensor
    keys: Tensor
    ends: Tensor


@dataclass(eq=False)
class Watch:
    """Two layers of a tower, and what was noted of them: [images or tiles, patches, ...] each time one ran."""

    late: Any
    early: Any
    first: bool  # whether a class token stands before the patches
    attention: list[Tensor] = field(default_factory=list)
    before: list[Tensor] = field(default_factory=list)  # the early layer's
    keys: list[Tensor] = field(default_factory=list)
    packed: tuple[list[int], tuple[Any, ...], dict[str, Any]] | None = None  # how tiles were joined to one grid

    def note(self, module: Any, query: Tensor, key: Tensor, mask: Tensor | None, scaling: float) -> None:
        """What one of the two layers attends to as it runs."""
        found = received(query, key, mask, scaling, self.first)
        if module is self.late:
            self.attention.append(found)
            self.keys.append(key.float().mean(1))
        if module is self.early:
            self.before.append(found)

    def patches(self) -> list[Tensor]:
        """Late attention, early attention and keys of all patches, without class tokens: [rows, n, 2 + d] each time."""
        parts = zip(self.attention, self.before, self.keys, strict=True)
        return [torch.cat((late[..., None], early[..., None], keys), 2)[:, self.first :] for late, early, keys in parts]


@contextmanager
def watching(family: Family) -> Iterator[Watch]:
    """While this lasts, the tower leaves behind what two of its layers attend to; the model is the same afterwards."""
    tower, modules = _attentions(family)
    late, early = _layers(family.model.config, modules[0].config, len(modules))
    first = any(name.rsplit(".", 1)[-1] in CLASSES for name, _ in tower.named_parameters())
    watch = Watch(modules[late], modules[early], first)
    observers = {module: partial(watch.note, module) for module in (watch.late, watch.early)}
    with _packing(family.base, watch), capture_attention(observers):
        yield watch


def _attentions(family: Family) -> tuple[Any, list[Any]]:
    """The vision tower, and the attention of each of its layers."""
    tower: Any = next(getattr(family.base, name) for name in TOWERS if hasattr(family.base, name))
    layers = next(part for part in tower.modules() if isinstance(part, torch.nn.ModuleList))
    return tower, [attention_of(layer) for layer in layers]


def _layers(config: Any, vision: Any, depth: int) -> tuple[int, int]:
    """Numbers of the late and of the early layer."""
    given = getattr(config, "vision_feature_layer", None)
    outputs = [-1] if given is None else [given] if isinstance(given, int) else list(given)
    last = max((depth + 1 + number if number < 0 else number) - 1 for number in outputs)
    seeing = list(getattr(vision, "fullatt_block_indexes", None) or range(depth))
    late = max((layer for layer in seeing if layer <= last), default=seeing[0])
    return late, min(seeing, key=lambda layer: abs(layer - int(depth * EARLY)))


@contextmanager
def _packing(base: Any, watch: Watch) -> Iterator[None]:
    """While this lasts, it is noted how a model joins its tiles, if it does."""
    usual = getattr(base, "pack_image_features", None)
    if usual is None:
        yield
        return

    def noting(tiles: Sequence[Tensor], *words: Any, **how: Any) -> Any:
        watch.packed = [len(image) for image in tiles], words, how
        return usual(tiles, *words, **how)

    base.pack_image_features = noting  # on the object: hides the method of its class
    try:
        yield
    finally:
        del base.pack_image_features


def received(query: Tensor, key: Tensor, allowed: Tensor | None, scale: float, first: bool) -> Tensor:
    """How much each place is attended to, mean over heads: by the first place, or on average by all that are there.

    query, key [B, heads, n, d], allowed bool [B, 1, n, n] -> [B, n]
    """
    count = query.shape[2]
    rows = 1 if first else count
    there = torch.ones(len(query), rows, device=query.device)
    if allowed is not None:
        allowed = allowed.expand(len(query), 1, count, count)
        there = there if first else allowed[:, 0].any(1).float()  # what none may see is not there
    total = torch.zeros(len(query), count, device=query.device)
    step = max(1, ROOM // (len(query) * query.shape[1] * count))
    for begin in range(0, rows, step):
        here = slice(begin, min(begin + step, rows))
        probs = attention_probs(query[:, :, here], key, None if allowed is None else allowed[:, :, here], scale)
        total += (probs * there[:, here, None]).sum(1)
    return total / there.sum(1, keepdim=True)


# ---- from patches to tokens ---------------------------------------------------------------------------------------


def of_tokens(family: Family, watch: Watch, shown: Shown) -> list[Noted]:
    """What was noted, for all tokens of each image that was shown meanwhile; one of several patches has their mean."""
    noted = []
    for image in _pooled(family, watch, shown, [len(features) for features in shown.seen.features]):
        ends = image[:, 0].isnan()
        attention = torch.where(ends[:, None], image[~ends, :2].amin(0), image[:, :2])
        noted.append(Noted(attention[:, 0], attention[:, 1], image[:, 2:].nan_to_num(), ends))
    return noted


def _pooled(family: Family, watch: Watch, shown: Shown, counts: Sequence[int]) -> Sequence[Tensor]:
    """Values of patches as those of tokens, [n, 2 + d] of each image; nan for ends of rows."""
    patches = watch.patches()
    if isinstance(family, Qwen):  # images one after the other, patches of a block one after the other
        every = torch.cat([image[0] for image in patches])
        blocks = every.view(-1, family.merge**2, every.shape[1]).mean(1)
        order = family._windows(shown.views).get("window_index")  # the tower goes window by window
        blocks = blocks if order is None else blocks[order.argsort().to(blocks.device)]
        return torch.split(blocks, list(counts))
    tiles = torch.cat(patches)  # [tiles, n, 2 + d]
    if watch.packed is not None:
        sizes, words, how = watch.packed
        ends = {"image_newline": torch.full_like(tiles[0, 0], torch.nan)}
        packed: list[Tensor] = family.base.pack_image_features(torch.split(tiles, sizes), *words, **(how | ends))[0]
        return packed
    (count, n, width), side = tiles.shape, isqrt(tiles.shape[1])
    image = tiles.mT.reshape(count, width, side, side)
    small = F.avg_pool2d(image, isqrt(n * count // sum(counts)))  # [tiles, 2 + d, rows, columns]
    return torch.split(small.flatten(2).mT.flatten(0, 1), list(counts))
