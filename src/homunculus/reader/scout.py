"""The scout: one quick look at a small copy of the page, and for any question where its answer lies.

Two towers. The page tower reads the page once, at about half a megapixel, and keeps one vector for every 16 x 16 pixels
of that; the question tower reads the question, letter by letter. A shallow third part, run per question, lets each
place of the page compare itself with the question and with the places in its row, its column and its neighbourhood: a
value finds its label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homunculus.cells import CellTree
from homunculus.reader.blocks import TEXT, Attention, Block, ConvBlock, LocalBlock, Mlp, Rope, rope_along, rope_of
from homunculus.reader.encoder import COLUMNS, ROWS
from homunculus.reader.letters import BLANK, CLASSES, encode
from homunculus.relevance import Scene
from homunculus.runtime.cache import LRUCache
from homunculus.runtime.graphs import Replay

STRIDE = 16  # pixels of what it looks at under one place
HEAD = 48  # width of a head where page and question meet
QUESTION = 96  # letters of a question that are read
MOST = 2048  # places of a page; a larger page is scaled down to that many, a smaller one is seen as it is
MAPS = 256  # questions about a page that are remembered
LEAST = 1e-6  # relevance of the least relevant place
TEMPERATURE = (
    1.35  # logits are divided by this: the scout is surer than it should be, and 273 cells have room for doubt
)


@dataclass(frozen=True)
class PageFeatures:
    """What the scout remembers of a batch of pages, for any number of questions: features [B, h, w, width].

    `maps` are the logits [h, w] of questions about its one page, as far as they were asked.
    """

    features: Tensor
    maps: LRUCache[str, Tensor] = field(default_factory=lambda: LRUCache(MAPS))


class ScoutStem(nn.Sequential):
    """Convolutions over the small copy: [B, 3, 16 h, 16 w] -> [B, width, h, w]."""

    def __init__(self, width: int) -> None:
        super().__init__(
            nn.Conv2d(3, 32, 3, 2, 1),
            nn.GELU(),
            ConvBlock(32),
            nn.Conv2d(32, 96, 3, 2, 1),
            nn.GELU(),
            ConvBlock(96),
            nn.Conv2d(96, 192, 3, 2, 1),
            nn.GELU(),
            ConvBlock(192),
            nn.Conv2d(192, width, 3, 2, 1),
        )


class Scout(nn.Module):
    """Fewer than 10 million parameters; call it with a scene and its questions to get relevance over the tree."""

    def __init__(
        self,
        width: int = 256,
        depth: int = 8,
        heads: int = 4,
        joint: int = 192,
        joint_depth: int = 3,
        question_depth: int = 2,
    ) -> None:
        super().__init__()
        self.head = width // heads
        self.stem = ScoutStem(width)
        self.layers = nn.ModuleList(
            Block(width, heads) if i % 4 == 3 else LocalBlock(width) for i in range(depth)
        )  # every fourth sees the whole page
        self.norm = nn.LayerNorm(width)
        self.slots = nn.Linear(width, ROWS * COLUMNS * 32)
        self.letters = nn.Linear(32, CLASSES)
        self.usual_head = nn.Linear(width, 1)
        self.embed = nn.Embedding(CLASSES + 1, width, padding_idx=BLANK)  # weights have a row more
        self.question_blocks = nn.ModuleList(Block(width, heads) for _ in range(question_depth))
        self.question_norm = nn.LayerNorm(width)
        self.project, self.position = nn.Linear(width, joint), nn.Linear(8, joint)
        self.joint_blocks = nn.ModuleList(JointBlock(joint, width, joint // HEAD) for _ in range(joint_depth))
        self.answer_head = nn.Sequential(nn.LayerNorm(joint), nn.Linear(joint, 1))
        self._encode_page, self._find = Replay(self.encode_page), Replay(self.find)
        for last in (self.usual_head, self.answer_head[1]):
            nn.init.constant_(cast(nn.Linear, last).bias, -4.0)  # most places hold no answer

    # -- the network: tensors in, tensors out ------------------------------------------------------------------

    def encode_page(self, small: Tensor) -> Tensor:
        """Features of small copies uint8 [B, 3, 16 h, 16 w]: [B, h, w, width]."""
        dtype = self.usual_head.weight.dtype
        pixels = (small.to(dtype) / 127.5 - 1).contiguous(memory_format=torch.channels_last)
        x = self.stem(pixels)
        h, w = x.shape[2:]
        rope = rope_of(_places(h, w, x.device), self.head)
        for layer in self.layers:
            if isinstance(layer, LocalBlock):
                x = layer(x)
            else:
                x = layer(x.flatten(2).transpose(1, 2), rope).transpose(1, 2).unflatten(2, (h, w))
        return cast(Tensor, self.norm(x.permute(0, 2, 3, 1)))

    def encode_question(self, questions: Tensor) -> tuple[Tensor, Tensor]:
        """Questions as codes [n, QUESTION] -> vectors [n, QUESTION, width], and the mask of those that count."""
        mask = questions != BLANK
        mask = mask | (torch.arange(questions.shape[1], device=mask.device) == 0)  # an empty question is one blank
        rope = rope_along(questions.shape[1], self.head, mask.device, TEXT)
        x = self.embed(questions)
        for layer in self.question_blocks:
            x = layer(x, rope, mask[:, None, None])
        return self.question_norm(x), mask

    def match(self, features: Tensor, questions: Tensor, mask: Tensor) -> Tensor:
        """Logit that the answer lies here: features [B, h, w, width], questions [B, Q, T, width] -> [B, Q, h, w]."""
        B, Q = questions.shape[:2]
        h, w = features.shape[1:3]
        x = self.project(features) + self.position(_on_page(h, w, features))
        x = x[:, None].expand(-1, Q, -1, -1, -1).flatten(0, 1)  # [B Q, h, w, joint]
        words, allowed = questions.flatten(0, 1), mask.flatten(0, 1)[:, None, None]
        ropes = rope_along(h, HEAD, x.device), rope_along(w, HEAD, x.device)
        for layer in self.joint_blocks:
            x = layer(x, words, allowed, ropes)
        return cast(Tensor, self.answer_head(x)).view(B, Q, h, w)

    def find(self, features: Tensor, questions: Tensor) -> Tensor:
        """Logit that the answer lies here: features [B, h, w, width], codes [B, Q, QUESTION] -> [B, Q, h, w]."""
        words, mask = self.encode_question(questions.flatten(0, 1))
        size = questions.shape[:2]
        return self.match(features, words.unflatten(0, size), mask.unflatten(0, size))

    def characters(self, features: Tensor) -> Tensor:
        """Dense reading, as the encoder's: logits [B, h, w, 4, 8, 96]."""
        return cast(Tensor, self.letters(F.gelu(self.slots(features)).unflatten(-1, (ROWS, COLUMNS, 32))))

    def text(self, features: Tensor) -> Tensor:
        """In which slots letters are, as far as the scout can tell: bool [B, 4 h, 8 w]."""
        printed = self.characters(features).argmax(-1) != BLANK  # [B, h, w, 4, 8]
        return printed.permute(0, 1, 3, 2, 4).flatten(3).flatten(1, 2)

    def usual(self, features: Tensor) -> Tensor:
        """Logit that people ask about this place, whatever they ask. [B, h, w]"""
        return cast(Tensor, self.usual_head(features))[..., 0]

    # -- what the library calls --------------------------------------------------------------------------------

    @torch.no_grad()
    def page(self, scene: Scene) -> PageFeatures:
        """Look at the pages of a scene once; `ask` then takes any number of questions."""
        if self not in scene.features:
            small = small_copy(scene.levels).to(self.usual_head.weight.device)
            scene.features[self] = PageFeatures(self._encode_page(small))
        return cast(PageFeatures, scene.features[self])

    @torch.no_grad()
    def ask(self, page: PageFeatures, scene: Scene, questions: list[str]) -> Tensor:
        """Relevance of every cell to each question: one page and Q questions, or one question a page. [Q, N]"""
        return over_tree(scene, self.found(page, questions) / TEMPERATURE)

    @torch.no_grad()
    def found(self, page: PageFeatures, questions: list[str]) -> Tensor:
        """Logit that the answer lies here, for one page and Q questions, or one question a page. [Q, h, w]"""
        if len(page.features) > 1:
            codes = encode(questions, QUESTION).to(page.features.device)
            return self._find(page.features, codes[:, None]).flatten(0, 1)
        found = {question: page.maps[question] for question in questions if question in page.maps}
        new = [question for question in dict.fromkeys(questions) if question not in found]
        if new:
            codes = encode(new, QUESTION).to(page.features.device)
            found |= zip(new, self._find(page.features, codes[None])[0], strict=True)
            page.maps.update(found)
        return torch.stack([found[question] for question in questions])

    @torch.no_grad()
    def learned(self, scene: Scene) -> Tensor:
        """Relevance of every cell whatever the question: what people tend to ask about. [B, N]"""
        return over_tree(scene, self.usual(self.page(scene).features))

    def forward(self, scene: Scene, questions: list[str]) -> Tensor:
        """Relevance of every cell of a scene to its questions. [B, N]"""
        return self.ask(self.page(scene), scene, questions)


