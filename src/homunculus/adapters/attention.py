"""Where the model itself looks: a coarse first pass with the question, whose attention tells where finer tokens pay.

The coarse tokens stand before the fine ones, so what the language model has made of them is kept: the second pass works
on the fine tokens and on what follows them alone.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.adapters.base import Encoded, Gridded, View, Wish, as_picture
from homunculus.adapters.layout import Row, Unit, row_of, stacked
from homunculus.adapters.prefill import Prefill
from homunculus.allocators import allocate
from homunculus.cells import CellTree, Selection
from homunculus.errors import InputError
from homunculus.relevance import Scene
from homunculus.runtime.attention import attention_of, attention_probs, capture_attention
from homunculus.runtime.decoder import cache_of
from homunculus.runtime.graphs import Replay

COARSE, SHARE = 64, 4  # tokens of the first pass: at most so many, and at most one in so many of the budget
MIDDLE = (1 / 3, 2 / 3)  # the layers whose attention counts, as shares of all


def attentive(family: Gridded, prefill: Prefill, wish: Wish) -> tuple[dict[str, Any], list[View]] | None:
    """Inputs whose fine tokens lie where the model attends to in a first pass, with the cache of that; and these.

    None where all tokens of all images are within the budget: there is nothing to choose.
    """
    if any(len(group) != 1 for group in wish.pictures):
        raise InputError("relevance='attention' takes one image a question")
    if wish.eye.budget < SHARE:
        raise InputError(f"relevance='attention' looks twice and needs a budget of at least {SHARE}")
    pictures, asked = zip(*wish.each, strict=True)
    scenes = family.scenes(pictures)
    if all(wish.eye.budget >= _cells(scene) for scene, _ in scenes):
        return None
    few = min(COARSE, wish.eye.budget // SHARE)
    looks = [_even(scene, len(rows), min(few, _cells(scene))) for scene, rows in scenes]
    coarse = family.views(scenes, [(look, None) for look in looks])
    units, texts = family.units(coarse, family.placed(coarse, wish.whole)), family.tokenizer(wish.texts)["input_ids"]
    begin, asking = _halves(texts, family.image_token, units, units)
    pad = family.tokenizer.pad_token_id or 0
    parts = [stacked(begin, pad), stacked(asking, pad, front=False)]
    known = parts[0]["input_ids"].shape[1]
    whole = family.encode([as_picture(picture) for picture in pictures]) if wish.where == "after" else None
    inputs = _joined(family, parts, family.see(coarse, pictures, wish.where, whole))
    if known not in prefill.passes:
        prefill.passes[known] = Replay(partial(_first_pass, prefill, known))
    first: Attended = prefill.run(inputs, prefill.passes[known])
    eye = copy.copy(wish.eye)
    eye.budget -= few
    chosen = []
    for (scene, rows), look in zip(scenes, looks, strict=True):
        relevance = over_tree(scene.tree, first.attention[rows, known - look.mask.shape[1] :], look)
        enough = eye.budget >= _cells(scene)
        asks = [asked[i] for i in rows]
        chosen.append(
            _even(scene, len(rows), _cells(scene)) if enough else eye.choose(scene, asks, relevance).in_rows()
        )
    fine = family.views(scenes, [(look, None) for look in chosen])
    more = family.units(fine, family.placed(fine, wish.whole))
    both = [Unit(1, a.whole, torch.cat((a.places, b.places), -1)) for a, b in zip(units, more, strict=True)]
    begin, asking = _halves(texts, family.image_token, both, units)
    ready = _joined(family, [stacked(begin, pad), stacked(asking, pad)], family.see(fine, pictures, wish.where, whole))
    return ready | {"past_key_values": cache_of(prefill.text.config, first.keys, first.values)}, fine


class Attended(NamedTuple):
    """Keys and values of a text up to its coarse tokens, which stand last there, and what follows attends to [B, L]."""

    keys: Tensor
    values: Tensor
    attention: Tensor


def _first_pass(prefill: Prefill, known: int, ids: Tensor, mask: Tensor, *more: Tensor) -> Attended:
    """The first pass over texts that go on after `known` tokens."""
    with capture_middle_layers(prefill.text, known, mask[:, known:]) as found:
        first = prefill.forward(ids, mask, *more)
    attention = torch.stack(list(found.values())).mean(0)[:, :known]
    return Attended(first.keys[:, :, :, :known], first.values[:, :, :, :known], attention)


def over_tree(tree: CellTree, attention: Tensor, look: Selection) -> Tensor:
    """Attention [B, K] to the cells of a look that covers the image as relevance of all cells [B, N].

    Every place has that of the cell that it lies in, smoothed: cells have no sharp borders.
    """
    boxes = look.boxes.double()
    rows, columns = tree.shapes[0]
    y, x = ((torch.arange(n, device=boxes.device) + 0.5) * tree.cell for n in (rows, columns))
    y, x = y.clamp(max=tree.height - 0.5), x.clamp(max=tree.width - 0.5)
    down = (y >= boxes[..., 1, None]) & (y < boxes[..., 3, None])  # [B, K, rows]
    along = (x >= boxes[..., 0, None]) & (x < boxes[..., 2, None])
    fine = torch.einsum("bk,bkr,bkc->brc", attention.float(), down.float(), along.float())
    smooth = F.avg_pool2d(fine[:, None], 3, 1, 1, count_include_pad=False)[:, 0]
    return tree.lift(smooth / smooth.amax((1, 2), keepdim=True).clamp(min=1e-12), how="max")


@contextmanager
def capture_middle_layers(text_model: Any, first: int, asks: Tensor) -> Iterator[dict[int, Tensor]]:
    """While this lasts, what the middle layers of a text model attend to from some positions, by layer. [B, L] each

    The mean over heads and over those of the positions from `first` on that are flagged in asks [B, rows].
    """
    found: dict[int, Tensor] = {}

    def note(layer: int, query: Tensor, key: Tensor, mask: Tensor | None, scaling: float) -> None:
        assert mask is not None  # of causal layers
        probs = attention_probs(query[:, :, first:], key, mask[:, :, first:], scaling)  # [B, rows, L]
        weight = asks.to(probs)[..., None]
        found[layer] = (probs * weight).sum(1) / weight.sum(1).clamp(min=1)

    begin, end = (int(len(text_model.layers) * share) for share in MIDDLE)
    middle = range(begin, max(begin + 1, end))
    with capture_attention({attention_of(text_model.layers[n]): partial(note, n) for n in middle}):
        yield found


def _even(scene: Scene, count: int, budget: int) -> Selection:
    """The same cells for so many images, as even as can be: all of the finest if there is room for them."""
    even = torch.ones(count, scene.tree.size, device=scene.pixels.device)
    return allocate("grid" if budget == _cells(scene) else "dag", scene.tree, even, budget).in_rows()


def _cells(scene: Scene) -> int:
    rows, columns = scene.tree.shapes[0]
    return rows * columns


def _halves(
    texts: Sequence[Sequence[int]], image_token: int, units: Sequence[Unit], first: Sequence[Unit]
) -> tuple[list[Row], list[Row]]:
    """Ids and positions of texts up to the tokens of each `first` unit, and what follows."""
    begin, rest = [], []
    for text, unit, coarse in zip(texts, units, first, strict=True):
        ids, places = row_of(text, image_token, iter([unit]), unit.places.shape[:-1])
        cut = ids.index(image_token) + coarse.places.shape[-1]
        begin.append((ids[:cut], places[..., :cut]))
        rest.append((ids[cut:], places[..., cut:]))
    return begin, rest


def _joined(family: Gridded, parts: Sequence[dict[str, Tensor]], seen: Encoded) -> dict[str, Any]:
    """Parts of texts one behind the other, as inputs."""
    ready: dict[str, Any] = {
        name: torch.cat([part[name] for part in parts], -1).to(family.model.device) for name in parts[0]
    }
    return family.finish(ready | {"mm_encoder_outputs": {"image": family.output(seen)}})
