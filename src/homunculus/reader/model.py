"""The reader: looks at a page under a fixed budget of tokens, and answers a question about it.

Eye, encoder, bridge and language model in a row. The page is taken in once; every question looks at it anew, where its
own answer lies, and always costs the language model the same number of tokens.
"""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast, overload
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus import image as images
from homunculus import positions
from homunculus.errors import InputError, whole_number
from homunculus.eye import Eye, Fixation, Glance, save
from homunculus.reader.blocks import steady
from homunculus.reader.bridge import Bridge
from homunculus.reader.encoder import Encoder
from homunculus.reader.language import Language, fingerprint
from homunculus.reader.notes import UNSURE, Note, laid_out, spots, take
from homunculus.reader.prompt import NOT_FOUND
from homunculus.reader.scout import MAPS, Scout
from homunculus.reader.sight import Sight
from homunculus.reader.talk import BEFORE, END, note_ids, prompt_ids

if TYPE_CHECKING:
    from PIL import Image

    from homunculus.image import Source
    from homunculus.relevance import Scene

See = Callable[[Sequence[Glance]], tuple[list[Tensor], list[list[Note]]]]
Speak = Callable[[Tensor, Tensor, int, float, int], Iterator[tuple[list[int], list[float]]]]

LONGEST = 64  # tokens of an answer unless told
TOGETHER = 8  # questions that are answered at a time
COLDEST = 1e-4  # a temperature up to which sampling is taking the likeliest
SEEDS = -(1 << 63), (1 << 63) - 1  # the least and the greatest
LOOKING = ("allocator", "relevance", "budget")  # words of `ask` and whom they are for
LOADING, TALKING = ("page", "dpi", "max_pixels"), ("most", "temperature", "seed")


@dataclass(frozen=True, eq=False)
class Answer:
    """What the reader says to a question, how sure it is (0 to 1), what it looked at, and how long each part took.

    `notes` are the lines that it read on the way, those first that it thought most likely to hold the answer.
    """

    text: str
    confidence: float
    glance: Glance
    notes: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    ended: bool = True  # else it has as many tokens as it may have, and would go on

    @property
    def how_sure(self) -> str:
        """The confidence in words."""
        return f"{self.confidence:.0%} sure"

    def to_dict(self) -> dict[str, Any]:
        """The glance's entries with answer, confidence, notes and seconds, ready for JSON."""
        said = {"answer": self.text, "confidence": self.confidence, "notes": self.notes, "seconds": self.seconds}
        return self.glance.to_dict() | said

    def to_json(self) -> str:
        """`to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False) + "\n"

    def picture(self) -> Image.Image:
        """The picture of the glance with the answer above it."""
        from homunculus.viz import picture

        return picture(self.glance, f"{self.text}   ({self.how_sure})")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture (.png, .jpg, .webp) or the numbers (.json)."""
        save(self, path)


