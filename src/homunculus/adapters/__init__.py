"""A fixed budget of visual tokens inside the VLMs that people use, before their vision tower or after it.

    vlm = homunculus.adapters.wrap(model, processor)
    inputs = vlm.prepare(images, questions, budget=273, where="before")
    model.generate(**inputs)

The model stays as it was: all that is done is done to its inputs.
"""

from __future__ import annotations

from typing import Any

from homunculus.adapters.base import Family
from homunculus.adapters.llava import Llava
from homunculus.adapters.qwen import Qwen2, Qwen3, Qwen25
from homunculus.adapters.tiled import Gemma3, Idefics3, InternVL, LlavaNext
from homunculus.adapters.vlm import VLM
from homunculus.errors import InputError

__all__ = ["VLM", "Family", "list_families", "wrap"]

FAMILIES: dict[str, type[Family]] = {
    "qwen3_vl": Qwen3,
    "qwen2_5_vl": Qwen25,
    "qwen2_vl": Qwen2,
    "llava": Llava,
    "llava_next": LlavaNext,
    "llava_onevision": LlavaNext,
    "internvl": InternVL,
    "smolvlm": Idefics3,
    "idefics3": Idefics3,
    "gemma3": Gemma3,
}


def list_families() -> list[str]:
    """Model types that `wrap` knows, as their configs name them."""
    return list(FAMILIES)


def wrap(model: Any, processor: Any) -> VLM:
    """A Hugging Face VLM with its processor, ready to be given a fixed budget."""
    kind = getattr(getattr(model, "config", None), "model_type", None)
    if kind not in FAMILIES:
        raise InputError(f"there is no adapter for models of type {kind!r}; there are {', '.join(FAMILIES)}")
    return VLM(FAMILIES[kind](model, processor))
