"""What `benchmarks/eye.py` measures with: pages and their questions, where each method looks, what counts as found.

Boxes are x0, y0, x1, y1 in pixels. The methods are those of `Eye`; those that know no question look with an empty one.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from homunculus import CellTree, Eye, Selection, allocate, load_image
from homunculus import fixation as looking
from homunculus.reader.session import CUT_PRINT
from homunculus.relevance import Scene, mix_relevances, query, relevance_of

BOXES = {"sroie": "answer_boxes", "funsd": "answer_boxes", "docvqa": "answer_boxes_ocr"}  # the key of each set
EYES = {name: Eye(name) for name in ("dag", "foveated", "uniform")}
EYES["reader"] = Eye("foveated", error="legibility", **CUT_PRINT)  # as the reader looks
QUERY_FREE = ("saliency", "information", "centre", "random", "learned")
ENOUGH = 0.8  # of an answer's area
SMALLEST = 12  # pixels high: text that can still be read
FALL_OFF = 0.25  # of the page: sigma of the relevance that knows only the centre
ELSEWHERE = 0.001  # what the oracle gives to cells without an answer


@dataclass(frozen=True)
class Question:
    """One question and where its answer stands; `together` if the boxes are parts of one answer, not alternatives."""

    qid: str
    text: str
    boxes: np.ndarray  # [J, 4]
    together: bool
    sort: str


@dataclass(frozen=True)
class Page:
    """An image with its questions."""

    image: Path
    questions: tuple[Question, ...]


# ---- reading the sets ---------------------------------------------------------------------------------------------


def sets_in(folder: Path | None, split: str) -> list[str]:
    """The sets that a data folder has."""
    return [name for name in BOXES if folder and (folder / name / split / "questions.jsonl").is_file()]


def question_pages(folder: Path, name: str, split: str, limit: int | None = None) -> list[Page]:
    """The pages of a set with the questions whose answer boxes are known, the first `limit` of them."""
    rows = [row for row in _lines(folder / name / split / "questions.jsonl") if row.get(BOXES[name])]
    pages: dict[str, list[Question]] = {}
    for row in rows[:limit]:
        pages.setdefault(row["image"], []).append(_question(name, row))
    return [Page(folder / name / split / image, tuple(asked)) for image, asked in pages.items()]


def _question(name: str, row: dict) -> Question:
    sort = row["qid"].rsplit("_", 1)[-1] if name == "sroie" else name
    boxes = np.array(row[BOXES[name]], dtype=np.float64)
    return Question(row["qid"], row["question"], boxes, sort == "address", sort)


def _lines(path: Path) -> Iterator[dict]:
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def scene_of(image: Path | Tensor, device: str = "cpu") -> Scene:
    """The scene that `Eye` makes of one image."""
    pixels = load_image(image).to(device)
    return Scene(pixels[None], CellTree(pixels.shape[1], pixels.shape[2]))


# ---- where each method looks --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """One method's relevance [R, N] and fixations [R, 1, 2] on a page; R is 1 if it is the same for all questions."""

    relevance: Tensor
    fixation: Tensor


def ways(scene: Scene, questions: Sequence[Question], scout=None, only: Sequence[str] = ()) -> dict[str, Way]:
    """Every method's way of looking at one page, each signal made once; without a scout only those that need none."""
    tree, texts, free = scene.tree, [q.text for q in questions], [""]
    made: dict[str, Tensor] = {}
    if scout is not None:
        seen, named = scout.page(scene), torch.cat([query(scene, [text]) for text in texts])  # [Q, N]
        made["query"] = named * scout.ask(seen, scene, texts).to(named)
    if only:
        return {name: Way(made[name], fixate(scene, made[name], texts, name == "query")) for name in only}
    made |= {name: relevance_of(name, scene, free) for name in ("saliency", "information")}
    if scout is not None:
        made["opponent"] = mix_relevances(tree, made)  # [Q, N]: the two that know no question are repeated
        made["learned"] = scout.learned(scene)
    made["random"] = tree.lift(torch.stack([_noise(tree, q.qid) for q in questions]), "max")
    knows = {"query": texts, "opponent": texts, "random": [""] * len(texts)}
    found = {name: Way(r, fixate(scene, r, knows.get(name, free), name == "query")) for name, r in made.items()}
    return found | {"centre": centre_way(tree), "oracle": oracle_way(tree, questions)}


