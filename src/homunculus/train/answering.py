"""What the reader is taught: to answer questions from a look at a page and from what was read there.

Every lesson goes as it will go later: the scout looks for the answer of one question, the eye notes the lines that it
finds, the language model gets cells, notes and question. In some lessons a place of the answer is slipped in among
those that the scout points at, so that there is something to learn from where it errs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from homunculus import positions, tokens
from homunculus.allocators import allocate
from homunculus.cells import CellTree, Selection
from homunculus.reader import notes
from homunculus.reader.bridge import Bridge
from homunculus.reader.encoder import Encoder
from homunculus.reader.language import Language, fingerprint
from homunculus.reader.scout import SOFTER, Scout, over_tree, small_copy
from homunculus.reader.talk import ASK, BEFORE, NOTES, PAD, REPLY, note_ids, reply_ids, row, tail
from homunculus.relevance import Scene
from homunculus.train.asks import SWAPPED
from homunculus.train.dictation import confused, swapped, told
from homunculus.train.looks import drawn_budget, drawn_rule, padded
from homunculus.train.losses import CELL, EncoderTask, cells_under, slots_of, tree_of
from homunculus.train.pages import Labels, Sheets
from homunculus.train.work import Losses, Task

SHORT, LONG = 12, REPLY  # tokens of an answer with its end
WORDS = 0.35  # share of the encoder's own lessons that read words: notes are lines
CONFUSED = 0.6  # share of lessons in which the scout is less sure than it is on pages that it has learned from
GUESSED = 0.25  # share of lessons kept of those in which the answer was not read
DISGUISED = 0.4  # share of lessons in which other figures stand for those on the page: the answer must be read
PLACES = 680  # about how many tokens of the language model a page is given in training
AT_ONCE = 128  # dictated lessons of a step


class Joint(nn.Module):
    """What is trained together."""

    def __init__(self, bridge: Bridge, encoder: Encoder) -> None:
        super().__init__()
        self.bridge, self.encoder = bridge, encoder


class ReaderTask(Task):
    """Answering: losses of the answers to questions and, where the encoder learns too, of its own reading.

    Args:
        language: the bridge is attached to it, its weights stay.
        scout: finds the places.
        told: share of lessons in which a place of the answer is slipped in.
        dictated: share of steps that learn from notes alone.
    """

    model: Joint

    def __init__(
        self,
        joint: Joint,
        language: Language,
        scout: Scout,
        told: float = 0.0,
        dictated: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.model, self.eye = joint, EncoderTask(joint.encoder, seed, WORDS)
        self.rng, self.told, self.dictated = self.eye.rng, told, dictated
        self.tokenizer, self.tail = language.tokenizer, tail(language.tokenizer)
        model: Any = language.model
        device = next(model.parameters()).device
        self.figures = torch.tensor([language.encode(figure)[-1] for figure in "0123456789"], device=device)
        self.before = torch.tensor(language.encode(BEFORE), device=device)
        self.about = {"fits": fingerprint(model), "bridge": joint.bridge.sizes}
        joint.bridge.attach(model)
        self.fixed: tuple[Any, Scout] = (model, scout)  # in a tuple: neither trained nor saved

    def heavy(self) -> list[nn.Module]:
        """Layers worth compiling."""
        return [*self.fixed[0].model.layers, *(self.eye.heavy() if self.reads else ())]

    @property
    def reads(self) -> bool:
        """Whether the encoder learns too."""
        return any(p.requires_grad for p in self.model.encoder.parameters())

    @torch.no_grad()
    def prepare(self, sheets: Sheets) -> list[Tensor]:
        """One look at each page for one question: patches, places, sizes, ids, where and what to answer."""
        if self.rng.random() < self.dictated:
            return self._dictation(sheets.labels)
        B, _, H, W = sheets.pixels.shape
        longest = SHORT if self.rng.random() < 0.8 else LONG
        tree = tree_of(H, W, sheets.pixels.device)
        budget = drawn_budget(self.rng, math.prod(tree.shapes[0]))
        rows = max(1, min(B, B * PLACES // (budget + NOTES + ASK + SHORT)))
        labels, levels = sheets.labels.first(rows), [level[:rows] for level in sheets.levels]
        assert labels.asked is not None and labels.replies is not None
        fits = (labels.replies[..., 0] != PAD) & (labels.replies[..., longest:] == PAD).all(2)  # [B, Q]
        pick = (torch.rand(fits.shape, device=fits.device) + fits.float()).argmax(1)  # [B]
        each = torch.arange(rows, device=pick.device)
        found, letters = self._found(levels, labels.questions[each, pick])
        answers = labels.answers[each, pick]
        told = located(answers) & (torch.rand(rows, device=pick.device) < self.told)
        look = self._look(tree, levels, found, answers, told, budget)
        cells, places = tokens.patches(levels, look), positions.coordinates(look)
        points = slipped_in(notes.spots(found, letters, (H, W)), answers, told)
        noted, replies, read = self._noted(cells, places, points / CELL, labels.replies[each, pick, :longest])
        usable = read | ~located(answers) | (torch.rand(rows, device=pick.device) < GUESSED)
        talk = self._talk(noted, labels.asked[each, pick], replies, fits[each, pick] & usable)
        sizes = torch.tensor([[H / CELL, W / CELL]], device=pick.device).expand(rows, 2)
        lesson = [cells, places, sizes, *talk]
        if self.reads:
            lesson += [slots_of(labels, look, (H, W), tree.levels), *self.eye.lesson(labels, look)]
        return lesson

    def forward(self, cells: Tensor, places: Tensor, sizes: Tensor, *lesson: Tensor) -> Losses:
        """Losses of what `prepare` made."""
        ids, at, answer, *reading = lesson
        if cells.shape[1]:
            x = self.model.encoder(cells, places)
            seen = self.model.bridge.sight(x, self.model.encoder.characters(x), places, sizes)
        else:
            seen = cells.new_zeros(len(ids), 0, self.model.bridge.sizes["width"])
        logits = self._says(seen, ids, at)  # [B, A, vocabulary]
        each = F.cross_entropy(logits.flatten(0, 1).float(), answer.flatten(), ignore_index=-1, reduction="sum")
        right, there = ((logits.argmax(-1) == answer) | (answer < 0)).all(1), (answer >= 0).any(1)
        losses = {
            "answer": each / (answer >= 0).sum().clamp(min=1),
            "exact": (right & there).sum() / there.sum().clamp(min=1),
        }
        if reading:
            slots, *rest = reading
            losses |= {k: v for k, v in self.eye.losses(x, places, slots, *rest).items() if k != "exact"}
        return losses

    def _says(self, seen: Tensor, ids: Tensor, at: Tensor) -> Tensor:
        """Logits of the next token at some places of what follows the page: ids [B, T], at [B, A]."""
        language = self.fixed[0]
        embed = language.get_input_embeddings()
        before = embed(self.before).expand(len(ids), -1, -1)
        x = torch.cat((before, seen.to(before.dtype), embed(ids)), 1)  # what is missing stands behind: nobody sees it
        body, order = language.model, torch.arange(x.shape[1], device=x.device)[None]
        turns = body.rotary_emb(x, order)
        for layer in body.layers:  # called one by one: the model's own loop builds a mask while a graph is captured
            x = layer(x, attention_mask=None, position_ids=order, position_embeddings=turns)
        said = body.norm(x)[:, -ids.shape[1] :]
        return cast(Tensor, language.lm_head(said.gather(1, at[..., None].expand(-1, -1, said.shape[2]))))

    def _dictation(self, labels: Labels) -> list[Tensor]:
        """Lessons without a look: notes as they may be taken, questions and answers."""
        assert labels.asked is not None and labels.noted is not None and labels.told is not None
        asked, noted, told = (part.flatten(0, 1) for part in (labels.asked, labels.noted, labels.told))
        longest = SHORT if self.rng.random() < 0.8 else LONG
        fits = (asked[:, 0] != PAD) & (told[:, 0] != PAD) & (told[:, longest:] == PAD).all(1)
        pick = (torch.rand(len(fits), device=fits.device) + fits.float()).topk(min(AT_ONCE, len(fits))).indices
        talk = self._talk(noted[pick], asked[pick], told[pick, :longest], fits[pick])
        none = torch.zeros(len(pick), 0, 3, device=pick.device)
        return [none, none, torch.ones(len(pick), 2, device=pick.device), *talk]

    def _talk(self, noted: Tensor, asked: Tensor, replies: Tensor, usable: Tensor) -> list[Tensor]:
        """Notes, questions and answers in one row, some with other figures."""
        said = disguised((noted, asked, replies), self.figures, DISGUISED)
        length = (said[1] != PAD).sum(1, keepdim=True) - self.tail
        heard = torch.where(torch.arange(said[1].shape[1], device=length.device) < length, said[1], PAD)
        return sequence((heard, *said), usable)

    def _noted(self, cells: Tensor, places: Tensor, points: Tensor, replies: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the eye reads at points of a look, as ids [B, NOTES], and the answers [B, A], some of both exchanged.

        Also whether an answer was read at all [B].
        """
        with torch.autocast(cells.device.type, torch.bfloat16, enabled=cells.is_cuda, cache_enabled=False):
            pages = notes.take(self.model.encoder, self.model.encoder(cells, places), places, points)
        length, said = replies.shape[1], self.tokenizer.decode_batch(replies.tolist(), skip_special_tokens=True)
        read_out = [notes.laid_out(confused(page, self.rng, CONFUSED)) for page in pages]
        texts, answers = swapped(read_out, said, self.rng, SWAPPED)
        read = torch.stack([row(ids, NOTES) for ids in note_ids(self.tokenizer, texts)])
        new = torch.stack([row(reply_ids(self.tokenizer, answer), length) for answer in answers])
        changed = torch.tensor([old != answer for old, answer in zip(said, answers, strict=True)])
        there = torch.tensor([told(answer, text) for answer, text in zip(answers, texts, strict=True)])
        replies = torch.where(changed[:, None].to(cells.device), new.to(replies), replies)
        return read.to(cells.device), replies, there.to(cells.device)

    def _found(self, levels: list[Tensor], questions: Tensor) -> tuple[Tensor, Tensor]:
        """Where the scout expects the answer of one question a page, logits [B, h, w], and where it sees letters."""
        scout = self.fixed[1]
        features = scout.look(small_copy(levels))
        return scout.find(features, questions[:, None].long())[:, 0].float(), scout.text(features)

    def _look(
        self, tree: CellTree, levels: list[Tensor], found: Tensor, answers: Tensor, told: Tensor, budget: int
    ) -> Selection:
        """A look by a rule drawn by lot where the scout expects the answer, or where it is told to."""
        relevance = over_tree(Scene(levels[0], tree), found / SOFTER)
        bright = cells_under(answers, tree.shapes[0], (CELL, CELL)) & told[:, None, None]  # [B, h, w]
        most = relevance.amax(1, keepdim=True)
        relevance = torch.maximum(relevance, tree.lift(bright.to(relevance), how="max") * most)
        return padded(allocate(drawn_rule(self.rng), tree, relevance, budget), budget).in_rows()


