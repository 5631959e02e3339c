"""Answers about photographs: what the vision encoder sees becomes tokens of the language model.

The projector brings a cell's vector to the width of the language model, and a second LoRA is added to its layers in
those rows of a batch that show photographs; answers about documents stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn

from homunculus.glance import Glance
from homunculus.positions import coordinates
from homunculus.reader.calibration import Calibration
from homunculus.reader.kind import KindClassifier
from homunculus.reader.lora import Lora, LoraWeights, linears_of
from homunculus.reader.vision import WIDTH, VisionEncoder


class PhotoAdapter(nn.Module):
    """Projector and LoRA for photographs.

    Args:
        sizes: of the language model, see `lora.sizes_of`.
        rank: of the LoRA.
        width: of the vision encoder's vectors.
    """

    def __init__(self, rank: int = 32, width: int = WIDTH, **sizes: int) -> None:
        super().__init__()
        self.lora = Lora(**sizes, rank=rank)
        self.sizes = self.lora.sizes | {"width": width}
        hidden = self.lora.sizes["hidden"]
        self.norm, self.hidden = nn.LayerNorm(width), nn.Linear(width, hidden)
        self.out = nn.Linear(hidden, hidden)
        self.scale = nn.Parameter(torch.tensor(0.1))  # of the words of the language model, about

    def forward(self, cells: Tensor) -> Tensor:
        """Vectors of cells [B, K, D] as embeddings of the language model [B, K, hidden]."""
        x = nn.functional.gelu(self.hidden(self.norm(cells)))
        return self.scale * nn.functional.rms_norm(self.out(x), (self.sizes["hidden"],))

    def attach(self, model: nn.Module) -> RowSwitch:
        """Add the LoRA to the model's linear layers, for the rows that the switch says."""
        switch = RowSwitch()
        for (owner, name), lora in zip(linears_of(model), self.lora.weights, strict=True):
            base = cast(nn.Linear, getattr(owner, name))
            setattr(owner, name, SwitchedLinear(base, cast(LoraWeights, lora), switch))
        return switch


class RowSwitch:
    """Which rows of a batch the photographs' LoRA is added to; none unless told."""

    def __init__(self) -> None:
        self.rows: Tensor | None = None  # [B, 1, 1] of 0 and 1

    @contextmanager
    def on(self, rows: Tensor) -> Iterator[None]:
        """On for rows, bool [B], within."""
        before, self.rows = self.rows, rows[:, None, None] if bool(rows.any()) else None
        try:
            yield
        finally:
            self.rows = before


class SwitchedLinear(nn.Module):
    """A linear layer with LoRA matrices that count in some rows of a batch."""

    def __init__(self, base: nn.Linear, lora: LoraWeights, switch: RowSwitch) -> None:
        super().__init__()
        self.base, self.switch = base, switch
        self.matrices: tuple[Any] = (lora,)  # in a tuple: they belong to the adapter, which saves them

    def forward(self, x: Tensor) -> Tensor:
        """x [B, T, in] -> [B, T, out]."""
        y = cast(Tensor, self.base(x))
        rows = self.switch.rows
        return y if rows is None else y + rows.to(y.dtype) * self.matrices[0](x)


class PhotoReader:
    """What answers about photographs need: the vision encoder, the adapter, and what tells photographs.

    Args:
        model: the language model; the adapter is attached to it.
        is_document: tells documents from photographs.
        calibration: turns what is known of an answer into the probability of its being right.
    """

    def __init__(
        self,
        encoder: VisionEncoder,
        adapter: PhotoAdapter,
        model: nn.Module,
        is_document: KindClassifier,
        calibration: Calibration,
    ) -> None:
        self.encoder, self.adapter, self.switch = encoder, adapter, adapter.attach(model)
        self.is_document, self.calibration = is_document, calibration

    @torch.no_grad()
    def embeddings(self, glance: Glance) -> Tensor:
        """The chosen cells as embeddings of the language model. [K, hidden]"""
        selection = glance.selection
        cells, _ = self.encoder(glance.patches()[None], coordinates(selection), selection.sizes)
        return cast(Tensor, self.adapter(cells))[0]
