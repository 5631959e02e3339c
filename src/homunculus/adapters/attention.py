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

from homunculus.adapters.base import Gridded, ImageFeatures, View, VLMRequest, as_pil
from homunculus.adapters.layout import ImageSpan, TokenRow, build_row, stack_rows
from homunculus.adapters.prefill import Prefill
from homunculus.allocators import allocate
from homunculus.cells import CellTree, Selection
from homunculus.errors import InputError
from homunculus.eye import Eye
from homunculus.relevance import Scene
from homunculus.runtime.attention import attention_of, attention_probs, capture_attention
from homunculus.runtime.decoder import cache_of
from homunculus.runtime.graphs import Replay

COARSE, SHARE = 64, 4  # tokens of the first pass: at most so many, and at most one in so many of the budget
MIDDLE = (1 / 3, 2 / 3)  # the layers whose attention counts, as shares of all


def prepare_by_attention(
    family: Gridded, prefill: Prefill, request: VLMRequest
) -> tuple[dict[str, Any], list[View]] | None:
    """Inputs with the cache of a coarse pass, and views, whose fine tokens lie where the model attends to in it.

    None where all tokens of all images are within the budget: there is nothing to choose.
    """
    if any(len(group) != 1 for group in request.images):
        raise InputError("relevance='attention' takes one image a question")
    if request.eye.budget < SHARE:
        raise InputError(f"relevance='attention' looks twice and needs a budget of at least {SHARE}")
    images, questions = zip(*request.pairs, strict=True)
    scenes = family.scenes(images)
    if all(request.eye.budget >= _cell_count(scene) for scene, _ in scenes):
        return None
    few = min(COARSE, request.eye.budget // SHARE)
    even = [_even_cells(scene, len(rows), min(few, _cell_count(scene))) for scene, rows in scenes]
    coarse = family.views_of(scenes, [(cells, None) for cells in even])
    spans = family.spans(coarse, family.start_position_ids(coarse, request.integer_positions))
    texts = family.tokenizer(request.texts)["input_ids"]
    begin, rest = _split_rows(texts, family.image_token, spans, spans)
    pad = family.tokenizer.pad_token_id or 0
    parts = [stack_rows(begin, pad), stack_rows(rest, pad, in_front=False)]
    known = parts[0]["input_ids"].shape[1]
    every = family.encode_images([as_pil(image) for image in images]) if request.where == "after" else None
    inputs = _join_inputs(family, parts, family.encode_views(coarse, images, request.where, every))
    if known not in prefill.passes:
        prefill.passes[known] = Replay(partial(_coarse_pass, prefill, known))
    first: CoarsePass = prefill.run(inputs, prefill.passes[known])
    eye = copy.copy(request.eye)
    eye.budget -= few
    chosen = _fine_cells(scenes, questions, eye, even, first.attention)
    fine = family.views_of(scenes, [(cells, None) for cells in chosen])
    more = family.spans(fine, family.start_position_ids(fine, request.integer_positions))
    position_ids = [torch.cat((a.position_ids, b.position_ids), -1) for a, b in zip(spans, more, strict=True)]
    both = [ImageSpan(1, span.position_count, ids) for span, ids in zip(spans, position_ids, strict=True)]
    begin, rest = _split_rows(texts, family.image_token, both, spans)
    encoded = family.encode_views(fine, images, request.where, every)
    ready = _join_inputs(family, [stack_rows(begin, pad), stack_rows(rest, pad)], encoded)
    return ready | {"past_key_values": cache_of(prefill.text.config, first.keys, first.values)}, fine


class CoarsePass(NamedTuple):
    """Keys and values of a text up to its coarse tokens, which stand last there, and what follows attends to [B, L]."""

    keys: Tensor
    values: Tensor
    attention: Tensor


def _coarse_pass(prefill: Prefill, known: int, ids: Tensor, attention_mask: Tensor, *more: Tensor) -> CoarsePass:
    """The coarse pass over texts that go on after `known` tokens."""
    with capture_middle_layers(prefill.text, known, attention_mask[:, known:]) as found:
        out = prefill.forward(ids, attention_mask, *more)
    attention = torch.stack(list(found.values())).mean(0)[:, :known]
    return CoarsePass(out.keys[:, :, :, :known], out.values[:, :, :, :known], attention)


def relevance_over_tree(tree: CellTree, attention: Tensor, coarse: Selection) -> Tensor:
    """Attention [B, K] to coarse cells that cover the image as relevance of all cells [B, N].

    Every place has that of the cell that it lies in, smoothed: cells have no sharp borders.
    """
    boxes = coarse.boxes.double()
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


def _fine_cells(
    scenes: Sequence[tuple[Scene, list[int]]],
    questions: Sequence[str],
    eye: Eye,
    coarse: Sequence[Selection],
    attention: Tensor,
) -> list[Selection]:
    """Cells of each scene by the attention [B, known] of its questions to the coarse cells, which stand last there."""
    chosen = []
    for (scene, rows), cells in zip(scenes, coarse, strict=True):
        if eye.budget >= _cell_count(scene):
            chosen.append(_even_cells(scene, len(rows), _cell_count(scene)))
            continue
        relevance = relevance_over_tree(scene.tree, attention[rows, -cells.mask.shape[1] :], cells)
        chosen.append(eye.choose(scene, [questions[i] for i in rows], relevance).in_rows())
    return chosen


def _even_cells(scene: Scene, count: int, budget: int) -> Selection:
    """The same cells for so many images, as even as can be: all of the finest if there is room for them."""
    even = torch.ones(count, scene.tree.size, device=scene.pixels.device)
    return allocate("grid" if budget == _cell_count(scene) else "dag", scene.tree, even, budget).in_rows()


def _cell_count(scene: Scene) -> int:
    rows, columns = scene.tree.shapes[0]
    return rows * columns


def _split_rows(
    texts: Sequence[Sequence[int]], image_token: int, spans: Sequence[ImageSpan], coarse: Sequence[ImageSpan]
) -> tuple[list[TokenRow], list[TokenRow]]:
    """Ids and positions of texts up to the coarse tokens of each image, and what follows."""
    begin, rest = [], []
    for text, span, first in zip(texts, spans, coarse, strict=True):
        ids, position_ids = build_row(text, image_token, iter([span]), span.position_ids.shape[:-1])
        cut = ids.index(image_token) + first.position_ids.shape[-1]
        begin.append((ids[:cut], position_ids[..., :cut]))
        rest.append((ids[cut:], position_ids[..., cut:]))
    return begin, rest


def _join_inputs(family: Gridded, parts: Sequence[dict[str, Tensor]], encoded: ImageFeatures) -> dict[str, Any]:
    """Parts of texts one behind the other, as inputs."""
    ready: dict[str, Any] = {
        name: torch.cat([part[name] for part in parts], -1).to(family.model.device) for name in parts[0]
    }
    return family.finish(ready | {"mm_encoder_outputs": {"image": family.model_output(encoded)}})
