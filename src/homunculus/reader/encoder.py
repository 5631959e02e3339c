"""The eye's own reading: any set of cells in, one vector per cell out, and two heads that read from them.

Every cell is a small picture of the same size, whatever its level; where it came from (level, x, y) enters as a rotary
embedding, so a vector depends on a cell, its neighbours and their distances, never on which rule chose them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homunculus import positions, tokens
from homunculus.cells import Selection
from homunculus.errors import InputError
from homunculus.reader.blocks import TEXT, Attention, Block, ConvBlock, Mlp, Turn, turn_along, turn_of
from homunculus.reader.halo import HALO, haloed
from homunculus.reader.letters import BLANK, CLASSES, END, decode
from homunculus.reader.replay import Replay

CELL = 32
LEVELS = 10  # deeper ones are taken as the last
ROWS, COLUMNS = 4, 8  # slots of a cell in which the dense head names the character centred there
MODES = {"word": CLASSES, "line": CLASSES + 1}  # how the first step of reading is told what to read
LONGEST = {"word": 32, "line": 80}
WAVES = 5  # a quarter, a half, 1, 2 and 4 turns per fine cell tell where in its cell the gaze rests


class Stem(nn.Sequential):
    """One cell's pixels with a rim of its neighbours' to one vector: [n, 3, 40, 40] -> [n, width]."""

    def __init__(self, width: int) -> None:
        super().__init__(
            nn.Conv2d(3, 48, 4, 2, 1),
            nn.GELU(),
            nn.Conv2d(48, 96, 3, 2, 1),
            nn.GELU(),
            ConvBlock(96, crop=HALO // 4),  # the rim has told the border what it needs to know
            nn.Conv2d(96, 192, 3, 2, 1),
            nn.GELU(),
            ConvBlock(192),
            nn.Flatten(),
            nn.Linear(192 * 16, width),
        )


class Encoder(nn.Module):
    """About 25 million parameters: a convolutional stem per cell, a transformer over the cells, two reading heads."""

    def __init__(self, width: int = 384, depth: int = 10, heads: int = 6, reading: int = 2) -> None:
        super().__init__()
        self.head = width // heads
        self.stem = Stem(width)
        self.level = nn.Embedding(LEVELS, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.slots = nn.Linear(width, ROWS * COLUMNS * 40)
        self.letters = nn.Linear(40, CLASSES - 1)
        self.reading = Reading(width, heads, reading)

    def forward(self, patches: Tensor, places: Tensor, mask: Tensor | None = None) -> Tensor:
        """One vector per cell.

        Args:
            patches: uint8 [B, K, 3, 32, 32], see `homunculus.tokens.patches`.
            places: [B, K, 3] level and centre in fine cells, see `homunculus.positions.coordinates`.
            mask: [B, K] False for places that a row does not have.
        """
        x = self.embed(patches, places, mask)
        turn = turn_of(places, self.head)
        allowed = None if mask is None or bool(mask.all()) else mask[:, None, None]
        for block in self.blocks:
            x = block(x, turn, allowed)
        return cast(Tensor, self.norm(x))

    def embed(self, patches: Tensor, places: Tensor, mask: Tensor | None = None) -> Tensor:
        """What each cell looks like up to its borders: uint8 [B, K, 3, 32, 32], places [B, K, 3] -> [B, K, width]."""
        if patches.shape[2:] != (3, CELL, CELL):
            raise InputError(f"the encoder reads cells of 3 x {CELL} x {CELL}, got {list(patches.shape[2:])}")
        dtype = self.level.weight.dtype
        pixels = haloed(patches.to(dtype) / 127.5 - 1, places, mask).flatten(0, 1)
        pixels, levels = pixels.contiguous(memory_format=torch.channels_last), places[..., 0]
        low = levels.clamp(0, LEVELS - 1).floor().long()
        high, part = (low + 1).clamp(max=LEVELS - 1), (levels - low).clamp(0, 1).to(dtype)[..., None]
        level = torch.lerp(self.level(low), self.level(high), part)  # `uniform` has fractional levels
        return cast(Tensor, self.stem(pixels)).view(*patches.shape[:2], -1) + level

    def characters(self, x: Tensor) -> Tensor:
        """Dense reading: which character, if any, has its centre in each slot of each cell: logits [B, K, 4, 8, 96]."""
        return cast(Tensor, self.letters(F.gelu(self.slots(x)).unflatten(-1, (ROWS, COLUMNS, 40))))

    @torch.no_grad()
    def read(self, levels: Sequence[Tensor], selection: Selection, points: Tensor, mode: str = "word") -> list[str]:
        """The word or line at each point, as far as the selection shows it.

        Args:
            levels: the pyramid of one page, uint8 [1, 3, h, w] each.
            selection: one row of cells for each point; one row serves all points.
            points: [Q, 2] x, y in pixels.
        """
        if mode not in MODES:
            raise InputError(f"mode must be 'word' or 'line', got {mode!r}")
        pages = [level.expand(len(selection), -1, -1, -1) for level in levels]
        device = self.level.weight.device
        places = positions.coordinates(selection).to(device)
        cells = tokens.patches(pages, selection).to(device)
        memory = self(cells, places, selection.mask.to(device))
        at = (points / selection.cell).to(device).float().view(len(selection), -1, 2)
        read = self.reading.greedy(memory, places, at, mode, selection.mask.to(device))
        return [decode(row) for row in read.codes.flatten(0, 1).tolist()]


class Step(nn.Module):
    """A layer of the reading head: what was read so far, what lies around the gaze, then think."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.recall, self.look, self.think = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.past, self.page, self.mlp = Attention(width, heads), Attention(width, heads), Mlp(width)

    def forward(
        self, x: Tensor, memory: Tensor, order: Turn, around: Turn, turn: Turn, mask: Tensor | None = None
    ) -> Tensor:
        """All steps at once: x [B, Q, T, width], memory [B, K, width]."""
        B, Q, T, _ = x.shape
        x = x + self.past(self.recall(x).flatten(0, 1), turn=order, causal=True).view(x.shape)
        page = self.page.keys(memory, turn)
        x = x + self.page(self.look(x).flatten(1, 2), page, around, mask).view(B, Q, T, -1)
        return x + cast(Tensor, self.mlp(self.think(x)))


