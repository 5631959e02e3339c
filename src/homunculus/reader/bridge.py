"""What joins the eye to a language model: cells become tokens that it can read, and it learns to read them.

A cell's token is made from its vector, from the letters that the encoder itself reads in the cell, and from the cell's
place on the page. The language model's own weights stay as they are; small matrices are added to its layers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homunculus.reader.encoder import COLUMNS, ROWS
from homunculus.reader.letters import CLASSES

LETTER = 48  # width of a letter in its slot
OCTAVES = 7  # of the waves that tell where on the page a cell lies, from half a wave a page
ADAPTED = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
LOUD = 0.1  # about how large the numbers of a word's embedding are


class Sight(nn.Module):
    """Cells as tokens: encoder vectors [B, K, eye], places [B, K, 3] and page sizes [B, 2] -> [B, K, width]."""

    def __init__(self, eye: int, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(eye)
        self.think = nn.Sequential(nn.Linear(eye, 3 * eye), nn.GELU(), nn.Linear(3 * eye, width))
        self.letter = nn.Linear(CLASSES - 1, LETTER, bias=False)
        self.spell = nn.Linear(ROWS * COLUMNS * LETTER, width)
        self.place = nn.Linear(4 * OCTAVES + 2, width)
        self.loud = nn.Parameter(torch.full((width,), LOUD))

    def forward(self, cells: Tensor, letters: Tensor, places: Tensor, sizes: Tensor) -> Tensor:
        """Letters are the encoder's logits [B, K, 4, 8, 96]; sizes are height and width in fine cells."""
        read = self.letter(letters.float().softmax(-1).to(cells.dtype)).flatten(2)
        waves = where(places, sizes).to(cells.dtype)
        x = self.think(self.norm(cells)) + self.spell(read) + self.place(waves)
        return F.rms_norm(x, x.shape[-1:]) * self.loud


def where(places: Tensor, sizes: Tensor) -> Tensor:
    """Where on its page each cell lies, and how large it is: [B, K, 3] and [B, 2] -> [B, K, 30]."""
    share = places[..., 1:].float() / sizes[:, None].flip(2).float()  # x, y from 0 to 1
    turns = share[..., None] * (math.pi * torch.arange(OCTAVES, device=places.device, dtype=torch.float32).exp2())
    waves = torch.cat((turns.sin(), turns.cos()), -1).flatten(2)
    level = places[..., :1].float() / 4
    side = (places[..., :1].float().exp2() / sizes.float().amax(1)[:, None, None]).log2() / 4
    return torch.cat((waves, level, side), 2)


class Added(nn.Module):
    """A small matrix beside a large one, as the product of two thin ones; at first it adds nothing."""

    def __init__(self, wide_in: int, wide_out: int, rank: int) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(wide_in, rank, bias=False), nn.Linear(rank, wide_out, bias=False)
        nn.init.normal_(self.down.weight, std=wide_in**-0.5)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Tensor) -> Tensor:
        """x [..., in] -> [..., out]."""
        return cast(Tensor, self.up(self.down(x)))


class Beside(nn.Module):
    """A layer of the language model and what was added to it."""

    def __init__(self, base: nn.Linear, added: Added) -> None:
        super().__init__()
        self.base, self.added = base, added

    def forward(self, x: Tensor) -> Tensor:
        """Both together."""
        return cast(Tensor, self.base(x) + self.added(x))


class Bridge(nn.Module):
    """All that is trained between eye and language model.

    Args:
        eye: width of the encoder's vectors.
        width, wide, keys, layers: of the language model, see `sizes_of`.
        rank: of the matrices that are added to its layers.
    """

    def __init__(
        self, eye: int = 384, width: int = 576, wide: int = 1536, keys: int = 192, layers: int = 30, rank: int = 24
    ) -> None:
        super().__init__()
        self.sizes = {"eye": eye, "width": width, "wide": wide, "keys": keys, "layers": layers, "rank": rank}
        self.sight = Sight(eye, width)
        shapes = {"k_proj": (width, keys), "v_proj": (width, keys), "down_proj": (wide, width)}
        shapes |= {"gate_proj": (width, wide), "up_proj": (width, wide)}
        kinds = [shapes.get(name, (width, width)) for name in ADAPTED]
        self.added = nn.ModuleList(Added(*shape, rank) for _ in range(layers) for shape in kinds)

    def attach(self, model: nn.Module) -> None:
        """Put the added matrices beside the model's layers, to be trained."""
        for (owner, name), added in zip(_linears(model), self.added, strict=True):
            setattr(owner, name, Beside(cast(nn.Linear, getattr(owner, name)), cast(Added, added)))

    @torch.no_grad()
    def merge(self, model: nn.Module) -> None:
        """Work the added matrices into the model's weights for good: it then costs what it did."""
        for (owner, name), added in zip(_linears(model), self.added, strict=True):
            weight, added = getattr(owner, name).weight, cast(Added, added)
            weight += (added.up.weight.float() @ added.down.weight.float()).to(weight)


def sizes_of(model: Any) -> dict[str, int]:
    """The arguments of a Bridge that fits a language model."""
    config = model.config
    keys = config.num_key_value_heads * (config.hidden_size // config.num_attention_heads)
    sizes = {"width": config.hidden_size, "wide": config.intermediate_size, "keys": keys}
    return sizes | {"layers": config.num_hidden_layers}


def _linears(model: nn.Module) -> Iterator[tuple[nn.Module, str]]:
    """The layers that something is added to, in the order of Bridge.added: their owners and names."""
    for layer in cast(Any, model).model.layers:
        for name in ADAPTED:
            yield (layer.self_attn if hasattr(layer.self_attn, name) else layer.mlp), name
