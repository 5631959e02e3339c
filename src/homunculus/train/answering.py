"""What the reader is taught: to answer questions from the tokens of a look at a page.

Two kinds of lessons. *Together*: one look shows the answers of several questions, which the language model reads side
by side without seeing each other; this is cheap and teaches reading. *Alone*: the scout looks for one question, as it
will be later, so that the reader also learns what to make of a look that missed.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homunculus import positions, tokens
from homunculus.allocators import allocate
from homunculus.cells import CellTree, Selection
from homunculus.reader.bridge import Bridge
from homunculus.reader.encoder import Encoder
from homunculus.reader.language import fingerprint
from homunculus.reader.scout import Scout, over_tree, small_copy
from homunculus.reader.talk import ASK, PAD, REPLY
from homunculus.relevance import Scene
from homunculus.train.looks import drawn_budget, drawn_rule, padded
from homunculus.train.losses import CELL, EncoderTask, cells_under, slots_of, tree_of
from homunculus.train.pages import Labels, Sheets
from homunculus.train.work import Losses, Task

SHORT, LONG = (12, 8), (REPLY, 4)  # tokens of an answer with its end, and how many answers a page gives
PLACES = 600  # about how many tokens of the language model a page is given in training
ALIGNED = 8
READABLE = 12.0  # pixels of height from which a line can be read


class Joint(nn.Module):
    """What is trained together."""

    def __init__(self, bridge: Bridge, encoder: Encoder) -> None:
        super().__init__()
        self.bridge, self.encoder = bridge, encoder


class ReaderTask(Task):
    """Answering: losses of the answers to questions and, where the encoder learns too, of its own reading.

    Args:
        language: a causal language model of transformers; the bridge is attached to it, its weights stay.
        before: ids of what it reads before the page.
        scout: finds the places in lessons alone.
        alone: share of those lessons.
    """

    model: Joint

    def __init__(
        self,
        joint: Joint,
        language: nn.Module,
        before: list[int],
        scout: Scout | None = None,
        alone: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.model, self.eye = joint, EncoderTask(joint.encoder, seed)
        self.rng, self.alone = self.eye.rng, alone if scout is not None else 0.0
        self.before = torch.tensor(before, device=next(language.parameters()).device)
        self.about = {"fits": fingerprint(language), "bridge": joint.bridge.sizes}
        joint.bridge.attach(language)
        self.fixed: tuple[Any, Scout | None] = (language, scout)  # in a tuple: neither trained nor saved

    def heavy(self) -> list[nn.Module]:
        """Layers worth compiling."""
        return [*self.fixed[0].model.layers, *(self.eye.heavy() if self.reads else ())]

    @property
    def reads(self) -> bool:
        """Whether the encoder learns too."""
        return any(p.requires_grad for p in self.model.encoder.parameters())

    @torch.no_grad()
    def prepare(self, sheets: Sheets) -> list[Tensor]:
        """One look at each page and what is asked about it: patches, places, sizes, ids, where and what to answer."""
        B, _, H, W = sheets.pixels.shape
        alone = self.rng.random() < self.alone
        longest, count = SHORT if self.rng.random() < 0.75 else LONG
        count = 1 if alone else min(count, sheets.labels.questions.shape[1])
        tree = tree_of(H, W, sheets.pixels.device)
        budget = drawn_budget(self.rng, math.prod(tree.shapes[0]))
        rows = max(1, min(B, B * PLACES // (budget + count * (ASK + longest))))
        labels, levels = sheets.labels.first(rows), [level[:rows] for level in sheets.levels]
        assert labels.replies is not None
        fits = (labels.replies[..., 0] != PAD) & (labels.replies[..., longest:] == PAD).all(2)  # [B, Q]
        if alone:
            pick = (torch.rand(fits.shape, device=fits.device) + fits.float()).argmax(1, keepdim=True)
            look = self._scouted(tree, levels, labels.questions.gather(1, _wide(pick, labels.questions)), budget)
            usable = fits.gather(1, pick)
        else:
            look = self._shown(tree, labels, fits, budget)
            seen = fits & (visible(labels.answers, look) | ~located(labels.answers))
            pick = (torch.rand(fits.shape, device=fits.device) + seen.float()).topk(count, dim=1).indices
            usable = seen.gather(1, pick)
        look = padded(look, budget).in_rows()
        sizes = torch.tensor([[H / CELL, W / CELL]], device=look.mask.device).expand(rows, 2)
        lesson = [
            tokens.patches(levels, look),
            positions.coordinates(look),
            sizes,
            *asked(labels, pick, usable, longest),
        ]
        if self.reads:
            lesson += [slots_of(labels, look, (H, W), tree.levels), *self.eye.lesson(labels, look)]
        return lesson

    def forward(self, cells: Tensor, places: Tensor, sizes: Tensor, *lesson: Tensor) -> Losses:
        """Losses of what `prepare` made."""
        ids, at, answer, *reading = lesson
        x = self.model.encoder(cells, places)
        seen = self.model.bridge.sight(x, self.model.encoder.characters(x), places, sizes)
        logits = self._says(seen, ids, at)  # [B, Q, A, vocabulary]
        each = F.cross_entropy(logits.flatten(0, 2).float(), answer.flatten(), ignore_index=-1, reduction="sum")
        right = ((logits.argmax(-1) == answer) | (answer < 0)).all(2)
        there = (answer >= 0).any(2)
        losses = {
            "answer": each / (answer >= 0).sum().clamp(min=1),
            "exact": (right & there).sum() / there.sum().clamp(min=1),
        }
        if reading:
            slots, *rest = reading
            losses |= {k: v for k, v in self.eye.losses(x, places, slots, *rest).items() if k != "exact"}
        return losses

    def _says(self, seen: Tensor, ids: Tensor, at: Tensor) -> Tensor:
        """Logits of the next token at some places of each question: ids [B, Q, T], at [B, Q, A]."""
        language = self.fixed[0]
        embed = language.get_input_embeddings()
        B, Q, T = ids.shape
        before = embed(self.before).expand(B, -1, -1)
        first = before.shape[1] + seen.shape[1]
        mask, place = apart(first, Q, T, ids.device)
        x = torch.cat((before, seen.to(before.dtype), embed(ids.flatten(1))), 1)
        x = F.pad(x, (0, 0, 0, mask.shape[3] - x.shape[1]))
        out = language.model(
            inputs_embeds=x, attention_mask=mask.expand(B, 1, -1, -1), position_ids=place, use_cache=False
        )
        said = out.last_hidden_state[:, first : first + Q * T].unflatten(1, (Q, T))
        return cast(Tensor, language.lm_head(said.gather(2, at[..., None].expand(-1, -1, -1, said.shape[3]))))

    def _shown(self, tree: CellTree, labels: Labels, fits: Tensor, budget: int) -> Selection:
        """A look by a rule drawn by lot at the answers of some questions."""
        chance = torch.rand(fits.shape, device=fits.device) < self.rng.choice((0.15, 0.3, 0.6))
        bright = cells_under(labels.answers, tree.shapes[0], (CELL, CELL)) & (fits & chance)[..., None, None]
        bright = bright.any(1).float()  # [B, h, w]
        around = F.max_pool2d(bright[:, None], 3, 1, 1)[:, 0] * self.rng.choice((0.0, 0.1, 0.5))
        noise = torch.rand_like(bright) ** 4 * self.rng.choice((0.0, 0.02, 0.2))
        relevance = tree.lift(torch.maximum(bright, around) + noise + 1e-4, how="max")
        return allocate(drawn_rule(self.rng), tree, relevance, budget)

    def _scouted(self, tree: CellTree, levels: list[Tensor], questions: Tensor, budget: int) -> Selection:
        """A look by a rule drawn by lot where the scout expects the answer of one question a page."""
        scout = self.fixed[1]
        assert scout is not None
        logits = scout.find(scout.look(small_copy(levels)), questions.long())[:, 0]
        relevance = over_tree(Scene(levels[0], tree), logits)
        return allocate(drawn_rule(self.rng), tree, relevance, budget)


def asked(labels: Labels, pick: Tensor, usable: Tensor, longest: int) -> list[Tensor]:
    """Questions with their answers behind them [B, Q, T], the places before each token of an answer, and that token.

    The last two are [B, Q, longest]; -1 stands for tokens that are not there or whose question is not usable.
    """
    assert labels.asked is not None and labels.replies is not None
    ask, reply = (part.gather(1, _wide(pick, part)).long() for part in (labels.asked, labels.replies))
    reply = reply[..., :longest]
    length, step = (ask != PAD).sum(2, keepdim=True), torch.arange(ASK + longest, device=ask.device)
    behind = (step - length).clamp(0, longest - 1)  # [B, Q, T]
    spoken = reply.gather(2, behind)
    spoken = torch.where(step - length < longest, spoken, PAD)
    ids = torch.where(step < length, F.pad(ask, (0, longest)), spoken)
    at = (length - 1).clamp(min=0) + torch.arange(longest, device=ask.device)
    answer = torch.where((reply != PAD) & usable[..., None], reply, -1)
    return [ids, at, answer]


def apart(first: int, count: int, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Which token may look at which when several questions follow one page: mask [1, 1, L, L] and places [1, L].

    L is a multiple of 8, as fast kernels like it; what is too much belongs to a question of its own.
    """
    L = -(-(first + count * length) // ALIGNED) * ALIGNED
    order = torch.arange(L, device=device)
    block = torch.where(order < first, -1, (order - first) // length)
    mine = (block[None] == -1) | (block[None] == block[:, None])
    place = torch.where(order < first, order, first + (order - first) % length)
    return (mine & (order[None] <= order[:, None]))[None, None], place[None]


def located(boxes: Tensor) -> Tensor:
    """Which answers stand somewhere on the page: boxes [B, Q, P, 4] -> [B, Q]."""
    return (boxes[..., 2:] > boxes[..., :2]).all(3).any(2)


def visible(boxes: Tensor, selection: Selection) -> Tensor:
    """Which answers the chosen cells show well enough to be read: boxes [B, Q, P, 4] -> [B, Q]."""
    there = (boxes[..., 2:] > boxes[..., :2]).all(3)  # [B, Q, P]
    share = torch.tensor([0.05, 0.275, 0.5, 0.725, 0.95], device=boxes.device)
    x = boxes[..., :1] + share * (boxes[..., 2:3] - boxes[..., :1])  # [B, Q, P, 5]
    y = ((boxes[..., 1:2] + boxes[..., 3:]) / 2).expand_as(x)
    spots = torch.stack((x, y), -1).flatten(1, 3)[:, :, None]  # [B, n, 1, 2]
    low, high = selection.boxes[:, None, :, :2], selection.boxes[:, None, :, 2:]
    inside = ((spots >= low) & (spots < high)).all(3) & selection.mask[:, None]
    level = torch.where(inside, selection.levels[:, None].float(), torch.inf).amin(2).view(x.shape).amax(3)
    fine = level <= ((boxes[..., 3] - boxes[..., 1]) / READABLE).clamp(min=1).log2().floor()
    return (fine | ~there).all(2) & there.any(2)


def _wide(pick: Tensor, like: Tensor) -> Tensor:
    return pick[..., None].expand(-1, -1, like.shape[2])
