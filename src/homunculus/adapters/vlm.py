"""A VLM of other people's with a fixed budget of visual tokens."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from homunculus import image as images
from homunculus.adapters.attention import prepare_by_attention
from homunculus.adapters.base import (
    EncodedPrompt,
    Family,
    Gridded,
    ImageInput,
    View,
    VLMRequest,
    as_pil,
    processor_errors,
)
from homunculus.adapters.crops import crops
from homunculus.adapters.layout import build_inputs
from homunculus.adapters.prefill import Prefill
from homunculus.errors import InputError, whole_number
from homunculus.eye import Eye, Glance, save
from homunculus.reader import load_scout
from homunculus.relevance import get_relevance
from homunculus.runtime.decoding import MIN_TEMPERATURE, SEEDS
from homunculus.viz import picture

Messages = Sequence[dict[str, Any]]


class Inputs(dict[str, Any]):
    """Inputs of a model's `forward` and `generate`, and the views of images that they show.

    There are no views where images are tiles or crops.
    """

    def __init__(self, inputs: Mapping[str, Any], views: Sequence[View] = ()) -> None:
        super().__init__(inputs)
        self.views = list(views)


@dataclass(frozen=True, eq=False)
class Reply:
    """What a VLM says to a question, the mean probability of its tokens, and what it was shown, if that is one grid."""

    text: str
    probability: float
    glance: Glance | None

    @property
    def how_sure(self) -> str:
        """The probability in words: it says less than a confidence that was learned."""
        return f"probability {self.probability:.0%}"

    def to_json(self) -> str:
        """One line of JSON."""
        shown = self.glance.to_dict() if self.glance else {}
        return json.dumps(shown | {"answer": self.text, "probability": self.probability}) + "\n"

    def picture(self) -> Image.Image:
        """The picture of what was shown, with the answer above it."""
        if self.glance is None:
            raise InputError("there is no picture of tiles and crops; leave out --png")
        return picture(self.glance, self.text)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture (.png, .jpg, .webp) or the numbers (.json)."""
        save(self, path)


