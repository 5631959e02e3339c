"""The reader, or a wrapped VLM, as a model of lmms-eval.

    lmms-eval --model homunculus --model_args budget=273,allocator=foveated --tasks docvqa_val
    lmms-eval --model homunculus --model_args model=Qwen/Qwen3-VL-2B-Instruct,where=before --tasks docvqa_val

lmms-eval finds `manifest` through the entry point group `lmms_eval.models` and imports the class that it names.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import torch
from lmms_eval.api.model import lmms
from loguru import logger

from homunculus import image as images
from homunculus.adapters import VLM
from homunculus.adapters import load as load_vlm
from homunculus.errors import InputError, shown, whole_number
from homunculus.eye import Eye, Glance
from homunculus.reader import load_reader
from homunculus.reader.model import BATCH_SIZE, MAX_NEW_TOKENS, GenerationConfig, Reader
from homunculus.reader.session import Page, page_cache

if TYPE_CHECKING:  # lmms_eval.models imports this file: whichever is imported first must not wait for the other
    from lmms_eval.models.registry_v2 import ModelManifest

LOOK_ARGS = ("allocator", "relevance", "budget")  # what can be said about how the reader looks


def manifest() -> ModelManifest:
    """What lmms-eval is told: the name of the model and where its class is."""
    from lmms_eval.models.registry_v2 import ModelManifest

    return ModelManifest("homunculus", simple_class_path=f"{__name__}.Homunculus")


@dataclass(frozen=True)
class TaskGeneration:
    """How an answer is generated: sampled where the temperature is above 0, up to any of `until`."""

    max_new_tokens: int = MAX_NEW_TOKENS
    temperature: float = 0.0
    until: tuple[str, ...] = ()

    @classmethod
    def of(cls, kwargs: dict[str, Any]) -> TaskGeneration:
        """From the `generation_kwargs` of a task."""
        until, sampled = kwargs.get("until") or (), kwargs.get("do_sample")
        temperature = kwargs.get("temperature", 1.0 if sampled else 0.0)
        return cls(
            whole_number("max_new_tokens", kwargs.get("max_new_tokens", MAX_NEW_TOKENS)),
            0.0 if sampled is False else float(temperature or 0.0),
            tuple(filter(None, [until] if isinstance(until, str) else until)),
        )

    def cut(self, text: str) -> str:
        """A text up to where it is to end."""
        return text[: min(map(text.find, self.ends(text)), default=None)].strip()

    def ends(self, text: str) -> list[str]:
        """What of `until` a text holds."""
        return [end for end in self.until if end in text]


class ReaderModel:
    """The reader on many pages; the last ones stay open, so further questions about one do not take it in again."""

    takes_many_images = False

    def __init__(self, reader: Reader, **look: Any) -> None:
        unknown = sorted(look.keys() - set(LOOK_ARGS))
        if unknown:
            other = "; that is for wrapped models: add model=NAME" if unknown[0] == "where" else ""
            raise InputError(f"the reader knows no {unknown[0]!r}; it knows {', '.join(LOOK_ARGS)}{other}")
        Eye(scout=False, **look)  # wrong values are named now rather than at the first question
        self.reader, self.look = reader, look
        self.pages = page_cache()  # by pixels

    def __call__(self, questions: Sequence[tuple[str, list[Any]]], config: TaskGeneration) -> list[str]:
        """Answers to questions, each about the first of its images."""
        pages = [self.page(visuals[0]) for _, visuals in questions]
        glances = self._glances(pages, [text for text, _ in questions])
        seed = int(torch.randint(2**31, ()))  # from the evaluator's own: repeated questions are to differ
        generation = GenerationConfig(config.max_new_tokens, config.temperature, seed)
        texts: list[str] = []
        for answers in self.reader.reply(pages, glances, generation, every=bool(config.until)):
            texts = [answer.text for answer in answers]
            if all(map(config.ends, texts)):
                break
        return texts

    def page(self, image: images.Source) -> Page:
        """An opened image: the same page if its pixels were seen of late."""
        pixels = images.load(image)
        key = (*pixels.shape, hashlib.sha256(pixels.numpy().tobytes()).digest())
        if key not in self.pages:
            self.pages[key] = self.reader.open(pixels)
        return self.pages[key]

    def _glances(self, pages: Sequence[Page], questions: Sequence[str]) -> list[Glance]:
        """One look for each question; those about one page together."""
        found: dict[int, Glance] = {}
        for page in dict.fromkeys(pages):
            rows = [i for i, other in enumerate(pages) if other is page]
            found.update(zip(rows, page.looks([questions[i] for i in rows], **self.look), strict=True))
        return [found[i] for i in range(len(pages))]


class VLMModel:
    """A VLM under a budget. What it sees of a page depends on the question, so nothing of a page is kept."""

    takes_many_images = True

    def __init__(self, vlm: VLM, **look: Any) -> None:
        self.vlm, self.look = vlm, look

    @torch.no_grad()
    def __call__(self, questions: Sequence[tuple[str, list[Any]]], config: TaskGeneration) -> list[str]:
        """Answers to questions, each about all of its images."""
        inputs = self.vlm.prepare([visuals for _, visuals in questions], [text for text, _ in questions], **self.look)
        sampled = config.temperature > 0
        sampling = {"do_sample": True, "temperature": config.temperature} if sampled else {"do_sample": False}
        ids = self.vlm.generate(inputs, max_new_tokens=config.max_new_tokens, **sampling)
        new = ids[:, inputs["input_ids"].shape[1] :]
        return [text.strip() for text in self.vlm.family.tokenizer.batch_decode(new, skip_special_tokens=True)]


class Homunculus(lmms):  # type: ignore[misc]
    """`--model homunculus`. Its arguments are those of `--model_args`.

    Args:
        model: folder or hub id of a VLM to wrap; without one it is the reader that comes with the package.
        weights: folder of other weights for the reader.
        language: folder or hub id of another language model for the reader.
        device: a GPU if there is one, unless told.
        batch_size: questions answered at a time; "auto" is eight.
        max_batch_size: taken because lmms-eval gives it, and not used.
        look: allocator, relevance and budget; for a VLM all that `VLM.prepare` takes, such as where.
    """

    def __init__(
        self,
        model: str = "",
        weights: str = "",
        language: str = "",
        device: str = "",
        batch_size: int | str = 1,
        max_batch_size: int | None = None,
        **look: Any,
    ) -> None:
        super().__init__()
        self.device, self.batch_size = _device(device), _size(batch_size)
        if model and (weights or language):
            name, value = ("weights", weights) if weights else ("language", language)
            raise InputError(f"{name}={value} is for the reader, and model={model} is another: give one")
        self.answer: ReaderModel | VLMModel = (
            VLMModel(load_vlm(model, str(self.device)), **look)
            if model
            else ReaderModel(load_reader(weights or None, language or None, self.device), **look)
        )
        self.warned: set[str] = set()

    def generate_until(self, requests: list[Any]) -> list[str]:
        """Answers to the questions of tasks, in their order."""
        from lmms_eval.models.model_utils.progress import make_progress

        answers: list[str] = []
        progress = make_progress(total=len(requests), desc="Answering", disable=self.rank != 0)
        for config, batch in _batches(requests, self.batch_size):
            for request in batch:
                self._warn_of(request.args[1])
            texts = self.answer([self._question(*request.args) for request in batch], config)
            answers += map(config.cut, texts)
            progress.update(len(batch))
        progress.close()
        return answers

    def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
        """Not offered."""
        raise InputError(_none_of("loglikelihood"))

    def generate_until_multi_round(self, requests: list[Any]) -> list[str]:
        """Not offered."""
        raise InputError(_none_of("generate_until_multi_round"))

    def clean(self) -> None:
        """Let go of the model and its pages: the evaluator calls this when all is answered."""
        del self.answer
        super().clean()

    def _question(
        self, text: str, _: Any, visual_of: Callable[[Any], Any], doc: int, task: str, split: str
    ) -> tuple[str, list[Any]]:
        """The question of a request, and its images."""
        visuals = [visual for visual in visual_of(self.task_dict[task][split][doc]) or () if visual is not None]
        text = (text if self.answer.takes_many_images else bare(text, visual_of)).replace("<image>", "").strip()
        if not (visuals and text):
            missing = "question" if visuals else "image"
            raise InputError(f"document {doc} of {task} has no {missing}: homunculus answers questions about images")
        if len(visuals) > 1 and not self.answer.takes_many_images:
            self._warn(f"{task} has several images to a question: the reader looks at the first of them")
        return text, visuals

    def _warn_of(self, kwargs: dict[str, Any]) -> None:
        for name in ("num_beams", "top_p"):
            if kwargs.get(name) not in (None, 0, 1):
                self._warn(f"{name}={shown(kwargs[name])} is not offered and left out")

    def _warn(self, message: str) -> None:
        """Say something, once."""
        if message not in self.warned:
            self.warned.add(message)
            logger.warning(message)


def bare(text: str, visual_of: object) -> str:
    """A question less the `pre_prompt` and `post_prompt` of its task, which tell chat models what form to answer in.

    The reader always answers in few words, and would go and look for those.
    """
    prompts = getattr(getattr(visual_of, "__self__", None), "lmms_eval_specific_kwargs", None) or {}
    return text.removeprefix(prompts.get("pre_prompt") or "").removesuffix(prompts.get("post_prompt") or "")


def _batches(requests: Iterable[Any], size: int) -> Iterator[tuple[TaskGeneration, list[Any]]]:
    """Requests in their order, at most `size` at a time; those of a batch are generated in the same way."""
    for config, group in groupby(requests, key=lambda request: TaskGeneration.of(request.args[1])):
        alike = list(group)
        for first in range(0, len(alike), size):
            yield config, alike[first : first + size]


def _device(name: str) -> torch.device:
    """The device of that name, the GPU of this process if it is just cuda."""
    device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if str(device) == "cuda" else device


def _size(batch_size: int | str) -> int:
    if str(batch_size).startswith("auto"):
        return BATCH_SIZE
    return whole_number("batch_size", int(batch_size) if str(batch_size).isdecimal() else batch_size)


def _none_of(what: str) -> str:
    return f"homunculus offers no {what}: it answers one question at a time, in words; take tasks of generate_until"
