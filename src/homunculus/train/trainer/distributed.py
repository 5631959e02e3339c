"""Training on several GPUs: joining and leaving the processes that torchrun started."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist

from homunculus.errors import InputError
from homunculus.train.tasks.base import Rank


def rank_of() -> Rank:
    """Which process this is, by the environment that torchrun sets."""
    return Rank(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))


def set_up(device: str) -> torch.device:
    """The device to train on; joins the other processes when started by torchrun."""
    if rank_of().world > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
    if device == "cuda":
        if not torch.cuda.is_available():
            raise InputError("this machine has no CUDA device; use --device cpu")
        local = int(os.environ.get("LOCAL_RANK", 0))
        torch.cuda.set_device(local)
        return torch.device("cuda", local)
    if device != "cpu":
        raise InputError(f"device must be cuda or cpu, got {device!r}")
    return torch.device(device)


def take_down() -> None:
    """Leave the other processes."""
    if dist.is_initialized():
        dist.destroy_process_group()