def fixate(scene: Scene, relevance: Tensor, texts: Sequence[str], has_prior: bool) -> Tensor:
    """Where `Eye` fixates for each row's question; `has_prior` where relevance has it in it. [R, N] -> [R, 1, 2]"""
    rows = zip(relevance.split(1), texts, strict=True)
    return torch.cat([EYES["foveated"]._fixate(scene, row, text, None, 1, has_prior) for row, text in rows])


def _noise(tree: CellTree, qid: str) -> Tensor:
    generator = torch.Generator().manual_seed(zlib.crc32(qid.encode()))
    return torch.rand(tree.shapes[0], generator=generator, dtype=torch.float64).to(tree.device)


def centre_way(tree: CellTree) -> Way:
    """The middle of the page, all cells alike."""
    return Way(torch.ones(1, tree.size, dtype=torch.float64, device=tree.device), looking.centre(tree))


def falling_off(tree: CellTree) -> Tensor:
    """The same for a rule that knows no fixation: a relevance that falls off from the middle of the page. [1, N]"""
    size = tree.sizes.flip(1).double()
    away = ((tree.centre[tree.at(0)] / size - 0.5) / FALL_OFF).square().sum(1)
    return tree.lift(torch.exp(-away / 2)[None], "max")


def oracle_way(tree: CellTree, questions: Sequence[Question]) -> Way:
    """Knows where the answers stand: relevance 1 there, next to nothing elsewhere."""
    cells = tree.box[tree.at(0)].double()
    rows, places = [], []
    for question in questions:
        boxes = torch.from_numpy(question.boxes).to(cells)
        low, high = torch.maximum(cells[:, None, :2], boxes[:, :2]), torch.minimum(cells[:, None, 2:], boxes[:, 2:])
        rows.append((low < high).all(2).any(1).double().clamp(min=ELSEWHERE))
        if question.together:
            boxes = torch.cat((boxes[:, :2].amin(0), boxes[:, 2:].amax(0)))[None]
        places.append((boxes[0, :2] + boxes[0, 2:]) / 2)
    return Way(tree.lift(torch.stack(rows), "max"), torch.stack(places)[:, None])


def choose(scene: Scene, allocator: str, method: str, way: Way, budget: int) -> Selection:
    """The cells that `Eye(allocator, ...)` would choose, for all rows of a way at once."""
    relevance = falling_off(scene.tree) if (allocator, method) == ("dag", "centre") else way.relevance
    eye = EYES[allocator]
    options = eye.options | eye.context(scene, [""] * len(relevance))
    return allocate(eye.allocator, scene.tree, relevance, budget, way.fixation, **options)


# ---- what counts as found -----------------------------------------------------------------------------------------


def readable_level(box: np.ndarray) -> int:
    """The coarsest level at which text as high as the box can still be read."""
    return max(0, math.floor(math.log2((box[3] - box[1]) / SMALLEST)))


def covered(boxes: np.ndarray, box: np.ndarray) -> float:
    """Share of a box's area that lies in at least one of the boxes [K, 4], exact: painted on their own borders."""
    low, high = np.maximum(boxes[:, :2], box[:2]), np.minimum(boxes[:, 2:], box[2:])
    there = (low < high).all(1)
    if not there.any():
        return 0.0
    low, high = low[there], high[there]
    inside, steps = [], []
    for axis in (0, 1):
        edges = np.unique((low[:, axis], high[:, axis]))
        inside.append((low[:, axis, None] <= edges[:-1]) & (edges[1:] <= high[:, axis, None]))  # [K, n]
        steps.append(np.diff(edges))
    painted = inside[1].T.astype(np.float64) @ inside[0].astype(np.float64) > 0  # [rows, columns]
    return float(steps[1] @ painted @ steps[0] / np.prod(box[2:] - box[:2]))