class VLM:
    """A VLM that is given a fixed budget of visual tokens. `wrap` makes one."""

    def __init__(self, family: Family) -> None:
        self.family, self.model, self.processor = family, family.model, family.processor

    @cached_property
    def scout(self) -> Any:
        """The scout that comes with the package, on the model's device; loaded when first needed."""
        return load_scout(device=self.model.device)

    def prepare(
        self,
        images: Sequence[Any],
        questions: Sequence[str | Messages],
        budget: int = 273,
        where: str = "",
        allocator: str = "",
        relevance: str = "query",
        integer_positions: bool = False,
        scout: Any = True,
        **options: Any,
    ) -> Inputs:
        """Inputs for the model's `forward` and `generate`.

        Args:
            images: for each question an image (path, PIL, tensor) or several.
            questions: texts, or conversations as chat templates take them, with {"type": "image"} where the images are.
            budget: tokens of each image; with as many as it has, or more, the model sees what it always sees.
            where: "before" the vision tower, which then works on the chosen cells only, or "after" it, or "crops": a
                small copy and pieces in full resolution as ordinary images. The first that the family can, unless told.
            allocator, relevance, options: how to choose, see `homunculus.Eye`. "attention" is that of the model itself
                in a coarse first pass, whose tokens count; the inputs then hold its cache and serve one `generate`.
            integer_positions: round the positions of coarse cells, for models or engines that take no fractions.
            scout: finds what is asked for; True is the one that comes with the package, False does without.
        """
        where, allocator = self._checked(budget, where, allocator, relevance)
        texts, prompts, opened = self.parse(images, questions)
        known = "information" if relevance == "attention" else relevance
        scout = self.scout if scout is True and get_relevance(known).uses_scout else scout
        eye = Eye(allocator, known, budget, cell=self.family.cell, scout=scout, **options)
        if where == "crops":
            return self._cropped(questions, opened, eye)
        request = VLMRequest(texts, prompts, opened, eye, where, integer_positions)
        if relevance == "attention" and isinstance(self.family, Gridded):
            found = prepare_by_attention(self.family, self.prefill, request)
            if found is not None:
                return Inputs(*found)
        return self.to_inputs(self.family.encode_request(request))

    def parse(
        self, images: Sequence[Any], questions: Sequence[str | Messages]
    ) -> tuple[list[str], list[str], list[list[ImageInput]]]:
        """Texts with placeholders, the question of each, and its images, opened."""
        if isinstance(questions, str) or isinstance(images, (str, os.PathLike, Image.Image)):
            raise InputError("images and questions come in lists, an entry a question; put a single one into a list")
        if not questions:
            raise InputError("there is no question; give at least one")
        groups = [list(group) if isinstance(group, (list, tuple)) else [group] for group in images]
        texts = self._texts(groups, questions)
        return texts, [_last(question) for question in questions], [[_opened(one) for one in group] for group in groups]

    def to_inputs(self, prompt: EncodedPrompt) -> Inputs:
        """An encoded prompt as inputs of the model."""
        pad = self.family.tokenizer.pad_token_id or 0
        family = self.family
        made = build_inputs(prompt.input_ids, family.image_token, prompt.spans, pad, family.pad_guard)
        ready: dict[str, Any] = {name: value.to(self.model.device, non_blocking=True) for name, value in made.items()}
        ready["mm_encoder_outputs"] = {"image": family.model_output(prompt.encoded)}
        return Inputs(family.finish(ready), prompt.views)

    def _checked(self, budget: int, where: str, allocator: str, relevance: str) -> tuple[str, str]:
        """Where to choose and by which rule, if the family can do that."""
        kind, rules = self.model.config.model_type, self.family.rules
        where, allocator = where or self.family.where[0], allocator or (*rules, "foveated")[0]
        whole_number("budget", budget, 1)
        if where not in self.family.where:
            known = ", ".join(map(repr, self.family.where))
            raise InputError(f"where must be one of {known} for {kind} models, got {where!r}")
        if rules and allocator not in rules:
            raise InputError(
                f"{kind} models show tiles, of which only {', '.join(rules)} can choose, got {allocator!r}"
            )
        if relevance == "attention" and where == "crops":
            raise InputError("relevance='attention' looks before or after the tower, not at crops")
        if relevance == "attention" and not isinstance(self.family, Gridded):
            raise InputError(f"relevance='attention' is not there for {kind} models; use relevance='query'")
        return where, allocator

    def _texts(self, groups: Sequence[Sequence[Any]], questions: Sequence[str | Messages]) -> list[str]:
        """What the model is asked, with a placeholder for each of the images."""
        if len(groups) != len(questions):
            raise InputError(f"there are images for {len(groups)} questions but {len(questions)} questions")
        if not all(groups):
            raise InputError("every question needs at least one image")
        texts = [self._text(question, len(group)) for question, group in zip(questions, groups, strict=True)]
        for text, group in zip(texts, groups, strict=True):
            count = text.count(self.family.placeholder)
            if count != len(group):
                raise InputError(
                    f"a text has {count} placeholders for images, but {len(group)} images are given for it"
                )
        return texts

    def _cropped(self, questions: Sequence[str | Messages], images: Sequence[Sequence[ImageInput]], eye: Eye) -> Inputs:
        """Ordinary inputs, with the crops of each image in its place."""
        texts, groups = [], []
        for question, group in zip(questions, images, strict=True):
            if not isinstance(question, str):
                raise InputError("where='crops' takes questions as plain texts, not conversations")
            groups.append([crop.image for image in group for crop in crops(as_pil(image), question, eye.budget, eye)])
            texts.append(self._text(question, len(groups[-1])))
        how = {"padding": True, "padding_side": "left", "return_tensors": "pt"} | self.family.processor_kwargs()
        with processor_errors():
            made = self.processor(text=texts, images=groups, **how)
        return Inputs(made.to(self.model.device))

    @torch.no_grad()
    def ask(
        self,
        image: Any,
        questions: Sequence[str],
        max_new_tokens: int = 64,
        temperature: float = 0.0,
        seed: int = 0,
        **how: Any,
    ) -> list[Reply]:
        """Answers to questions about one image; `how` goes to `prepare`."""
        if isinstance(questions, str):
            raise InputError("questions come in a list; put a single one into a list")
        image, replies = _opened(image), []
        seed = whole_number("seed", seed, *SEEDS)
        sampling: dict[str, Any] = {"do_sample": temperature > MIN_TEMPERATURE}
        sampling |= {"temperature": temperature} if sampling["do_sample"] else {}
        for question in questions:
            inputs = self.prepare([image], [question], **how)
            torch.manual_seed(seed)
            replies.append(self.answer(inputs, question, max_new_tokens, **sampling))
        return replies

    @torch.no_grad()
    def answer(self, inputs: Inputs, question: str, max_new_tokens: int = 64, **sampling: Any) -> Reply:
        """What the model says to the prepared inputs of one question."""
        sampling |= {"output_logits": True, "return_dict_in_generate": True}
        out = self.generate(inputs, max_new_tokens=max_new_tokens, **sampling)
        new = out.sequences[0, inputs["input_ids"].shape[1] :]
        probs = torch.stack(out.logits, 1)[0].float().softmax(-1).gather(1, new[:, None])  # [n, 1]
        text = self.family.tokenizer.decode(new, skip_special_tokens=True).strip()
        view = inputs.views[0].glance(question) if inputs.views else None
        return Reply(text, float(probs.mean()), view)

    def generate(self, inputs: dict[str, Any], **how: Any) -> Any:
        """`model.generate`, also where the installed transformers does not take encoded images yet."""
        with self._injected(inputs) as ready:
            return self.model.generate(**ready, **how)

    @cached_property
    def prefill(self) -> Prefill:
        """The fast way to the first token: `logits, cache = vlm.prefill(inputs)`, captured as a CUDA graph on a GPU."""
        if "before" not in self.family.where:
            raise InputError(f"{self.model.config.model_type} models have no captured prefill; use generate")
        return Prefill(self.model, self.family.image_token)

    def __call__(self, inputs: dict[str, Any], **how: Any) -> Any:
        """`model.forward`, likewise."""
        with self._injected(inputs) as ready:
            if (cache := ready.get("past_key_values")) is not None:
                new = slice(cache.get_seq_length(), None)
                ready |= {name: ready[name][..., new] for name in ("input_ids", "position_ids")}
            return self.model(**ready, **how)

    def _text(self, question: str | Messages, count: int) -> str:
        """A question about images as the model is asked it, one placeholder for each image."""
        if isinstance(question, str):
            content = [{"type": "image"}] * count + [{"type": "text", "text": question}]
            question = [{"role": "user", "content": content}]
        if not question:
            raise InputError("a conversation is empty")
        if getattr(self.processor, "chat_template", None) is None:
            raise InputError("the processor has no chat template; set processor.chat_template to that of the model")
        return str(self.processor.apply_chat_template(list(question), add_generation_prompt=True, tokenize=False))

    @property
    def takes_features(self) -> bool:
        """Whether the model itself takes `prepare`'s inputs; else use `generate` and the call of this object."""
        return self.family.takes_features

    @contextmanager
    def _injected(self, inputs: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Inputs that the installed transformers can take; before 5.18 the model is lent its features meanwhile."""
        ready = dict(inputs)
        if "past_key_values" in ready:
            ready["past_key_values"] = copy.deepcopy(ready["past_key_values"])  # it grows
        if "mm_encoder_outputs" not in ready:
            yield ready
            return
        encoded = dict(ready.pop("mm_encoder_outputs"))
        if self.takes_features:
            yield ready | {"mm_encoder_outputs": encoded}  # a copy: generate adds to it
            return
        base = self.family.base
        base.get_image_features = lambda *_, **__: encoded["image"]  # on the object: hides the method of its class
        try:
            yield ready | {"pixel_values": torch.zeros(1, device=self.model.device, dtype=self.model.dtype)}
        finally:
            del base.get_image_features


def _opened(image: Any) -> ImageInput:
    if isinstance(image, Image.Image):
        return image.convert("RGB")
    if isinstance(image, Tensor) and image.dtype == torch.uint8 and image.ndim == 3 and len(image) == 3:
        return image
    return as_pil(images.load(image))


def _last(question: str | Messages) -> str:
    """What is asked last in a conversation."""
    if isinstance(question, str):
        return question
    for message in reversed(question):
        if message.get("role") == "user":
            content = message.get("content", "")
            parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
            return " ".join(filter(None, parts))
    raise InputError("a conversation has no message of the user")
