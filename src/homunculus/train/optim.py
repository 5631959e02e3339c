"""Muon with matrices of one shape taken together: the same update as `torch.optim.Muon`, in far fewer launches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the iteration that drives singular values towards 1


class Muon(Optimizer):
    """Momentum whose steps are made orthogonal, scaled so that AdamW's learning rates fit.

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
        kept = [self.state[p].setdefault("momentum", torch.zeros_like(p)) for p in params]
        torch._foreach_lerp_(kept, grads, 1 - group["momentum"])  # type: ignore[arg-type]
        ahead = torch._foreach_lerp(grads, kept, group["momentum"])  # type: ignore[arg-type]
        update = orthogonal(torch.stack(ahead))
        rate = group["lr"]
        torch._foreach_mul_(params, 1 - rate * group["weight_decay"])
        rows, columns = params[0].shape
        torch._foreach_add_(params, list(update.to(params[0].dtype)), alpha=-rate * 0.2 * max(rows, columns) ** 0.5)


def orthogonal(matrices: Tensor, steps: int = 5) -> Tensor:
    """The nearest (semi-)orthogonal matrices, about: Newton-Schulz in bfloat16 on [n, rows, columns]."""
    a, b, c = COEFFICIENTS
    x = matrices.bfloat16()
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    for _ in range(steps):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
