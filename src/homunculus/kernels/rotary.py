"""RMS norm and rotary positions of queries and keys in one launch: the Triton twin of `blocks.norm_and_rotate`."""

from __future__ import annotations

from typing import Any, cast

import torch
import triton
import triton.language as tl
from torch import Tensor

EPS = 1e-6
ROWS = 64  # that one program works on; a row is one head of one token


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    x, grad, cos, sin, out, total, N, positions, stride_b, stride_n, stride_h, heads: tl.constexpr, half: tl.constexpr,
    rotate: tl.constexpr, backward: tl.constexpr, eps: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr,
):  # fmt: skip
    """One program takes `rows` rows, both halves of each: what is made of x or, going back, its gradient."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    column = tl.arange(0, columns)[None, :]
    inside = (row < total)[:, None] & (column < half)
    token = row // heads
    b, n, h = (token // N).to(tl.int64), (token % N).to(tl.int64), (row % heads).to(tl.int64)
    pointer = x + (b * stride_b + n * stride_n + h * stride_h)[:, None] + column
    x1 = tl.load(pointer, mask=inside, other=0).to(tl.float32)
    x2 = tl.load(pointer + half, mask=inside, other=0).to(tl.float32)
    r = tl.rsqrt(tl.sum(x1 * x1 + x2 * x2, 1) / (2 * half) + eps)[:, None]
    n1, n2 = x1 * r, x2 * r
    out_offset = row.to(tl.int64)[:, None] * (2 * half) + column
    y1, y2 = n1, n2
    if backward:
        y1 = tl.load(grad + out_offset, mask=inside, other=0).to(tl.float32)
        y2 = tl.load(grad + out_offset + half, mask=inside, other=0).to(tl.float32)
    if rotate:
        rope_offset = (token % positions).to(tl.int64)[:, None] * half + column
        c = tl.load(cos + rope_offset, mask=inside, other=0)
        s = tl.load(sin + rope_offset, mask=inside, other=0)
        if backward:
            s = -s
        y1, y2 = y1 * c - y2 * s, y2 * c + y1 * s
    if backward:
        mean = (tl.sum(y1 * n1 + y2 * n2, 1) / (2 * half))[:, None]
        y1, y2 = r * (y1 - n1 * mean), r * (y2 - n2 * mean)
    tl.store(out + out_offset, y1.to(out.dtype.element_ty), mask=inside)
    tl.store(out + out_offset + half, y2.to(out.dtype.element_ty), mask=inside)


def _launch(x: Tensor, grad: Tensor | None, cos: Tensor | None, sin: Tensor | None) -> Tensor:
    """What `norm_and_rotate` makes of x or, given the gradient of that, the gradient of x."""
    B, N, heads, width = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    total = B * N * heads
    if total:
        with torch.cuda.device(x.device) if x.is_cuda else torch.no_grad():
            _kernel[(triton.cdiv(total, ROWS),)](
                x, x if grad is None else grad, x if cos is None else cos, x if sin is None else sin, out,
                total, N, N if cos is None else len(cos), x.stride(0), x.stride(1), x.stride(2),
                heads=heads, half=width // 2, rotate=cos is not None, backward=grad is not None, eps=EPS,
                rows=ROWS, columns=triton.next_power_of_2(width // 2),
            )  # fmt: skip
    return out


class _NormAndRotate(torch.autograd.Function):
    """Keeps x alone: norming it again costs less than reading more."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor | None, sin: Tensor | None) -> Tensor:
        x = x if x.stride(-1) == 1 else x.contiguous()
        ctx.save_for_backward(x, cos, sin)
        return _launch(x, None, cos, sin)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        x, cos, sin = ctx.saved_tensors
        return _launch(x, grad.contiguous(), cos, sin), None, None


def norm_and_rotate(x: Tensor, rope: tuple[Tensor, Tensor] | None) -> Tensor:
    """Queries or keys [B, N, heads, width] of unit size, rotated by cos and sin [N or B N, 1, width / 2]."""
    B, N, _, width = x.shape
    if rope is None:
        return cast(Tensor, _NormAndRotate.apply(x, None, None))
    cos, sin = (part.detach().float().reshape(-1, width // 2).contiguous() for part in rope)
    assert rope[0].shape[-3:-1] == (N, 1) and len(cos) in (N, B * N), (x.shape, rope[0].shape)
    return cast(Tensor, _NormAndRotate.apply(x, cos, sin))
