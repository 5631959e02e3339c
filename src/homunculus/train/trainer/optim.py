"""What moves the weights: Muon with matrices of one shape taken together, and all of a step as one graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the iteration that drives singular values towards 1
WARM = 3  # steps taken before they are captured


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
                self._together(params, group)

    def _together(self, params: list[Tensor], group: dict[str, Any]) -> None:
        grads = [p.grad for p in params]
        for p in params:
            if not self.state[p]:
                self.state[p]["momentum"] = torch.zeros_like(p)
        kept = [self.state[p]["momentum"] for p in params]
        torch._foreach_lerp_(kept, grads, 1 - group["momentum"])  # type: ignore[arg-type]
        ahead = torch._foreach_lerp(grads, kept, group["momentum"])  # type: ignore[arg-type]
        rate, side = group["lr"], max(params[0].shape)
        update = orthogonal(torch.stack(ahead)).to(params[0].dtype) * (-rate * 0.2 * side**0.5)
        torch._foreach_mul_(params, 1 - rate * group["weight_decay"])
        torch._foreach_add_(params, list(update))


class Update:
    """One step of training after its gradients are there: clip, move the weights, let their average follow.

    On a GPU hundreds of small launches, so it is captured as a graph once its first steps have been taken.
    """

    def __init__(self, weights: list[Tensor], average: list[Tensor], optimizers: list[Optimizer]) -> None:
        self.weights, self.average, self.optimizers = weights, average, optimizers
        self.params = [p for o in optimizers for group in o.param_groups for p in group["params"]]
        self.share = torch.zeros((), device=self.params[0].device)
        self.warm, self.done = WARM, 0
        self.graph: torch.cuda.CUDAGraph | None = None
        for group in self._groups() if self.share.is_cuda else ():
            group["lr"] = torch.zeros_like(self.share)  # a graph reads rates where they lie

    @torch.no_grad()
    def __call__(self, rate: float, share: float) -> None:
        """Step at a learning rate; the average takes a share of the way to the weights."""
        self.share.fill_(share)
        for group in self._groups():
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate * group["pace"])
            else:
                group["lr"] = rate * group["pace"]
        if not self.share.is_cuda or self.done < self.warm:
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
        apart = torch._foreach_sub(self.weights, self.average)
        torch._foreach_mul_(apart, self.share)
        torch._foreach_add_(self.average, apart)

    def _groups(self) -> list[dict[str, Any]]:
        return [group for optimizer in self.optimizers for group in optimizer.param_groups]


def orthogonal(matrices: Tensor, steps: int = 5) -> Tensor:
    """The nearest (semi-)orthogonal matrices, about: Newton-Schulz on [n, rows, columns].

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