class JointBlock(nn.Module):
    """A layer in which places of the page meet the question, then each other along rows, columns and nearby."""

    def __init__(self, width: int, question_width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.question = Attention(width, heads, question_width)
        self.rows, self.columns = Attention(width, heads), Attention(width, heads)
        self.conv = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.mlp = Mlp(width, 2)

    def forward(self, x: Tensor, words: Tensor, allowed: Tensor, ropes: tuple[Rope, Rope]) -> Tensor:
        """x [n, h, w, width], words [n, T, asked], allowed [n, 1, 1, T] -> x."""
        n, h, w, _ = x.shape
        heard = self.question(self.norm1(x).flatten(1, 2), self.question.keys(words), mask=allowed)
        x = x + heard.unflatten(1, (h, w))
        y = self.norm2(x)
        along = self.rows(y.flatten(0, 1), rope=ropes[1]).unflatten(0, (n, h))
        down = self.columns(y.transpose(1, 2).flatten(0, 1), rope=ropes[0]).unflatten(0, (n, w)).transpose(1, 2)
        x = x + along + down + self.conv(y.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return x + cast(Tensor, self.mlp(self.norm3(x)))


def small_copy(levels: Sequence[Tensor]) -> Tensor:
    """A pyramid's pages, uint8 [B, 3, H, W], at the size the scout looks at: of at most MOST places, never enlarged.

    Sides are brought to whole places, so the aspect changes by a few percent at most (a page of less than one place is
    enlarged to one).
    """
    height, width = levels[0].shape[2:]
    rows, columns = grid_of(height, width)
    scale = max(rows * STRIDE / height, columns * STRIDE / width)
    level = min(len(levels) - 1, int(math.log2(1 / scale))) if scale < 1 else 0
    small = F.interpolate(levels[level].float(), (rows * STRIDE, columns * STRIDE), mode="bilinear", antialias=True)
    return small.round().clamp(0, 255).to(torch.uint8)


def grid_of(height: int, width: int) -> tuple[int, int]:
    """Rows and columns of places for a page of this size."""
    scale = min(1.0, math.sqrt(MOST / (height * width)) * STRIDE)
    rows, columns = (max(1, round(side * scale / STRIDE)) for side in (height, width))
    rows, columns = min(rows, MOST), min(columns, MOST)  # a long thin page keeps one row or column
    while rows * columns > MOST:
        rows, columns = (rows - 1, columns) if rows >= columns else (rows, columns - 1)
    return rows, columns


def over_tree(scene: Scene, logits: Tensor) -> Tensor:
    """Logits on the scout's map [n, h, w] as relevance of every cell: that of the most likely place in it. [n, N]"""
    tree = scene.tree
    probs = logits.float().sigmoid().clamp(min=LEAST)
    for axis, side in ((1, tree.height), (2, tree.width)):
        probs = _largest_in_cells(tree, probs, axis, side)
    return tree.lift(probs.to(tree.device), how="max")


def _largest_in_cells(tree: CellTree, values: Tensor, axis: int, side: int) -> Tensor:
    """The largest of the places that each cell of an axis touches by half a pixel or more.

    Places divide the side evenly; cells have their own size, and the last may reach beyond it.
    """
    places = values.shape[axis]

    def touched() -> Tensor:
        start = torch.arange(0, side, tree.cell)
        first = ((start + 0.5) * places / side).long()
        last = (((start + tree.cell).clamp(max=side) - 0.5) * places / side).long()
        step = torch.arange(int((last - first).max()) + 1)
        return torch.minimum(first[:, None] + step, last[:, None]).to(tree.device)  # [cells, n]

    index = tree.layout(("touched", places, side), touched).to(values.device)
    return values.index_select(axis, index.flatten()).unflatten(axis, index.shape).amax(axis + 1)


def _places(h: int, w: int, device: torch.device) -> Tensor:
    """Places (level 0, x, y) of a map in raster order. [h w, 3]"""
    y, x = torch.meshgrid(torch.arange(h, device=device), torch.arange(w, device=device), indexing="ij")
    return torch.stack((torch.zeros_like(x), x, y), -1).flatten(0, 1)


def _on_page(h: int, w: int, like: Tensor) -> Tensor:
    """Where each place lies between the borders of the page, in smooth functions of it. [h, w, 8]"""
    y, x = (((torch.arange(n, device=like.device) + 0.5) / n) for n in (h, w))
    waves = [torch.stack((t, (torch.pi * t).cos(), (torch.pi * t).sin(), (2 * torch.pi * t).cos()), -1) for t in (y, x)]
    return torch.cat((waves[0][:, None].expand(h, w, 4), waves[1].expand(h, w, 4)), -1).to(like.dtype)
