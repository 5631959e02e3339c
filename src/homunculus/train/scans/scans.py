"""Real pages for training: folders of images, words and questions, as the same labelled sheets that drawing gives."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from homunculus.errors import InputError
from homunculus.reader.letters import encode, plain
from homunculus.train.asks import PARTS, Array, Asks, part_of
from homunculus.train.page_lines import DerivedQuestion, WordLine
from homunculus.train.pages import Labels, Sheets, to_grid
from homunculus.train.scans.box_questions import Derived, derived
from homunculus.train.scans.placement import PLACES, Band, Gap, PagePlacement, bands, gaps
from homunculus.train.synth import degrade as worn

HELD = 12  # one page in so many is held back to see when to stop
ASKED, OWN = 0.4, 0.35  # shares of questions that people asked, and that follow from the page's lines
CUT = 0.4  # share of pages whose bands change places
MOST = 24  # boxes of a page that people tend to ask about
NARROW, WIDE = set("iljtfrI.,:;'|!()[] "), set("mwMWQOGD@%&")
SEARCHES = ("{}", "{}?", "Find '{}'", "Where is '{}'?", "Where does it say {}?", "Look for {}", 'Show me "{}"')


@dataclass(frozen=True, eq=False)
class Scan:
    """One page: its pixels, what stands on it, what was asked about it."""

    name: str
    pixels: Array  # uint8 [C, h, w]
    letters: Array  # [n, 4] code, centre x, centre y, pixels per em; none where boxes hold whole lines
    searches: list[tuple[str, Array]]
    questions: list[DerivedQuestion]
    lines: list[WordLine]
    derived: list[Derived]
    gaps: list[Gap]
    dense: bool


@dataclass(frozen=True, eq=False)
class Placed:
    """Pages picked and placed but not yet shown: maps [B, 2, 3] of their pixels to the canvas, labels on the canvas.

    The bands of each page are put together in the order given before that.
    """

    size: tuple[int, int]
    picked: list[int]
    bands: list[list[Band]]
    places: Tensor
    labels: Labels


class Scans:
    """Pages of some data folders; `draft` picks and places a batch of them, `show` gives its pixels on the device.

    Args:
        folders: each holds questions.jsonl, images/ and, where words are known, words.jsonl.
        held: the pages that are held back, or all the others.
    """

    def __init__(self, folders: Sequence[Path], device: torch.device | str, held: bool = False) -> None:
        self.pages: list[Scan] = []
        self.cut = 0.0 if held else CUT
        for folder in folders:
            self.pages += _read_folder(Path(folder), held)
        if not self.pages:
            raise InputError(f"there are no pages in {', '.join(map(str, folders))}")
        self.pixels = [torch.from_numpy(page.pixels).to(device) for page in self.pages]

    def __len__(self) -> int:
        return len(self.pages)

    def draft(
        self, count: int, size: tuple[int, int], rng: random.Random, asks: int = 8, crops: bool = False
    ) -> Placed:
        """Pages drawn by lot and where they lie on canvases, height x width: about their own size, large ones cut."""
        H, W = size
        suited = [i for i, page in enumerate(self.pages) if _suits(page.pixels.shape[1:], size, crops)]
        picked = rng.choices(suited or range(len(self.pages)), k=count)
        places = [self._place(self.pages[i], H, W, crops, rng) for i in picked]
        letters = [_letters(b, self.pages[i], place) for b, (i, place) in enumerate(zip(picked, places, strict=True))]
        dense = [self.pages[i].dense for i in picked]
        asked = [self._found(self.pages[i], place, H, W, asks, rng) for i, place in zip(picked, places, strict=True)]
        labels = Labels.of(letters, dense, asked)
        maps = torch.from_numpy(np.stack([place.matrix for place in places]))
        return Placed(size, picked, [place.bands for place in places], maps, labels)

    @torch.no_grad()
    def show(self, placed: Placed, hard: float = 0.5) -> Sheets:
        """The placed pages as they look, worn a little; `placed` lies on the device."""
        H, W = placed.size
        shown = [
            torch.cat([self.pixels[i][:, start:end] for start, end in order], 1) if len(order) > 1 else self.pixels[i]
            for i, order in zip(placed.picked, placed.bands, strict=True)
        ]
        channels = max(len(page) for page in shown)
        size = torch.tensor([page.shape[1:] for page in shown], device=placed.places.device)
        grids = F.affine_grid(to_grid(placed.places, size, (H, W)), [len(shown), 1, H, W], align_corners=False)
        images = torch.empty(len(shown), channels, H, W, device=grids.device)
        for image, page, grid in zip(images, shown, grids, strict=True):
            seen = F.grid_sample(page[None] / 255, grid[None], padding_mode="border", align_corners=False)
            image.copy_(seen[0].expand(channels, -1, -1))
        images = worn.wear(images, hard)
        worn.some(images, 0.03, lambda x: 1 - x)
        return Sheets((images * 255).round().to(torch.uint8).expand(-1, 3, -1, -1), placed.labels)

    def _place(self, page: Scan, H: int, W: int, crops: bool, rng: random.Random) -> PagePlacement:
        """How the page lies on the canvas."""
        h, w = page.pixels.shape[1:]
        zoom = rng.uniform(0.88, 1.08) * (1 if crops else min(1, H / h, W / w))
        wide = zoom * rng.uniform(0.95, 1.05)
        turn = rng.gauss(0, 0.008)
        linear = torch.tensor([[wide, -turn * zoom], [turn * zoom, zoom]])
        shift = []
        for room, side in ((W - w * wide, w), (H - h * zoom, h)):
            low, high = sorted((0.0, room))
            slack = 0.03 * side
            shift.append(rng.uniform(low - (slack if room > 0 else 0), high + (slack if room > 0 else 0)))
        middle = torch.tensor([w / 2, h / 2])
        offset = torch.tensor(shift) + torch.tensor([w * wide / 2, h * zoom / 2]) - linear @ middle
        order = bands(page.gaps if rng.random() < self.cut else [], h, rng)
        return PagePlacement(torch.cat((linear, offset[:, None]), 1).numpy(), order)

    def _found(self, page: Scan, place: PagePlacement, H: int, W: int, asks: int, rng: random.Random) -> Asks:
        """Questions whose answers can be pointed at, and words to look for."""
        real, own = _on_canvas(self._asked(page, place), place, H, W), self._derived(page, place, H, W, asks, rng)
        picked = rng.sample(real, min(part_of(asks, ASKED, rng), len(real)))
        picked += own[: min(part_of(asks, OWN, rng), asks - len(picked))]
        for word, boxes in rng.sample(page.searches, min(2 * asks, len(page.searches))):
            boxes = place.boxes(boxes)
            if len(picked) < asks and _inside(boxes, H, W).all():
                picked.append(DerivedQuestion(rng.choice(SEARCHES).format(word), boxes, word))
        return Asks.of(picked, asks, [box for said in real for box in said.boxes], MOST)

    def _asked(self, page: Scan, place: PagePlacement) -> list[DerivedQuestion]:
        """The questions that people asked; without those for a place on the whole page where it was cut."""
        return [said for said in page.questions if not (place.cut and PLACES.search(said.text))]

    def _derived(
        self, page: Scan, place: PagePlacement, H: int, W: int, most: int, rng: random.Random
    ) -> list[DerivedQuestion]:
        """Some of the questions that the page's lines ask by themselves."""
        some = [one.said(rng) for one in rng.sample(page.derived, min(most, len(page.derived)))]
        return _on_canvas([said for said in some if not (place.cut and PLACES.search(said.text))], place, H, W)