class Read(NamedTuple):
    """What was read at each point: codes [B, Q, T], their mean log probability [B, Q], their centres [B, Q, T, 2]."""

    codes: Tensor
    sure: Tensor
    path: Tensor


class Reading(nn.Module):
    """Point and read: starts at a point and moves its gaze from character to character.

    Each step looks at the cells around the present gaze, names the next character and says how far to move to reach
    its centre. Reading is thus the same small act everywhere on the page and at any length of line.
    """

    def __init__(self, width: int, heads: int, depth: int) -> None:
        super().__init__()
        self.head = width // heads
        self.before = nn.Embedding(CLASSES + len(MODES), width)
        self.where = nn.Linear(4 * WAVES, width)
        self.steps = nn.ModuleList(Step(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.next, self.move = nn.Linear(width, CLASSES), nn.Linear(width, 2)
        self.replays: dict[tuple[str, int], Replay[Read]] = {}

    def forward(
        self, memory: Tensor, places: Tensor, before: Tensor, gaze: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """All steps at once, the characters before each being known.

        Args:
            memory: [B, K, width] from the encoder at places [B, K, 3].
            before: [B, Q, T] the mode, then the characters read so far.
            gaze: [B, Q, T, 2] in fine cells: the point, then the centres of those characters.

        Returns:
            Logits of the next character [B, Q, T, 97] and the way to its centre [B, Q, T, 2] in fine cells.
        """
        x = self._start(before, gaze)
        order = turn_along(before.shape[2], self.head, x.device, TEXT)
        around, turn = self._around(gaze.flatten(1, 2)), turn_of(places, self.head)
        for step in self.steps:
            x = step(x, memory, order, around, turn, mask)
        x = self.norm(x)
        return self.next(x), self.move(x)

    @torch.no_grad()
    def greedy(
        self,
        memory: Tensor,
        places: Tensor,
        points: Tensor,
        mode: str,
        mask: Tensor | None = None,
        longest: int | None = None,
    ) -> Read:
        """The likeliest text at each point [B, Q, 2] in fine cells, of at most LONGEST letters unless told."""
        how = mode, longest or LONGEST[mode]
        if how not in self.replays:
            self.replays[how] = Replay(partial(self._greedy, *how))
        masked = () if mask is None or bool(mask.all()) else (mask,)
        return self.replays[how](memory, places, points, *masked)

    def _greedy(
        self, mode: str, longest: int, memory: Tensor, places: Tensor, points: Tensor, mask: Tensor | None = None
    ) -> Read:
        B, Q = points.shape[:2]
        turn = turn_of(places, self.head)
        pages = [cast(Step, step).page.keys(memory, turn) for step in self.steps]
        allowed = None if mask is None else mask[:, None, None]
        order = turn_along(longest, self.head, memory.device, TEXT)
        past: list[tuple[Tensor, ...]] = []  # keys and values of each layer, with room for all steps
        code = torch.full((B, Q, 1), MODES[mode], device=memory.device)
        gaze, done = points[:, :, None].float(), torch.zeros(B, Q, dtype=torch.bool, device=memory.device)
        sure, steps, read, path = torch.zeros_like(gaze[:, :, 0, 0]), torch.zeros_like(gaze[:, :, 0, 0]), [], []
        for t in range(longest):
            x = self._start(code, gaze)  # [B, Q, 1, width]
            here, around = (order[0][t : t + 1], order[1][t : t + 1]), self._around(gaze.flatten(1, 2))
            for n, (step, page) in enumerate(zip(self.steps, pages, strict=True)):
                step = cast(Step, step)
                y = step.recall(x).flatten(0, 1)
                fresh = step.past.keys(y, here)
                if t == 0:
                    past.append(tuple(new.new_empty(len(new), longest, *new.shape[2:]) for new in fresh))
                for part, new in zip(past[n], fresh, strict=True):
                    part[:, t : t + 1] = new
                k, v = (part[:, : t + 1] for part in past[n])
                x = x + step.past(y, (k, v), here).unflatten(0, (B, Q))
                x = x + step.page(step.look(x).flatten(1, 2), page, around, allowed).unflatten(1, (Q, 1))
                x = x + step.mlp(step.think(x))
            x = self.norm(x)
            best, code = self.next(x)[..., BLANK + 1 :].float().log_softmax(-1).max(-1)
            code = torch.where(done[..., None], END, code + BLANK + 1)
            gaze = gaze + self.move(x).float()
            sure, steps = sure + best[..., 0] * ~done, steps + ~done
            read.append(code)
            path.append(gaze)
            done = done | (code[..., 0] == END)
            if not done.is_cuda and bool(done.all()):  # a GPU would wait for the question longer than for the steps
                break
        return Read(torch.cat(read, 2), sure / steps, torch.cat(path, 2))

    def _start(self, before: Tensor, gaze: Tensor) -> Tensor:
        """What each step knows before it looks: [B, Q, T] and [B, Q, T, 2] -> [B, Q, T, width]."""
        octaves = torch.arange(WAVES, device=gaze.device, dtype=torch.float32) - 2
        turns = gaze[..., None].float() * (2 * torch.pi * octaves.exp2())
        waves = torch.cat((turns.sin(), turns.cos()), -1).flatten(-2).to(self.where.weight.dtype)
        return cast(Tensor, self.before(before) + self.where(waves))

    def _around(self, gaze: Tensor) -> Turn:
        """Rotary turn of the gaze [B, n, 2], as if it were a cell of level 0 there."""
        return turn_of(F.pad(gaze.double(), (1, 0)), self.head)
