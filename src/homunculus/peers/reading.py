"""Published methods on our reader: they choose from an even look at the whole page, which it takes in first.

What the reader notes on the way, lines of text, is read from the cells that a method keeps and from no others. A method
that works between layers of the language model makes its choice in a first pass without notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus import positions
from homunculus.eye import Eye, Glance
from homunculus.peers import BEFORE, INSIDE
from homunculus.peers.base import Kept, Visual
from homunculus.peers.layers import Dropping, Text
from homunculus.peers.stages import mean_tokens
from homunculus.reader.blocks import SHARPNESS, Attention
from homunculus.reader.model import Reader
from homunculus.reader.notes import take
from homunculus.reader.talk import BEFORE as OPENING
from homunculus.relevance import Scene

TOKENS = 1536  # of the even look that methods choose from
EARLY, LATE = 1, -2  # layers of the encoder whose attention counts


class Base(NamedTuple):
    """A page as the encoder has it: vectors, places and tokens of all cells, how much each is attended to."""

    x: Tensor  # [N, eye]
    places: Tensor  # [N, 3]
    tokens: Tensor  # [N, width]
    attention: Tensor  # [N]
    early: Tensor  # [N]
    grid: tuple[int, int]
    glance: Glance


class Bases:
    """Pages for methods to choose from, each taken in once as long as it is needed."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.known: dict[Scene, Base] = {}

    def keep(self, scenes: Sequence[Scene]) -> None:
        """Forget all others."""
        self.known = {scene: base for scene, base in self.known.items() if scene in scenes}

    def of(self, scene: Scene) -> Base:
        """A page, taken in."""
        if scene not in self.known:
            self.known[scene] = self._taken_in(scene)
        return self.known[scene]

    @torch.no_grad()
    def _taken_in(self, scene: Scene) -> Base:
        reader = self.reader
        glance = Eye("uniform", "information", TOKENS, scout=False).look_at(scene, "").in_rows()
        look = glance.selection
        places = positions.coordinates(look).to(reader.device)
        cells = glance.patches()[None].to(reader.device)
        noted: dict[int, Tensor] = {}
        with received(reader.encoder.blocks, noted):
            x = reader.encoder(cells, places, None)
        sizes = (look.sizes / look.cell).to(reader.device)
        seen = reader.bridge.sight(x, reader.encoder.characters(x), places, sizes)
        rows, columns = (len(look.boxes[0, :, axis].unique()) for axis in (1, 0))
        count = len(reader.encoder.blocks)
        early, late = noted[EARLY % count], noted[LATE % count]
        return Base(x[0], places[0], seen[0], late[0], early[0], (rows, columns), glance)

    def answers(
        self,
        name: str,
        budget: int,
        scenes: Sequence[Scene],
        questions: Sequence[str],
        looking: Sequence[str],
        most: int,
    ) -> tuple[list[Glance], list[Any], list[float]]:
        """Answers to questions about pages, with tokens chosen for what is looked for; looks, and tokens of each."""
        bases = [self.of(scene) for scene in scenes]
        room = entering(name, len(self.reader.language.model.model.layers), budget)
        counts = [min(len(base.x), room) if name in BEFORE else len(base.x) for base in bases]
        if name in INSIDE and len(set(counts)) > 1:  # when to drop how many is planned for one number of tokens
            return self._by_count(counts, name, budget, scenes, questions, looking, most)
        glances = [replace(base.glance, question=asked) for base, asked in zip(bases, questions, strict=True)]
        visual = self._visual(bases, looking)
        first = BEFORE[name](visual, room) if name in BEFORE else None
        if name not in INSIDE:
            assert first is not None  # it is one or the other
            kept = first.index
            see = self._seeing(bases, visual, first)
            *_, answers = self.reader.reply(glances, most=most, see=see)
            return self._looks(glances, kept), answers, (kept >= 0).sum(1).float().tolist()
        whole = first or Kept(visual.tokens, _all(visual.mask))
        return self._inside(name, budget, bases, visual, whole, glances, looking, most)

    def _by_count(
        self,
        counts: Sequence[int],
        name: str,
        budget: int,
        scenes: Sequence[Scene],
        questions: Sequence[str],
        looking: Sequence[str],
        most: int,
    ) -> tuple[list[Glance], list[Any], list[float]]:
        """The same, pages with one number of tokens at a time."""
        found: dict[int, tuple[Any, ...]] = {}
        for count in dict.fromkeys(counts):
            rows = [i for i, other in enumerate(counts) if other == count]
            asked, looked = [questions[i] for i in rows], [looking[i] for i in rows]
            parts = self.answers(name, budget, [scenes[i] for i in rows], asked, looked, most)
            found.update(zip(rows, zip(*parts, strict=True), strict=True))
        looks, answers, tokens = zip(*(found[i] for i in range(len(counts))), strict=True)
        return list(looks), list(answers), list(tokens)

    def _visual(self, bases: Sequence[Base], questions: Sequence[str]) -> Visual:
        """What a method may know of some pages, filled up behind."""
        most, device = max(len(base.x) for base in bases), self.reader.device
        embed = self.reader.language.model.get_input_embeddings()
        asked = [embed(torch.tensor(self.reader.language.encode(q), device=device)) for q in questions]
        longest = max(map(len, asked))

        def filled(values: Tensor, count: int) -> Tensor:
            return F.pad(values, (0, 0) * (values.ndim - 1) + (0, count - len(values)))

        def stacked(name: str) -> Tensor:
            return torch.stack([filled(getattr(base, name), most) for base in bases])

        grids = torch.tensor([base.grid for base in bases], device=device)
        where = torch.stack([filled(_in_grid(base), most) for base in bases])
        there = torch.tensor([[i < len(base.x) for i in range(most)] for base in bases], device=device)
        said = torch.tensor([[i < len(row) for i in range(longest)] for row in asked], device=device)
        words = torch.stack([filled(row, longest) for row in asked])
        seen, keys = stacked("tokens"), stacked("x")
        return Visual(seen, keys, stacked("attention"), stacked("early"), words, said, there, where, grids)

    def _seeing(self, bases: Sequence[Base], visual: Visual, kept: Kept) -> Any:
        """What the reader sees of pages of which some tokens are kept."""

        def see(glances: Sequence[Glance]) -> Any:
            there = kept.index >= 0
            chosen = torch.zeros_like(visual.mask).scatter(1, kept.index.clamp(min=0), there)
            notes = self._notes(bases, visual, chosen, glances)
            return [row[here] for row, here in zip(kept.tokens, there, strict=True)], notes

        return see

    def _notes(self, bases: Sequence[Base], visual: Visual, chosen: Tensor, glances: Sequence[Glance]) -> Any:
        most = visual.mask.shape[1]
        places = torch.stack([F.pad(base.places, (0, 0, 0, most - len(base.places))) for base in bases])
        return take(self.reader.encoder, visual.keys, places, self.reader.points(glances), chosen)

    def _looks(self, glances: Sequence[Glance], kept: Tensor) -> list[Glance]:
        """The cells that were kept, as looks."""
        index = kept.to(glances[0].selection.boxes.device)
        rows = [row[row >= 0][None] for row in index]
        return [replace(g, selection=g.selection.take(row), cells=None) for g, row in zip(glances, rows, strict=True)]

    def _inside(
        self,
        name: str,
        budget: int,
        bases: Sequence[Base],
        visual: Visual,
        whole: Kept,
        glances: Sequence[Glance],
        looking: Sequence[str],
        most: int,
    ) -> tuple[list[Glance], list[Any], list[float]]:
        """A method between layers: a first pass chooses, notes are read there, and the second pass answers."""
        reader, method = self.reader, INSIDE[name]
        there = whole.index >= 0
        seen = [row[here] for row, here in zip(whole.tokens, there, strict=True)]
        counts = [len(row) for row in seen]
        depth = len(reader.language.model.model.layers)
        plan = method.plan(depth, max(counts), budget)
        embeds, mask = reader.prompt(seen, [[] for _ in seen], looking)
        _, left = self._dropping().begin(self._text(embeds, mask, counts), method, plan, choosing=True)
        final = torch.where(F.pad(left, (0, whole.index.shape[1] - left.shape[1])) & there, whole.index, -1)
        chosen = torch.zeros(len(final), visual.mask.shape[1] + 1, dtype=torch.bool, device=final.device)
        chosen = chosen.scatter(1, torch.where(final >= 0, final, visual.mask.shape[1]), True)[:, :-1]

        def see(asked: Sequence[Glance]) -> Any:
            return seen, self._notes(bases, visual, chosen, asked)

        def speak(embeds: Tensor, mask: Tensor, most: int, temperature: float, seed: int) -> Iterator[Any]:
            model, run = reader.language.model, self._dropping()
            logits, _ = run.begin(self._text(embeds, mask, counts), method, plan)
            ended = torch.zeros(len(embeds), dtype=torch.bool)
            for _ in range(most):
                ids = logits.argmax(1, keepdim=True)
                yield ids[:, 0].tolist(), logits.float().softmax(1).gather(1, ids)[:, 0].tolist()
                ended |= torch.tensor([token in reader.ends for token in ids[:, 0].tolist()])
                if bool(ended.all()):
                    return
                logits = run.step(model.get_input_embeddings()(ids))

        *_, answers = reader.reply(glances, most=most, see=see, speak=speak)
        means = [mean_tokens(plan, depth, count) for count in counts]
        return self._looks(glances, _packed(final)), answers, means

    def _dropping(self) -> Dropping:
        model: Any = self.reader.language.model
        return Dropping(model.model, model.lm_head)

    def _text(self, embeds: Tensor, mask: Tensor, counts: Sequence[int]) -> Text:
        """Visual tokens stand behind the opening words."""
        opening, length = len(self.reader.language.encode(OPENING)), embeds.shape[1]
        order = torch.arange(length, device=embeds.device)
        begin = (length - mask.sum(1) + opening)[:, None]
        end = begin + torch.tensor(counts, device=embeds.device)[:, None]
        places = (mask.cumsum(1) - 1).clamp(min=0)
        return Text.of(embeds, mask, (order >= begin) & (order < end), places)


