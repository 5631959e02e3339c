"""Published methods in other people's VLMs, after their vision tower: what `adapters` wraps, peers run on.

    vlm = homunculus.adapters.wrap(model, processor)
    inputs = homunculus.peers.vlms.prepare(vlm, images, questions, "visionzip", 64)
    reply, tokens = homunculus.peers.vlms.ask(vlm, image, question, "fastv", 64)

The tower sees all of the image. The model is not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from homunculus.adapters.base import EncodedPrompt, ImageFeatures, ImageInput, View, VLMRequest, as_pil
from homunculus.adapters.layout import ImageSpan
from homunculus.adapters.tiled import Tiled, TokenGrid
from homunculus.adapters.vlm import VLM, Inputs, Messages, Reply
from homunculus.errors import InputError, whole_number
from homunculus.eye import Eye
from homunculus.peers import BEFORE, INSIDE, list_peers
from homunculus.peers.base import Rule, VisualTokens
from homunculus.peers.layers import PrunedDecoder, TextState
from homunculus.peers.stages import InnerMethod, Stage, mean_tokens
from homunculus.peers.towers import TokenAttention, capture_tower, token_attention
from homunculus.relevance import Scene
from homunculus.runtime.decoder import embed_images, joined_features
from homunculus.runtime.decoding import decode

ALL = 1 << 40  # tokens, more than any image has


@torch.no_grad()
def prepare(vlm: VLM, images: Sequence[Any], questions: Sequence[str | Messages], peer: str, budget: int) -> Inputs:
    """Inputs with the tokens that a method leaves before the language model, as `vlm.prepare` makes them.

    Images and questions are as there. `budget` is for each image; one with fewer tokens is shown as it always is.
    """
    _known(peer)
    if peer not in BEFORE:
        raise InputError(f"{peer} works inside the language model, on all tokens of an image: use ask")
    return vlm.to_inputs(_reduced(vlm, images, questions, BEFORE[peer], whole_number("budget", budget)))


@torch.no_grad()
def ask(vlm: VLM, image: Any, question: str, peer: str, budget: int, max_new_tokens: int = 64) -> tuple[Reply, float]:
    """What a VLM answers under a method, always its likeliest words, and how many visual tokens that took.

    Of a method inside the language model that is the mean over all layers, and the budget is meant so too.
    """
    _known(peer)
    budget = whole_number("budget", budget)
    if peer not in INSIDE:
        prompt = _reduced(vlm, [image], [question], BEFORE[peer], budget)
        return vlm.answer(vlm.to_inputs(prompt), question, max_new_tokens, do_sample=False), float(_count(prompt))
    decoder = _text_decoder(vlm)
    depth = len(decoder.language.layers)
    prompt = _reduced(vlm, [image], [question], BEFORE.get(peer), entering(peer, depth, budget))
    method, count = INSIDE[peer], _count(prompt)
    plan, inputs = method.plan(depth, count, budget), vlm.to_inputs(prompt)
    if not plan:
        return vlm.answer(inputs, question, max_new_tokens, do_sample=False), float(count)
    ids, probs, left = _generate(decoder, inputs, method, plan, max_new_tokens)
    view = _fewer(inputs.views[0], left.nonzero()[:, 0]).glance(question) if inputs.views else None
    text = vlm.family.tokenizer.decode(ids, skip_special_tokens=True).strip()
    return Reply(text, sum(probs) / len(probs), view), mean_tokens(plan, depth, count)


def _known(peer: str) -> None:
    if not isinstance(peer, str) or peer not in list_peers():
        raise InputError(f"there is no peer {peer!r}; choose one of {', '.join(list_peers())}")


def entering(peer: str, depth: int, budget: int) -> int:
    """How many tokens a method leaves before the language model: more, if it drops some of them inside."""
    more = getattr(INSIDE.get(peer), "entering", None)
    return int(more(depth, budget)) if more else budget


# ---- before the language model ------------------------------------------------------------------------------------


def _reduced(
    vlm: VLM, images: Sequence[Any], questions: Sequence[str | Messages], rule: Rule | None, budget: int
) -> EncodedPrompt:
    """Images as the model has them, then what a rule leaves of each; without a rule, all."""
    family = vlm.family
    texts, prompts, opened = vlm.parse(images, questions)
    eye = Eye(family.rules[0] if family.rules else "grid", "information", ALL, cell=family.cell, scout=False)
    request = VLMRequest(texts, prompts, opened, eye, "after")
    if rule is None:
        return family.encode_request(request)
    with capture_tower(family) as capture:
        prompt = family.encode_request(request)
    tower = token_attention(family, capture, prompt)
    features, kept = [], []
    for i, ((image, question), attention) in enumerate(zip(request.pairs, tower, strict=True)):
        visual = _visual_tokens(vlm, prompt, i, image, question, attention)
        if budget <= int((~attention.newline).sum()):  # newlines go first, as in the adapters
            visual = replace(visual, mask=~attention.newline[None])
        tokens, index = rule(visual, budget)
        features.append(tokens[0])
        kept.append(index[0])
    deepstack = [[x[index] for x, index in zip(layer, kept, strict=True)] for layer in prompt.encoded.deepstack]
    views = [_fewer(view, index) for view, index in zip(prompt.views, kept, strict=True)] if prompt.views else []
    encoded = ImageFeatures(features, deepstack, prompt.encoded.output)
    return EncodedPrompt(prompt.input_ids, _spans(prompt, kept), encoded, views)


def _visual_tokens(
    vlm: VLM, prompt: EncodedPrompt, i: int, image: ImageInput, question: str, attention: TokenAttention
) -> VisualTokens:
    """What a method may know of one image."""
    tokens = prompt.encoded.features[i]
    if isinstance(vlm.family, Tiled):
        positions, grid = common_grid(vlm.family.grids(as_pil(image), len(tokens)))
    else:
        grid = prompt.views[i].grid
        number = torch.arange(len(tokens))
        positions = torch.stack((number // grid[1], number % grid[1]), 1).double()
    words = vlm.family.tokenizer(question, add_special_tokens=False)["input_ids"]
    embedded = vlm.model.get_input_embeddings()(torch.tensor(words, dtype=torch.long, device=tokens.device))
    return VisualTokens(
        tokens=tokens[None],
        keys=attention.keys[None],
        attention=attention.late[None],
        early=attention.early[None],
        question=embedded[None],
        question_mask=torch.ones(1, len(words), dtype=torch.bool, device=tokens.device),
        mask=torch.ones(1, len(tokens), dtype=torch.bool, device=tokens.device),
        positions=positions[None].to(tokens.device),
        grid=torch.tensor([grid], device=tokens.device),
    )


def common_grid(grids: Sequence[TokenGrid]) -> tuple[Tensor, tuple[int, int]]:
    """Row and column of the middle of each token [n, 2] in the grid of the finest tile, and the size of that.

    A newline stands where the token before it does.
    """
    finest = [grid for grid in grids if grid.columns]
    rows = max(round(grid.rows / (grid.box[3] - grid.box[1])) for grid in finest)
    columns = max(round(grid.columns / (grid.box[2] - grid.box[0])) for grid in finest)
    boxes = torch.cat([grid.boxes() for grid in grids])
    last = torch.where(boxes.isnan().any(1), 0, torch.arange(len(boxes))).cummax(0).values
    x0, y0, x1, y1 = boxes[last].unbind(1)
    positions = torch.stack(((y0 + y1) / 2 * rows - 0.5, (x0 + x1) / 2 * columns - 0.5), 1)
    return positions.round(decimals=6), (rows, columns)  # whole numbers where they are


def _spans(prompt: EncodedPrompt, kept: Sequence[Tensor]) -> list[ImageSpan]:
    """What stands in the place of each image or tile, with the kept tokens alone."""
    spans, queue = [], iter(prompt.spans)
    for features, index in zip(prompt.encoded.features, kept, strict=True):
        begin, tokens = 0, index.cpu()
        while begin < len(features):
            span = next(queue)
            end = begin + span.position_ids.shape[-1]
            own = tokens[(tokens >= begin) & (tokens < end)] - begin
            spans.append(ImageSpan(span.placeholders, span.position_count, span.position_ids[..., own]))
            begin = end
    return spans


def _fewer(view: View, index: Tensor) -> View:
    """A view of all of an image, less the cells that are not kept."""
    alone = Scene(view.scene.pixels[view.row : view.row + 1], view.scene.tree)
    return View(alone, view.selection.take(index[None].to(view.selection.boxes.device)), uniform=True)


def _count(prompt: EncodedPrompt) -> int:
    return sum(len(features) for features in prompt.encoded.features)


# ---- inside it ----------------------------------------------------------------------------------------------------


class TextDecoder(NamedTuple):
    """A VLM whose language model can be run layer by layer."""

    vlm: VLM
    language: Any

    def text(self, inputs: dict[str, Any]) -> TextState:
        """Prepared inputs as its first layer reads them."""
        ids, image_token = inputs["input_ids"], self.vlm.family.image_token
        features = joined_features(inputs["mm_encoder_outputs"]["image"])
        x, deepstack = embed_images(self.vlm.model.get_input_embeddings(), ids, image_token, features)
        return TextState.of(x, inputs["attention_mask"], ids == image_token, inputs["position_ids"], deepstack)

    def pruned(self) -> PrunedDecoder:
        """A new answer."""
        return PrunedDecoder(self.language, self.vlm.model.get_output_embeddings())


def _text_decoder(vlm: VLM) -> TextDecoder:
    """The language model of a VLM, if its layers can be run one by one."""
    base, kind = vlm.family.base, vlm.model.config.model_type
    language: Any = getattr(base, "language_model", None) or getattr(base, "text_model", None)
    if not all(hasattr(language, name) for name in ("layers", "norm", "rotary_emb")):
        raise InputError(f"the layers of {kind} models are not understood: use a peer before the language model")
    kinds = getattr(language.config, "layer_types", None) or []
    if getattr(language.config, "sliding_window", None) and (not kinds or "sliding_attention" in kinds):
        raise InputError(
            f"this {kind} model has layers with a sliding window, between which no tokens can be dropped: "
            "use a peer before the language model"
        )
    return TextDecoder(vlm, language)


def _generate(
    decoder: TextDecoder, inputs: dict[str, Any], method: InnerMethod, plan: Sequence[Stage], max_new_tokens: int
) -> tuple[list[int], list[float], Tensor]:
    """Tokens of an answer, their probabilities, and which visual tokens were left at last, bool [N]."""
    from transformers import RepetitionPenaltyLogitsProcessor

    model, ids, run = decoder.vlm.model, inputs["input_ids"], decoder.pruned()
    settings = model.generation_config
    penalty, stop = settings.repetition_penalty or 1.0, settings.eos_token_id
    penalised = RepetitionPenaltyLogitsProcessor(penalty)
    first, left = run.begin(decoder.text(inputs), method, plan)

    def next_logits(token: Tensor | None) -> Tensor:
        return first if token is None else run.step(model.get_input_embeddings()(token))

    def process(chosen: Tensor | None, logits: Tensor) -> Tensor:
        return penalised(ids if chosen is None else torch.cat((ids, chosen), 1), logits)

    stop_ids = [] if stop is None else [stop] if isinstance(stop, int) else list(stop)
    steps = list(decode(next_logits, stop_ids, max_new_tokens, process=process if penalty != 1.0 else None))
    return [step.ids[0] for step in steps], [step.probs[0] for step in steps], left[0]