def found(boxes: np.ndarray, levels: np.ndarray, question: Question) -> bool:
    """Whether the chosen cells show the answer: any of its boxes, or all together if they are parts of one."""
    shares = np.array([covered(boxes[levels <= readable_level(box) + 1e-9], box) for box in question.boxes])
    if not question.together:
        return bool(shares.max() >= ENOUGH - 1e-9)
    areas = np.prod(question.boxes[:, 2:] - question.boxes[:, :2], axis=1)
    return bool(shares @ areas / areas.sum() >= ENOUGH - 1e-9)


def hits(selection: Selection, questions: Sequence[Question]) -> np.ndarray:
    """Whether each question's answer was found; a selection of one row is that of all questions. bool [Q]"""
    rows = []
    for b in range(len(selection)):
        row = selection.row(b)
        rows.append((row.boxes[0].double().cpu().numpy(), row.levels[0].double().cpu().numpy()))
    rows = rows * len(questions) if len(rows) == 1 else rows
    return np.array([found(*row, question) for row, question in zip(rows, questions, strict=True)])


def far_apart(one: np.ndarray, other: np.ndarray, width: int, height: int, share: float = 0.15) -> bool:
    """Whether two boxes do not touch and their centres lie more than a share of the page apart, across or down."""
    touch = bool((np.maximum(one[:2], other[:2]) <= np.minimum(one[2:], other[2:])).all())
    away = np.abs((one[:2] + one[2:]) - (other[:2] + other[2:])) / 2
    return not touch and bool((away > share * np.array((width, height))).any())


def distant(questions: tuple[Question, ...], tree: CellTree) -> list[tuple[int, int]]:
    """Pairs of questions about places far from each other."""
    first = [question.boxes[0] for question in questions]
    pairs = combinations(range(len(questions)), 2)
    return [(a, b) for a, b in pairs if far_apart(first[a], first[b], tree.width, tree.height)]


def overlaps(selection: Selection, tree: CellTree, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """Intersection over union of the finest cells that two rows chose; pairs without any are left out."""
    chosen = torch.zeros(len(selection), tree.size + 1, dtype=torch.bool)
    chosen.scatter_(1, selection.indices.cpu() % (tree.size + 1), True)  # the tail, -1, goes to the last place
    fine = chosen[:, tree.at(0)].numpy()
    both = [((fine[a] & fine[b]).sum(), (fine[a] | fine[b]).sum()) for a, b in pairs]
    return np.array([inside / either for inside, either in both if either])


# ---- figures ------------------------------------------------------------------------------------------------------


def by_sort(pages: list[Page], hits: np.ndarray) -> list[dict]:
    sorts = np.array([question.sort for page in pages for question in page.questions])
    masks = {str(sort): sorts == sort for sort in np.unique(sorts)}
    return [{"sort": s, "value": float(hits[mask].mean()), "n": int(mask.sum())} for s, mask in masks.items()]


# ---- pages to take the time on ------------------------------------------------------------------------------------


def text_page(width: int, height: int, seed: int = 0) -> Tensor:
    """A page full of random words. uint8 [3, height, width]"""
    letters, random = np.array(list("abcdefghijklmnopqrstuvwxyz0123456789")), np.random.default_rng(seed)
    image, font = Image.new("L", (width, height), 255), ImageFont.load_default(20)
    draw = ImageDraw.Draw(image)
    for top in range(40, height - 40, 30):
        line = " ".join("".join(random.choice(letters, random.integers(2, 10))) for _ in range(width // 80))
        draw.text((40, top), line, 0, font)
    return torch.from_numpy(np.array(image)).expand(3, -1, -1).contiguous()


def speed_pages(folder: Path | None, split: str) -> dict[str, Tensor]:
    pages = {"2048 x 2048": text_page(2048, 2048), "4096 x 3000": text_page(4096, 3000)}
    if "docvqa" not in sets_in(folder, split):
        return pages
    sizes = {}
    for page in question_pages(folder, "docvqa", split):
        with Image.open(page.image) as image:
            sizes[page.image] = image.size
    largest = max(sizes, key=lambda image: sizes[image][0] * sizes[image][1])
    width, height = sizes[largest]
    return {f"{width} x {height} (docvqa)": load_image(largest)} | pages
