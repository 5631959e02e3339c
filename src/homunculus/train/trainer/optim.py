"""Optimizers: Muon with matrices of one shape in one batch, and a whole update as one CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from homunculus.reader.blocks import Block, LocalBlock
from homunculus.reader.scout import JointBlock
from homunculus.train.config import Recipe

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the iteration that drives singular values towards 1
WARMUP = 3  # updates before they are captured
MUON_LAYERS = (Block, LocalBlock, JointBlock)  # their matrices are Muon's
MUON_LR = 1.5  # learning rate of Muon in terms of AdamW's


class Muon(Optimizer):
    """Momentum whose steps are made orthogonal, scaled so that AdamW's learning rates fit: `torch.optim.Muon`'s update.

    Small networks have many matrices of few shapes; one after the other, as torch's own does it, a GPU waits for the
    launches of hundreds of tiny products. Here each shape is one batch.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 1e-3,
        weight_decay: float = 0.02,
        momentum: float = 0.95,
    ) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take a step for every parameter that has a gradient."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[Tensor]] = {}
            for p in group["params"]:
                if p.grad is not None:
                    shapes.setdefault(p.shape, []).append(p)
            for params in shapes.values():
                self._step_shape(params, group)

    def _step_shape(self, params: list[Tensor], group: dict[str, Any]) -> None:
        grads = [p.grad for p in params]
        for p in params:
            if not self.state[p]:
                self.state[p]["momentum"] = torch.zeros_like(p)
        momentum = [self.state[p]["momentum"] for p in params]
        torch._foreach_lerp_(momentum, grads, 1 - group["momentum"])  # type: ignore[arg-type]
        nesterov = torch._foreach_lerp(grads, momentum, group["momentum"])  # type: ignore[arg-type]
        lr, side = group["lr"], max(params[0].shape)
        update = orthogonal(torch.stack(nesterov)).to(params[0].dtype) * (-lr * 0.2 * side**0.5)
        torch._foreach_mul_(params, 1 - lr * group["weight_decay"])
        torch._foreach_add_(params, list(update))


class Update:
    """One update of the weights by their gradients: clip, optimizer steps, moving average.

    On a GPU these are hundreds of small launches, so they are captured as a graph after the first few.
    `torch.optim.swa_utils.AveragedModel` cannot be captured: it asks the device whether it has averaged before, and its
    decay is fixed, while this one grows over the first steps.
    """

    def __init__(self, weights: list[Tensor], average: list[Tensor], optimizers: list[Optimizer]) -> None:
        self.weights, self.average, self.optimizers = weights, average, optimizers
        self.params = [p for o in optimizers for group in o.param_groups for p in group["params"]]
        self.mix = torch.zeros((), device=self.params[0].device)  # 1 - decay of the average
        self.warmup, self.done = WARMUP, 0
        self.graph: torch.cuda.CUDAGraph | None = None
        for group in self._groups() if self.mix.is_cuda else ():
            group["lr"] = torch.zeros_like(self.mix)  # a graph reads learning rates from tensors

    @torch.no_grad()
    def __call__(self, lr: float, decay: float) -> None:
        """Update at a learning rate; the average keeps `decay` of what it was."""
        self.mix.fill_(1 - decay)
        for group in self._groups():
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr * group["lr_scale"])
            else:
                group["lr"] = lr * group["lr_scale"]
        if not self.mix.is_cuda or self.done < self.warmup:
            self._step()
        else:
            if self.graph is None:
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph):
                    self._step()
            self.graph.replay()
        self.done += 1

    def _step(self) -> None:
        torch.nn.utils.clip_grad_norm_(self.params, 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
        difference = torch._foreach_sub(self.weights, self.average)
        torch._foreach_mul_(difference, self.mix)
        torch._foreach_add_(self.average, difference)

    def _groups(self) -> list[dict[str, Any]]:
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]


def orthogonal(matrices: Tensor, steps: int = 5) -> Tensor:
    """Matrices [n, rows, columns] made about (semi-)orthogonal by Newton-Schulz iterations.

    On a GPU in bfloat16, which is enough; processors without it take ten times as long for that as for float32.
    """
    a, b, c = COEFFICIENTS
    x = matrices.bfloat16() if matrices.is_cuda else matrices.float()
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    for _ in range(steps):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


def build_optimizers(model: nn.Module, recipe: Recipe) -> list[Optimizer]:
    """Muon for the matrices inside layers and AdamW for the rest, or AdamW for all."""
    fast = next(model.parameters()).is_cuda
    learned = [p for p in model.parameters() if p.requires_grad]
    inside = {id(p) for m in model.modules() if isinstance(m, MUON_LAYERS) for p in m.parameters() if p.ndim == 2}
    matrices = [p for p in learned if id(p) in inside] if recipe.optimizer == "muon" else []
    taken = {id(p) for p in matrices}
    rest = [p for p in learned if id(p) not in taken]
    groups: list[dict[str, Any]] = [
        {"params": [p for p in rest if p.ndim >= 2], "weight_decay": recipe.weight_decay, "lr_scale": 1.0},
        {"params": [p for p in rest if p.ndim < 2], "weight_decay": 0.0, "lr_scale": 1.0},
    ]
    groups = [group for group in groups if group["params"]]
    adam = AdamW(groups, lr=recipe.lr, betas=(0.9, 0.98), fused=fast, capturable=fast)
    if not matrices:
        return [adam]
    return [Muon([{"params": matrices, "lr_scale": MUON_LR}], recipe.lr, recipe.weight_decay), adam]
