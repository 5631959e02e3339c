"""A fixed budget of visual tokens inside the VLMs that people use, before their vision tower or after it.

    vlm = homunculus.adapters.wrap(model, processor)
    inputs = vlm.prepare(images, questions, budget=273, where="before")
    model.generate(**inputs)

The model stays as it was: all that is done is done to its inputs.
"""

from __future__ import annotations

import os
from typing import Any

import torch

from homunculus.adapters.base import Family
from homunculus.adapters.llava import Llava
from homunculus.adapters.qwen import Qwen2, Qwen3, Qwen25
from homunculus.adapters.tiled import Gemma3, Idefics3, InternVL, LlavaNext
from homunculus.adapters.vlm import VLM
from homunculus.errors import InputError
from homunculus.reader.weights import device_of

__all__ = ["VLM", "Family", "list_families", "load", "wrap"]

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


def load(name: str | os.PathLike[str], device: str = "cpu") -> VLM:
    """A VLM from a folder or hub id, ready to be given a fixed budget; in bfloat16 on a GPU."""
    try:
        from transformers import AutoModelForImageTextToText, AutoProcessor
    except ImportError as error:
        raise InputError("other VLMs need transformers: pip install 'homunculus[hf]'") from error
    dtype = torch.bfloat16 if device_of(device).type == "cuda" else torch.float32
    try:
        processor = AutoProcessor.from_pretrained(name)
        model: Any = AutoModelForImageTextToText.from_pretrained(name, dtype=dtype, attn_implementation="sdpa")
    except (OSError, ValueError, ImportError) as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise InputError(f"cannot load a vision-language model from {name}: {reason}") from error
    return wrap(model.to(device).eval().requires_grad_(False), processor)


def wrap(model: Any, processor: Any) -> VLM:
    """A Hugging Face VLM with its processor, ready to be given a fixed budget."""
    kind = getattr(getattr(model, "config", None), "model_type", None)
    if kind not in FAMILIES:
        raise InputError(f"there is no adapter for models of type {kind!r}; there are {', '.join(FAMILIES)}")
    return VLM(FAMILIES[kind](model, processor))
