"""What the photographs' adapter learns: answers to questions from the cells of a photograph."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus import positions, tokens
from homunculus.errors import InputError
from homunculus.pyramid import gaussian
from homunculus.reader.language import Language, fingerprint, load_language
from homunculus.reader.lora import Lora
from homunculus.reader.photo import PhotoAdapter
from homunculus.reader.prompt import answer_ids, frame_page, start_ids
from homunculus.reader.vision import VisionEncoder
from homunculus.reader.weights import about, checked, load, usual_dtype
from homunculus.runtime.decoder import run_layers
from homunculus.train.config import DataSources, Recipe
from homunculus.train.scans.folders import is_val, read_rows
from homunculus.train.scans.photos import Photos
from homunculus.train.tasks.base import Losses, Rank, Task
from homunculus.train.tasks.selections import padded, random_selection
from homunculus.train.tasks.vision import BUDGETS, tree_of

IGNORED = -1
LENGTHS = (32, 48, 64)  # tokens of a question with its frame and its answer, beside those of the photograph
CAPTION = ("Describe the photo.", "What is in this picture?", "What does the photo show?", "Describe the image.")
SHOWN = 0.6  # of a photograph's area at least: answers are about all of it
VAL_BATCHES = 8


@dataclass(frozen=True)
class PhotoQuestion:
    """A question about a photograph, by its row, in token ids: before the cells, behind them, and each right answer."""

    row: int
    tail: list[int]
    answers: list[list[int]]


class PhotoAnswerSource:
    """Photographs with questions on one device, the encoder of their cells, and the language model."""

    def __init__(self, sources: DataSources, device: torch.device) -> None:
        if not sources.weights:
            raise InputError("sources.weights must name the folder of the vision encoder and LoRA that photo builds on")
        weights, dtype = Path(sources.weights), usual_dtype(device)
        self.device = device
        self.language = load_language(sources.language or None, device, dtype)
        _with_weights(Lora, weights, "lora").to(device).merge(self.language.model)
        self.encoder = _with_weights(VisionEncoder, weights, "vision").to(device, dtype).eval().requires_grad_(False)
        folders = [Path(folder) for folder in sources.images]
        self.photos, self.val_photos = (Photos.read(folders, device, val) for val in (False, True))
        self.start = start_ids(self.language.tokenizer)
        self.questions, self.val_questions = (self._questions(folders, val) for val in (False, True))

    def train_batches(
        self, task: Task, recipe: Recipe, step: int, rank: Rank, workers: int
    ) -> Iterator[tuple[list[Tensor], int]]:
        """Batches without end."""
        rng = random.Random(f"{recipe.seed}/{step}/{rank.rank}")
        groups = list(self.questions.values())
        shares = [recipe.mix.get(name, 1.0) for name in self.questions]
        while True:
            canvas = rng.choices(recipe.canvases, [canvas.weight for canvas in recipe.canvases])[0]
            asked = [rng.choice(group) for group in rng.choices(groups, shares, k=canvas.batch)]
            batch = self._batch(asked, self.photos, (canvas.height, canvas.width), rng, plain=False)
            yield batch, len(batch[0])

    def val_batches(self, task: Task, recipe: Recipe) -> Iterator[list[Tensor]]:
        """Questions about validation photographs."""
        rng = random.Random(recipe.seed)
        every = [question for group in self.val_questions.values() for question in group]
        for _ in range(VAL_BATCHES if every else 0):
            canvas = rng.choice(recipe.canvases)
            asked = rng.choices(every, k=canvas.batch)
            yield self._batch(asked, self.val_photos, (canvas.height, canvas.width), rng, plain=True)

    @torch.no_grad()
    def _batch(
        self, asked: Sequence[PhotoQuestion], photos: Photos, size: tuple[int, int], rng: random.Random, plain: bool
    ) -> list[Tensor]:
        """Vectors of cells [B, K, D], ids [B, T], and places and ids of the answers [B, A]."""
        generator = torch.Generator().manual_seed(rng.getrandbits(48))
        rows = torch.tensor([question.row for question in asked], device=self.device)
        crops = photos.crops(rows, size, generator, plain, smallest=SHOWN)
        tree, budget = tree_of(*size, self.device), rng.choices(list(BUDGETS), list(BUDGETS.values()))[0]
        fixation = torch.rand(len(asked), 2, device=self.device) * torch.tensor(size[::-1], device=self.device)
        selection = padded(random_selection(tree, fixation, budget, rng), budget)
        patches = tokens.patches(gaussian(crops, tree.levels), selection)
        cells, _ = self.encoder(patches, positions.coordinates(selection), selection.sizes)
        texts = [(question.tail, rng.choice(question.answers)) for question in asked]
        return [cells, *(part.to(self.device) for part in collate(self.start, texts, budget))]

    def _questions(self, folders: Sequence[Path], val: bool) -> dict[str, list[PhotoQuestion]]:
        """The questions about photographs, by set; the rows count photographs as `Photos.read` does."""
        row_of: dict[Path, int] = {}
        for folder in folders:
            names = sorted(file.name for file in (folder / "images").glob("*"))
            for name in names:
                if is_val(f"images/{name}") == val:
                    row_of[folder / "images" / name] = len(row_of)
        found: dict[str, list[PhotoQuestion]] = {}
        for folder in folders:
            for row in read_rows(folder, "questions.jsonl"):
                place = row_of.get(folder / row["image"])
                if place is not None:
                    found.setdefault(folder.parent.name, []).extend(self._asked(row, place))
        return found

    def _asked(self, row: dict[str, Any], place: int) -> list[PhotoQuestion]:
        tokenizer = self.language.tokenizer
        known = row.get("captions") or [max(row["answers"], key=lambda answer: ("_" not in answer, len(answer)))]
        answers = [ids for text in known if (ids := answer_ids(tokenizer, str(text).removesuffix(" .")))]
        questions = [row["question"]] if row["question"] else CAPTION
        framed = [frame_page(tokenizer, question, [], "page-first")[len(self.start) :] for question in questions]
        return [PhotoQuestion(place, tail, answers) for tail in framed if answers]


def collate(start: list[int], texts: Sequence[tuple[list[int], list[int]]], cells: int) -> list[Tensor]:
    """ids [B, T] without the cells, places whose next token is predicted [B, A], counted with the cells, answers."""
    longest = max(len(start) + len(tail) + len(answer) for tail, answer in texts)
    length = next((n for n in LENGTHS if longest <= n), longest)
    width = max(len(answer) for _, answer in texts)
    ids = torch.zeros(len(texts), length, dtype=torch.long)
    at = torch.zeros(len(texts), width, dtype=torch.long)
    answers = torch.full((len(texts), width), IGNORED)
    for row, (tail, answer) in enumerate(texts):
        whole = [*start, *tail, *answer]
        ids[row, : len(whole)] = torch.tensor(whole)
        first = len(start) + cells + len(tail) - 1
        at[row] = (first + torch.arange(width)).clamp(max=cells + length - 1)
        answers[row, : len(answer)] = torch.tensor(answer)
    return [torch.tensor([len(start)] * len(texts)), ids, at, answers]


class PhotoTask(Task):
    """Losses of answers about photographs; the language model and the encoder stay as they are."""

    model: PhotoAdapter
    bf16_on_cpu = True
    capturable = False  # batches come in many shapes

    def __init__(self, adapter: PhotoAdapter, language: Language, seed: int = 0) -> None:
        super().__init__(adapter, seed)
        self.header = {"fits": fingerprint(language.model), "sizes": adapter.sizes}
        self.frozen: tuple[Any, Any] = (language.model, adapter.attach(language.model))

    def forward(self, cells: Tensor, starts: Tensor, ids: Tensor, at: Tensor, answers: Tensor) -> Losses:
        """Cross-entropy of the answer tokens, and the share of rows whose tokens are all predicted.

        Shapes: cells [B, K, D]; starts [B], tokens before the cells, the same in all rows; ids [B, T]; at, answers
        [B, A].
        """
        language, switch = self.frozen
        body, start = language.model, int(starts[0])
        words = body.embed_tokens(ids)
        seen = self.model(cells.to(next(self.model.parameters()).dtype)).to(words.dtype)
        x = torch.cat((words[:, :start], seen, words[:, start:]), 1)
        position_ids = torch.arange(x.shape[1], device=x.device)[None]
        with switch.on(torch.ones(len(x), dtype=torch.bool, device=x.device)):
            x = run_layers(body, x, position_ids)
        x = x.gather(1, at[..., None].expand(-1, -1, x.shape[2]))
        logits = cast(Tensor, language.lm_head(body.norm(x))).float()
        known = answers != IGNORED
        loss = F.cross_entropy(logits.flatten(0, 1), answers.flatten(), ignore_index=IGNORED)
        right = ((logits.argmax(-1) == answers) | ~known).all(1)
        return {"answer": loss, "exact": right.float().mean()}


def _with_weights(network: Any, folder: Path, name: str) -> Any:
    """A network with its weights from a folder that `ship` wrote."""
    file = checked(folder, name)
    found = network(**about(file).get("sizes", {}))
    load(found, file)
    return found