def entering(name: str, depth: int, budget: int) -> int:
    """How many tokens a method leaves before the language model: more, if it drops some of them inside."""
    more = getattr(INSIDE.get(name), "entering", None)
    return int(more(depth, budget)) if more else budget


def _all(mask: Tensor) -> Tensor:
    return torch.where(mask, torch.arange(mask.shape[1], device=mask.device), -1)


def _packed(index: Tensor) -> Tensor:
    """Rows with what is not -1 first."""
    return index.gather(1, (index < 0).long().argsort(dim=1, stable=True))


def _in_grid(base: Base) -> Tensor:
    """Row and column of each token of an even look. [N, 2]"""
    columns = base.grid[1]
    number = torch.arange(len(base.x), device=base.x.device)
    return torch.stack((number // columns, number % columns), 1).float()


@contextmanager
def received(blocks: Any, noted: dict[int, Tensor]) -> Iterator[None]:
    """While this lasts, two blocks leave behind how much each token is attended to, the mean over heads and tokens."""

    def noting(layer: int) -> Any:
        def note(module: Attention, args: tuple[Tensor, ...], how: dict[str, Any], _: Tensor) -> None:
            x, turn = args[0], how.get("turn")
            q = module._ready(module.q(x).unflatten(-1, (module.heads, -1)), turn).transpose(1, 2)
            k = module.keys(x, turn)[0].transpose(1, 2)
            rows = [one.float() @ every.float().mT * SHARPNESS for one, every in zip(q, k, strict=True)]
            noted[layer] = torch.stack([row.softmax(-1).mean((0, 1)) for row in rows])

        return note

    layers = {layer % len(blocks) for layer in (EARLY, LATE)}
    handles = [blocks[n].attention.register_forward_hook(noting(n), with_kwargs=True) for n in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