def slipped_in(points: Tensor, answers: Tensor, told: Tensor) -> Tensor:
    """Points [B, n, 2] with the first part of the answer among them, at any rank, where told [B]; boxes [B, P, 4]."""
    box = answers[:, 0]
    size = box[:, 2:] - box[:, :2]
    true = (box[:, :2] + box[:, 2:]) / 2 + size * 0.15 * torch.randn_like(size).clamp(-2, 2)
    rank = torch.randint(points.shape[1], (len(points), 1), device=points.device)
    here = (torch.arange(points.shape[1], device=points.device) == rank) & told[:, None]
    return torch.where(here[..., None], true[:, None], points)


def disguised(parts: Sequence[Tensor], figures: Tensor, share: float) -> list[Tensor]:
    """Ids [B, T] of notes, question and answer; in a share of the rows all have the same other figures (ids [10])."""
    rows, most = len(parts[0]), 1 + int(torch.stack([*(part.max() for part in parts), figures.max()]).max())
    turned = torch.rand(rows, len(figures), device=figures.device).argsort(1)
    turned = torch.where(
        torch.rand(rows, 1, device=figures.device) < share, turned, torch.arange(len(figures), device=figures.device)
    )
    other = torch.arange(most, device=figures.device).repeat(rows, 1)
    other[:, figures] = figures[turned]
    return [other.gather(1, part.long()) for part in parts]


def sequence(said: Sequence[Tensor], usable: Tensor) -> list[Tensor]:
    """What follows the page, [B, T]: all that is said, the answer last; the places before each of its tokens; these.

    The last two are [B, A]; -1 stands for tokens that are not there or whose question is not usable [B].
    """
    *before, reply = said
    parts = torch.cat((*before, reply), 1).long()
    ids = parts.gather(1, (parts == PAD).long().argsort(dim=1, stable=True))
    length = torch.stack([(part != PAD).sum(1, keepdim=True) for part in before]).sum(0)
    at = (length - 1).clamp(min=0) + torch.arange(reply.shape[1], device=ids.device)
    return [ids, at, torch.where((reply != PAD) & usable[:, None], reply.long(), -1)]


def located(boxes: Tensor) -> Tensor:
    """Which answers stand somewhere on the page: boxes [B, P, 4] -> [B]."""
    return (boxes[:, 0, 2:] > boxes[:, 0, :2]).all(1) & (boxes[:, 0, :2] >= 0).all(1)