def _letters(b: int, page: Scan, place: PagePlacement) -> Array:
    """The letters of page number b on its canvas: [n, 5]."""
    code, spots, em = page.letters[:, :1], place.points(page.letters[:, 1:3]), page.letters[:, 3:] * place.matrix[1, 1]
    return np.concatenate((np.full_like(code, b), code, spots, em), 1).astype(np.float32)


def _on_canvas(questions: Sequence[DerivedQuestion], place: PagePlacement, H: int, W: int) -> list[DerivedQuestion]:
    """The questions whose answers stand on the canvas, and where."""
    moved = [DerivedQuestion(said.text, place.boxes(said.boxes), said.answer) for said in questions if len(said.boxes)]
    return [said for said in moved if _inside(said.boxes, H, W).all()]


def photos(folder: Path, count: int = 500, side: int = 512) -> Tensor:
    """Photographs for the backgrounds of drawn pages: uint8 [n, 3, side, side]."""
    files = sorted(Path(folder).glob("*.webp"))[:count]
    shots = [np.asarray(Image.open(file).convert("RGB").resize((side, side))) for file in files]
    return torch.from_numpy(np.stack(shots)).permute(0, 3, 1, 2).contiguous() if shots else torch.zeros(0, 3, 1, 1)


def _suits(page: Sequence[int], canvas: tuple[int, int], crops: bool) -> bool:
    """Whether a page does not vanish in a canvas and, unless it may be cut, is shown nearly whole."""
    h, w = page
    return (crops or (h <= 1.2 * canvas[0] and w <= 1.2 * canvas[1])) and h * w >= 0.3 * canvas[0] * canvas[1]