class Reader:
    """Answers questions about images. `homunculus.load_reader()` makes one from the shipped weights.

    Args:
        encoder, scout, bridge: the trained parts; the bridge is worked into the language model's weights.
        language: the language model.
        fits: fingerprint of the language model that the bridge was trained for.
        calibration: slope and offset that turn the log odds of an answer's mean token probability into those of
            its being right.
    """

    def __init__(
        self,
        encoder: Encoder,
        scout: Scout,
        bridge: Bridge,
        language: Language,
        fits: str = "",
        calibration: tuple[float, float] = (1.0, 0.0),
    ) -> None:
        if fits and fingerprint(language.model) != fits:
            warnings.warn(
                f"the reader was trained with another language model than the one in {language.folder}; "
                "its answers will be poor",
                stacklevel=2,
            )
        bridge.merge(language.model)
        self.encoder, self.scout, self.bridge, self.language = encoder, scout, bridge, language
        self.calibration = calibration
        self.marks: dict[str, str] = {}  # hashes of the files that it was loaded from
        self.device = next(encoder.parameters()).device
        self.ends = set(language.encode(END))
        self.sight = Sight()
        self.points_of: WeakKeyDictionary[Scene, dict[str, Tensor]] = WeakKeyDictionary()  # where to read, by question

    @overload
    def ask(self, image: Source, question: str, **how: Any) -> Answer: ...

    @overload
    def ask(self, image: Source, question: Sequence[str], **how: Any) -> list[Answer]: ...

    def ask(self, image: Source, question: str | Sequence[str], **how: Any) -> Answer | list[Answer]:
        """Answer a question about an image, or several about the same image, which is then taken in only once.

        `allocator`, `relevance`, `budget` and `fixation` say how to look (see `homunculus.Eye`), `most` how many tokens
        an answer may have; `temperature` above 0 samples, from `seed`. page, dpi, max_pixels go to the loading.
        """
        questions = [question] if isinstance(question, str) else list(question)
        look, talk, seconds = self._opened(image, how)
        answers: list[Answer] = []
        for first in range(0, len(questions), TOGETHER):
            *_, last = self._answers(look, questions[first : first + TOGETHER], talk, seconds)
            answers += last
        return answers[0] if isinstance(question, str) else answers

    def stream(self, image: Source, question: str, **how: Any) -> Iterator[Answer]:
        """The answer as it grows, token by token; the last is the whole."""
        look, talk, seconds = self._opened(image, how)
        for grown in self._answers(look, [question], talk, seconds):
            yield grown[0]

    def _opened(
        self, image: Source, how: dict[str, Any]
    ) -> tuple[Callable[[Sequence[str]], list[Glance]], dict[str, Any], dict[str, float]]:
        """A way to look at an image for a question, what belongs to answering, and how long the loading took."""
        begun = time.perf_counter()
        unknown = how.keys() - {*LOOKING, *LOADING, *TALKING, "fixation"}
        if unknown:
            raise InputError(
                f"ask knows no {sorted(unknown)[0]!r}; it knows {', '.join((*LOOKING, *LOADING, *TALKING))}"
            )
        looking, loading, talking = ({k: how[k] for k in names if k in how} for names in (LOOKING, LOADING, TALKING))
        eye = Eye(scout=self.scout, **({"relevance": "query"} | looking))
        scene = eye.scene(images.load(image, **loading).to(self.device))
        look = partial(self._looks, eye, scene, how.get("fixation"))
        return look, talking, {"load": time.perf_counter() - begun}

    @steady()
    def _looks(self, eye: Eye, scene: Scene, fixation: Fixation, questions: Sequence[str]) -> list[Glance]:
        """Looks at a page; on a GPU, pages of a size that comes again go from pixels to cells in one captured graph."""
        new = fixation is None and scene not in self.scout.seen
        if new and scene.pixels.is_cuda and self.sight.can(eye, questions):
            return self.sight.glances(scene, questions, eye)
        return eye.look_for(scene, questions, fixation)

    def _answers(
        self,
        look: Callable[[Sequence[str]], list[Glance]],
        questions: Sequence[str],
        talk: dict[str, Any],
        seconds: dict[str, float],
    ) -> Iterator[list[Answer]]:
        if not questions or not all(isinstance(question, str) and question.strip() for question in questions):
            raise InputError("a question is missing: ask something about the image")
        begun = time.perf_counter()
        with torch.no_grad():
            glances = look(questions)
        return self.reply(glances, seconds=seconds | {"look": time.perf_counter() - begun}, **talk)

    @torch.no_grad()
    def reply(
        self,
        glances: Sequence[Glance],
        most: int = LONGEST,
        temperature: float = 0.0,
        seed: int = 0,
        seconds: dict[str, float] | None = None,
        see: See | None = None,
        speak: Speak | None = None,
    ) -> Iterator[list[Answer]]:
        """Answers to the questions of glances at any images, in one batch, after each further token of theirs.

        `see` and `speak` are other ways to turn glances into tokens and notes, and to go through the language model.
        """
        most, seed = whole_number("most", most, 1), whole_number("seed", seed, *SEEDS)
        clock, seconds = [time.perf_counter()], dict(seconds or {})

        def lap(name: str) -> None:
            clock.append(time.perf_counter())
            seconds[name] = seconds.get(name, 0.0) + clock[-1] - clock[-2]

        seen, notes = (see or self.see)(glances)
        lap("encode")
        embeds, there = self.prompt(seen, notes, [glance.question for glance in glances])
        said: list[list[int]] = [[] for _ in glances]
        chances: list[list[float]] = [[] for _ in glances]
        answers: dict[int, Answer] = {}
        for ids, chance in (speak or self._tokens)(embeds, there, most, temperature, seed):
            lap("answer" if "read" in seconds else "read")
            for row, (token, p) in enumerate(zip(ids, chance, strict=True)):
                if not (said[row] and said[row][-1] in self.ends):
                    said[row].append(token)
                    chances[row].append(p)
                    answers[row] = self._answer(glances[row], notes[row], said[row], chances[row], dict(seconds))
            yield [answers[row] for row in range(len(glances))]

    @steady()
    def see(self, glances: Sequence[Glance]) -> tuple[list[Tensor], list[list[Note]]]:
        """What the language model gets for each glance: tokens [K, width] as one reads a page, and lines read there."""
        shown = [glance.in_rows() for glance in glances]
        looks = [glance.selection for glance in shown]
        most = max(look.mask.shape[1] for look in looks)
        cells, places, masks = [], [], []
        for glance, look in zip(shown, looks, strict=True):
            missing = most - look.mask.shape[1]
            cells.append(F.pad(glance.patches(), (0, 0) * 3 + (0, missing)))
            places.append(F.pad(positions.coordinates(look)[0], (0, 0, 0, missing)))
            masks.append(F.pad(look.mask[0], (0, missing)))
        mask = torch.stack(masks).to(self.device)
        sizes = torch.cat([look.sizes / look.cell for look in looks]).to(self.device)
        batch = torch.stack(cells).to(self.device), torch.stack(places).to(self.device)
        x = self.encoder(*batch, mask)
        seen = self.bridge.sight(x, self.encoder.characters(x), batch[1], sizes)
        notes = take(self.encoder, x, batch[1], self.points(glances), mask)
        return [row[there] for row, there in zip(seen, mask, strict=True)], notes

    def points(self, glances: Sequence[Glance]) -> Tensor:
        """Where to read for each glance's question, in fine cells: [n, POINTS, 2]."""
        asked: dict[Scene, list[str]] = {}
        for glance in glances:
            asked.setdefault(glance.scene, []).append(glance.question)
        known = {scene: self.places(scene, questions) for scene, questions in asked.items()}
        return torch.stack([known[glance.scene][glance.question] for glance in glances])

    @steady()
    def places(self, scene: Scene, questions: Sequence[str]) -> dict[str, Tensor]:
        """The same for questions about an image, [POINTS, 2] each; remembered as long as the image is."""
        known = self.points_of.setdefault(scene, {})
        fresh = [question for question in dict.fromkeys(questions) if question not in known]
        if fresh:
            page = self.scout.page(scene)
            found = self.scout.found(page, fresh).float()
            letters = self.scout.text(page.features).expand(len(fresh), -1, -1)
            places = spots(found, letters, (scene.tree.height, scene.tree.width)) / scene.tree.cell
            known.update(zip(fresh, places, strict=True))
        wanted = {question: known[question] for question in questions}
        for old in list(known)[:-MAPS]:
            del known[old]
        return wanted

    def prompt(self, seen: list[Tensor], notes: list[list[Note]], questions: Sequence[str]) -> tuple[Tensor, Tensor]:
        """What the language model reads, shorter rows filled up in front: [n, L, width], and what of it is there."""
        embed = cast(Any, self.language.model).get_input_embeddings()

        def words(ids: list[int]) -> Tensor:
            return cast(Tensor, embed(torch.tensor(ids, device=self.device)))

        before, tokenizer = words(self.language.encode(BEFORE)), self.language.tokenizer
        read = note_ids(tokenizer, [laid_out(page) for page in notes])
        rows = [
            torch.cat((before, cells.to(before.dtype), words(prompt_ids(tokenizer, question, noted))))
            for cells, noted, question in zip(seen, read, questions, strict=True)
        ]
        length = max(map(len, rows))
        embeds, there = before.new_zeros(len(rows), length, before.shape[1]), torch.zeros(len(rows), length)
        for i, row in enumerate(rows):
            embeds[i, length - len(row) :], there[i, length - len(row) :] = row, 1
        return embeds, there.long().to(self.device)

    def _tokens(
        self, embeds: Tensor, there: Tensor, most: int, temperature: float, seed: int
    ) -> Iterator[tuple[list[int], list[float]]]:
        """Tokens of the answers one after the other, with their probability, until all have ended."""
        model, past = cast(Any, self.language.model), None
        lots = torch.Generator(self.device).manual_seed(seed)
        ended = torch.zeros(len(embeds), dtype=torch.bool)
        feed: dict[str, Any] = {"inputs_embeds": embeds, "position_ids": (there.cumsum(1) - 1).clamp(min=0)}
        for _ in range(most):
            with steady():
                out = model(**feed, attention_mask=there, past_key_values=past, use_cache=True, logits_to_keep=1)
            past, logits = out.past_key_values, out.logits[:, -1].float()
            chance = logits.softmax(1)
            if temperature > COLDEST:
                ids = (logits / temperature).softmax(1).multinomial(1, generator=lots)
            else:
                ids = logits.argmax(1, keepdim=True)
            found = chance.gather(1, ids)[:, 0].tolist()
            chosen = ids[:, 0].tolist()
            yield chosen, found
            ended |= torch.tensor([token in self.ends for token in chosen])
            if bool(ended.all()):
                return
            there = torch.cat((there, there.new_ones(len(there), 1)), 1)
            feed = {"input_ids": ids, "position_ids": there.sum(1, keepdim=True) - 1}

    def _answer(
        self, glance: Glance, notes: list[Note], ids: list[int], chances: list[float], seconds: dict[str, float]
    ) -> Answer:
        text = self.language.decode([token for token in ids if token not in self.ends])
        text = (
            text.strip().removesuffix(UNSURE).strip()
        )  # copied from a note, which has it from us and not from the page
        sure = calibrated(sum(chances) / len(chances), self.calibration)
        read, ended = tuple(note.text for note in notes), ids[-1] in self.ends
        return Answer(text, 1 - sure if text == NOT_FOUND else sure, glance, read, seconds, ended)


def calibrated(chance: float, calibration: tuple[float, float]) -> float:
    """How often an answer of this mean token probability is right."""
    slope, offset = calibration
    odds = math.log(max(chance, 1e-6)) - math.log(max(1 - chance, 1e-6))
    return 1 / (1 + math.exp(-(slope * odds + offset)))
