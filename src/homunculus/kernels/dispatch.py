"""When a Triton kernel runs in place of its torch twin."""

import os
from importlib.util import find_spec

import torch
from torch import Tensor

_ENABLED = os.environ.get("HOMUNCULUS_KERNELS", "1") != "0"  # 0: torch alone, to compare with
_HAS_TRITON = (
    _ENABLED and find_spec("triton") is not None
)  # found, not imported: that takes long, and a CPU never needs it


def use_triton(x: Tensor) -> bool:
    """Whether Triton kernels can work on x: it lies on a GPU, and there is Triton."""
    return x.is_cuda and _HAS_TRITON


def capturing(x: Tensor) -> bool:
    """Whether what is done to x goes into a CUDA graph: then nothing may wait for its values, such as to check them."""
    return x.is_cuda and torch.cuda.is_current_stream_capturing()