def _read_folder(folder: Path, held: bool) -> list[Scan]:
    try:
        known = (folder / "words.jsonl").is_file()  # photographs have none
        words = {row["image"]: row for row in _rows(folder / "words.jsonl")} if known else {}
        questions: dict[str, list[dict[str, Any]]] = {}
        for row in _rows(folder / "questions.jsonl"):
            questions.setdefault(row["image"], []).append(row)
    except OSError as error:
        raise InputError(f"{folder} is no data folder: {error.strerror} for {error.filename}") from error
    except (json.JSONDecodeError, KeyError) as error:
        raise InputError(f"{folder}: a line of words.jsonl or questions.jsonl cannot be used: {error}") from error
    every = {*words, *questions}
    names = sorted(name for name in every if held_back(name) == held)
    jobs = [(folder, name, words.get(name, {"words": []}), questions.get(name, [])) for name in names]
    if len(jobs) < 64:
        return [_scan(*job) for job in jobs]
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:  # decoding and text work take a core each
        return list(pool.map(_scan, *zip(*jobs, strict=True), chunksize=8))


def held_back(name: str) -> bool:
    """Whether the page of an image, by its name in its folder, is never trained on."""
    return zlib.crc32(name.encode()) % HELD == 0


def _rows(path: Path) -> Iterable[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def _scan(folder: Path, name: str, words: dict[str, Any], questions: list[dict[str, Any]]) -> Scan:
    try:
        pixels = np.asarray(Image.open(folder / name).convert("RGB"))
    except OSError as error:
        raise InputError(f"cannot read the image {folder / name}: {error.strerror or error}") from error
    grey = np.abs(pixels[::7, ::7, 0].astype(np.int16) - pixels[::7, ::7, 2]).max() < 8
    pixels = np.ascontiguousarray((pixels[:, :, :1] if grey else pixels).transpose(2, 0, 1))
    single = not any(" " in w["text"].strip() for w in words["words"])  # else the boxes hold whole lines
    items = [(plain(w["text"]), np.asarray(w["box"], np.float32)) for w in words["words"]]
    items = [(t, b) for t, b in items if t and b[2] > b[0] and b[3] > b[1] and _level(t, b)]
    lines = _rows_of(items) if single else [_line(t, b) for t, b in items]
    words_ = items if single else [word for t, b in items for word in _words_of(t, b)]
    boxes = [b for _, b in words_] + [line.box for line in lines]
    letters = [_letters_of(t, b) for t, b in items] if single else []
    asked = [
        DerivedQuestion(plain(q["question"]), _answer(q), _as_written(q.get("answers") or [""], lines))
        for q in questions
    ]
    between = gaps(np.concatenate([np.reshape(boxes, (-1, 4)), *(said.boxes for said in asked)]), pixels.shape[1])
    known = np.concatenate([np.zeros((0, 4), np.float32), *letters])
    return Scan(name, pixels, known, _searches(items), asked, lines, derived(lines), between, single and bool(items))


def _line(text: str, box: Array) -> WordLine:
    """A line of text in a box, with about where its words stand."""
    ends = box[0] + np.concatenate(([0], _widths(text).cumsum())) * (box[2] - box[0])
    words, boxes, at = text.split(" "), [], 0
    for word in words:
        boxes.append((ends[at], box[1], ends[min(at + len(word), len(ends) - 1)], box[3]))
        at += len(word) + 1
    return WordLine(words, np.array(boxes, np.float32))


def _rows_of(items: list[tuple[str, Array]]) -> list[WordLine]:
    """Words put together to lines: those that follow each other at one height."""
    lines: list[list[tuple[str, Array]]] = []
    for text, box in items:
        last = lines[-1][-1][1] if lines else None
        high = box[3] - box[1]
        follows = last is not None and abs(last[1] - box[1]) < 0.5 * high and -0.5 * high < box[0] - last[2] < 2 * high
        if follows:
            lines[-1].append((text, box))
        else:
            lines.append([(text, box)])
    return [WordLine([text for text, _ in line], np.stack([box for _, box in line])) for line in lines]


def _level(text: str, box: Array) -> bool:
    """Whether a text runs from left to right, as far as its box tells."""
    return len(text) < 3 or (box[2] - box[0]) * 1.5 > box[3] - box[1]


def _answer(question: dict[str, Any]) -> Array:
    """Boxes of the answer; of machine-read candidates those inside the region that is known to hold it."""
    boxes = question.get("answer_boxes") or question.get("answer_boxes_ocr") or []
    found = np.asarray(boxes, np.float32).reshape(-1, 4)
    region = question.get("answer_region")
    if region and len(found) > 1:
        middle = (found[:, :2] + found[:, 2:]) / 2
        inside = ((middle >= region[:2]) & (middle <= region[2:])).all(1)
        found = found[inside] if inside.any() else found
    return found[:PARTS]


def _as_written(answers: Sequence[Any], lines: Sequence[WordLine]) -> str:
    """One of the answers to a question: as a line of the page has it, capitals and all, or else the first."""
    known = [plain(str(answer)) for answer in answers]
    for answer in known:
        for line in lines:
            at = line.text.lower().find(answer.lower())
            if answer and at >= 0:
                return line.text[at : at + len(answer)]
    return known[0]


def _widths(text: str) -> Array:
    """About how wide the characters of a text are, as shares of its width."""
    wide = np.array([0.7 if c in NARROW else 1.35 if c in WIDE else 1.1 if c.isupper() else 1.0 for c in text])
    return np.asarray(wide / wide.sum())


def _letters_of(text: str, box: Array) -> Array:
    """The characters of a word that fills a box, and about where they stand: code, x, y, pixels per em. [n, 4]"""
    wide = _widths(text)
    x = box[0] + (wide.cumsum() - wide / 2) * (box[2] - box[0])
    y, em = np.full((2, len(text)), [[(box[1] + box[3]) / 2], [0.95 * (box[3] - box[1])]])
    return np.stack((encode([text], len(text))[0].numpy(), x, y, em), 1).astype(np.float32)


def _words_of(text: str, box: Array) -> list[tuple[str, Array]]:
    """The longer words of a line and about where they stand."""
    ends = box[0] + np.concatenate(([0], _widths(text).cumsum())) * (box[2] - box[0])
    found, at = [], 0
    for word in text.split(" "):
        if len(word) >= 4 and " " in text:
            found.append((word, np.array([ends[at], box[1], ends[at + len(word)], box[3]], np.float32)))
        at += len(word) + 1
    return found


def _searches(items: list[tuple[str, Array]]) -> list[tuple[str, Array]]:
    """Words and lines that stand on the page once, with their box [1, 4]."""
    pieces = [(t, b) for t, b in items if len(t) <= 40] + [piece for t, b in items for piece in _words_of(t, b)]
    seen: dict[str, int] = {}
    for t, _ in pieces:
        seen[t.lower()] = seen.get(t.lower(), 0) + 1
    return [(t, b[None]) for t, b in pieces if len(t) >= 3 and seen[t.lower()] == 1]


def _inside(boxes: Array, H: int, W: int) -> Array:
    return np.asarray((boxes[:, 0] >= 0) & (boxes[:, 1] >= 0) & (boxes[:, 2] <= W) & (boxes[:, 3] <= H))
