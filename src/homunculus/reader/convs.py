"""Convolutions that line finder and recogniser share."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

MOMENTUM = 0.02  # of the running statistics
M = TypeVar("M", bound=nn.Module)


class BatchNorm(nn.BatchNorm2d):
    """Batch norm without the count of batches: an integer among the weights could not be averaged."""

    def __init__(self, width: int, momentum: float) -> None:
        super().__init__(width, momentum=momentum)
        self.num_batches_tracked = None

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        nn.Module._load_from_state_dict(self, *args, **kwargs)  # torch's own would ask for the count


class ConvNorm(nn.Module):
    """3 x 3 convolution, batch norm, ReLU; residual where input and output have the same shape."""

    def __init__(self, source: int, width: int, stride: int | tuple[int, int] = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(source, width, 3, stride, 1, bias=False)
        self.norm: nn.Module = BatchNorm(width, momentum=MOMENTUM)
        self.residual = source == width and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        """x [B, source, h, w] -> [B, width, h', w']."""
        y = F.relu(self.norm(self.conv(x)), inplace=not self.training)
        return x + y if self.residual else y


class ConvStage(nn.Sequential):
    """A convolution that changes size or width, and `depth` residual ones behind it."""

    def __init__(self, source: int, width: int, stride: int | tuple[int, int], depth: int = 1) -> None:
        super().__init__(ConvNorm(source, width, stride), *(ConvNorm(width, width) for _ in range(depth)))

    def forward(self, x: Tensor) -> Tensor:
        """x [B, source, h, w] -> [B, width, h', w']."""
        return cast(Tensor, super().forward(x))


def fused(model: M) -> M:
    """The model for inference: every batch norm is folded into the convolution before it."""
    model.eval()
    for module in model.modules():
        if isinstance(module, ConvNorm) and isinstance(module.norm, nn.BatchNorm2d):
            module.conv = fuse_conv_bn_eval(module.conv, module.norm)
            module.norm = nn.Identity()
    return model
