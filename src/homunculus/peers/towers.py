"""What the vision tower of a VLM attends to, captured while it runs as it always does, for each visual token.

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

from homunculus.adapters.base import EncodedPrompt, Family
from homunculus.adapters.qwen import Qwen
from homunculus.runtime.attention import attention_of, attention_probs, capture_attention

EARLY = 1 / 4  # of the depth
TOWERS = ("visual", "vision_tower", "vision_model")
CLASSES = ("class_embedding", "cls_token")  # what a class token begins as
ROOM = 1 << 26  # products of queries and keys that are held at once


class TokenAttention(NamedTuple):
    """Of the tokens of one image: attention [n] of a late and of an early layer, keys [n, d] of the late one.

    Newline tokens, bool newline [n], show nothing: they have the least attention of all and no key.
    """

    late: Tensor
    early: Tensor
    keys: Tensor
    newline: Tensor


@dataclass(eq=False)
class TowerCapture:
    """Two layers of a tower, and their attention and keys: [images or tiles, patches, ...] each time one ran."""

    late_module: Any
    early_module: Any
    has_class_token: bool  # before the patches
    late: list[Tensor] = field(default_factory=list)
    early: list[Tensor] = field(default_factory=list)
    keys: list[Tensor] = field(default_factory=list)
    packed: tuple[list[int], tuple[Any, ...], dict[str, Any]] | None = None  # how tiles were joined to one grid

    def note(self, module: Any, query: Tensor, key: Tensor, mask: Tensor | None, scaling: float) -> None:
        """Attention of one of the two layers, as it runs."""
        attention = received(query, key, mask, scaling, self.has_class_token)
        if module is self.late_module:
            self.late.append(attention)
            self.keys.append(key.float().mean(1))
        if module is self.early_module:
            self.early.append(attention)

    def patches(self) -> list[Tensor]:
        """Late attention, early attention and keys of all patches, without class tokens: [rows, n, 2 + d] each time."""
        parts = zip(self.late, self.early, self.keys, strict=True)
        values = (torch.cat((late[..., None], early[..., None], keys), 2) for late, early, keys in parts)
        return [value[:, self.has_class_token :] for value in values]


@contextmanager
def capture_tower(family: Family) -> Iterator[TowerCapture]:
    """While this lasts, attention and keys of two layers of the tower are captured as it runs."""
    tower, modules = _attentions(family)
    late, early = _layers(family.model.config, modules[0].config, len(modules))
    has_class_token = any(name.rsplit(".", 1)[-1] in CLASSES for name, _ in tower.named_parameters())
    capture = TowerCapture(modules[late], modules[early], has_class_token)
    observers = {module: partial(capture.note, module) for module in (modules[late], modules[early])}
    with _packing(family.base, capture), capture_attention(observers):
        yield capture


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
def _packing(base: Any, capture: TowerCapture) -> Iterator[None]:
    """While this lasts, how a model joins its tiles is captured, if it does."""
    usual = getattr(base, "pack_image_features", None)
    if usual is None:
        yield
        return

    def noting(tiles: Sequence[Tensor], *words: Any, **how: Any) -> Any:
        capture.packed = [len(image) for image in tiles], words, how
        return usual(tiles, *words, **how)

    base.pack_image_features = noting  # on the object: hides the method of its class
    try:
        yield
    finally:
        del base.pack_image_features


def received(query: Tensor, key: Tensor, mask: Tensor | None, scaling: float, first_only: bool) -> Tensor:
    """How much each token is attended to, mean over heads: by the first token, or on average by all that are there.

    query, key [B, heads, n, d], mask bool [B, 1, n, n] -> [B, n]
    """
    count = query.shape[2]
    rows = 1 if first_only else count
    weight = torch.ones(len(query), rows, device=query.device)
    if mask is not None:
        mask = mask.expand(len(query), 1, count, count)
        weight = weight if first_only else mask[:, 0].any(1).float()  # what none may see is not there
    total = torch.zeros(len(query), count, device=query.device)
    step = max(1, ROOM // (len(query) * query.shape[1] * count))
    for begin in range(0, rows, step):
        rows_slice = slice(begin, min(begin + step, rows))
        probs = attention_probs(query[:, :, rows_slice], key, None if mask is None else mask[:, :, rows_slice], scaling)
        total += (probs * weight[:, rows_slice, None]).sum(1)
    return total / weight.sum(1, keepdim=True)


# ---- from patches to tokens ---------------------------------------------------------------------------------------


def token_attention(family: Family, capture: TowerCapture, prompt: EncodedPrompt) -> list[TokenAttention]:
    """What was captured, for all tokens of each image of a prompt; a token of several patches has their mean."""
    found = []
    for image in _pooled(family, capture, prompt, [len(features) for features in prompt.encoded.features]):
        newline = image[:, 0].isnan()
        attention = torch.where(newline[:, None], image[~newline, :2].amin(0), image[:, :2])
        found.append(TokenAttention(attention[:, 0], attention[:, 1], image[:, 2:].nan_to_num(), newline))
    return found


def _pooled(family: Family, capture: TowerCapture, prompt: EncodedPrompt, counts: Sequence[int]) -> Sequence[Tensor]:
    """Values of patches as those of tokens, [n, 2 + d] of each image; nan for newlines."""
    patches = capture.patches()
    if isinstance(family, Qwen):  # images one after the other, patches of a block one after the other
        every = torch.cat([image[0] for image in patches])
        blocks = every.view(-1, family.merge**2, every.shape[1]).mean(1)
        order = family.windows(prompt.views).get("window_index")  # the tower goes window by window
        blocks = blocks if order is None else blocks[order.argsort().to(blocks.device)]
        return torch.split(blocks, list(counts))
    tiles = torch.cat(patches)  # [tiles, n, 2 + d]
    if capture.packed is not None:
        sizes, words, how = capture.packed
        newline = {"image_newline": torch.full_like(tiles[0, 0], torch.nan)}
        packed: list[Tensor] = family.base.pack_image_features(torch.split(tiles, sizes), *words, **(how | newline))[0]
        return packed
    (count, n, width), side = tiles.shape, isqrt(tiles.shape[1])
    image = tiles.mT.reshape(count, width, side, side)
    small = F.avg_pool2d(image, isqrt(n * count // sum(counts)))  # [tiles, 2 + d, rows, columns]
    return torch.split(small.flatten(2).mT.flatten(0, 1), list(counts))
