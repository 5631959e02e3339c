"""What the recogniser learns: strips of scanned and drawn lines, degraded in every way, by CTC."""

from __future__ import annotations

import random

import torch
import torch.nn.functional as F
from torch import Tensor

from homunculus.reader.encoder import CELL
from homunculus.reader.letters import encode, plain
from homunculus.reader.recognizer import STRIDE, Recognizer
from homunculus.reader.strips import STRIP_HEIGHT, columns_of, strip_grid, strip_level, widths_of
from homunculus.train.scans.line_pages import MAX_CHARS
from homunculus.train.scans.page_store import PageStore
from homunculus.train.synth.degradations import affine, degrade, random_apply, uniform
from homunculus.train.tasks.base import Losses, Task

BUCKETS = (128, 256, 384, 512, 768, 1024, 1536)  # widths of strips in a batch
MIN_PRINT = 5.0  # pixels: print is not shown smaller
MIXED = 0.4  # share of strips that go through cells of two levels
TOO_NARROW = 1.15  # time steps a character needs at least


class LineStore:
    """Lines of stored pages with their text.

    Shape:
        page [n], lines [n, 5], codes uint8 [n, MAX_CHARS], lengths [n], weight [n] how often each is drawn.
    """

    def __init__(self, pages: PageStore, page: Tensor, lines: Tensor, texts: list[str], weight: Tensor) -> None:
        codes = encode(texts, MAX_CHARS)
        lengths = torch.tensor([len(plain(text)) for text in texts], dtype=torch.long)
        widths = widths_of(lines.cpu())
        fits = (lengths > 0) & (lengths <= MAX_CHARS) & (lines[:, 4].cpu() >= MIN_PRINT)
        fits &= widths >= TOO_NARROW * STRIDE * lengths
        device = lines.device
        self.pages, self.page, self.lines = pages, page[fits.to(device)], lines[fits.to(device)]
        self.codes, self.lengths = codes[fits].to(torch.uint8).to(device), lengths[fits]
        bucket = torch.bucketize(widths[fits], torch.tensor(BUCKETS)).clamp(max=len(BUCKETS) - 1)
        self.members = [(bucket == b).nonzero()[:, 0] for b in range(len(BUCKETS))]
        self.weights = [weight[fits][rows] for rows in self.members]

    def batch(self, pixels: int, rng: random.Random) -> tuple[Tensor, int] | None:
        """Rows of lines of about one width, and the width of the batch: buckets by how many lines they hold."""
        counts = [max(1, pixels // (STRIP_HEIGHT * width)) for width in BUCKETS]
        shares = [float(w.sum()) / count for w, count in zip(self.weights, counts, strict=True)]
        if sum(shares) <= 0:
            return None
        b = rng.choices(range(len(BUCKETS)), shares)[0]
        generator = torch.Generator().manual_seed(rng.getrandbits(48))
        pick = self.weights[b].float().multinomial(counts[b], replacement=True, generator=generator)
        return self.members[b][pick], BUCKETS[b]


@torch.no_grad()
def strips_of(store: LineStore, rows: Tensor, columns: int, strength: float) -> tuple[Tensor, Tensor]:
    """Strips of lines: [n, 1, 32, W] from 0 to 1 and widths [n], at most `columns`.

    With degradations ends and heights are off as a line finder's are, and the level is any at which print is legible; a
    share of the strips goes through cells of two levels, as in a look.
    """
    device, page = store.lines.device, store.page[rows.to(store.lines.device)]
    lines = jittered(store.lines[rows.to(device)], 1.0 if strength else 0.0)
    widths = widths_of(lines).clamp(max=columns)
    spots = strip_grid(lines, widths, columns_of(columns))
    levels = store.pages.base.shape[1]
    finest = strip_level(lines).clamp(max=levels - 1)
    if not strength:
        return store.pages.sample(page, finest, spots)[:, None] / 255, widths
    deepest = (lines[:, 4] / MIN_PRINT).log2().clamp(min=0)
    one, other = (torch.maximum(finest, _random_level(deepest).clamp(max=levels - 1)) for _ in range(2))
    other = torch.where(torch.rand_like(deepest) < MIXED, other, one)
    strips = store.pages.sample(page, one, spots)
    strips = torch.where(
        _random_cells(spots, torch.maximum(one, other)), store.pages.sample(page, other, spots), strips
    )
    return _degraded(strips[:, None] / 255, strength), widths


def _random_level(deepest: Tensor) -> Tensor:
    """A level from 0 to the deepest one [n] at which print is legible."""
    return torch.minimum((torch.rand_like(deepest) * (deepest + 1)).floor(), deepest.floor()).long()


def _random_cells(spots: Tensor, level: Tensor) -> Tensor:
    """Half of the cells of a level [n] for each strip: which spots [n, h, w, 2] lie in them."""
    column, row = (spots / (CELL * 2.0 ** level[:, None, None, None])).floor().long().unbind(-1)
    seed = torch.randint(1 << 30, (len(level), 1, 1), device=level.device)
    mixed = (column * 73856093) ^ (row * 19349663) ^ seed  # a hash of the cell's place
    return (mixed * 2654435761 >> 16) % 2 == 0


def jittered(lines: Tensor, amount: float) -> Tensor:
    """Lines [n, 5] with their ends, heights and slopes off by a little."""
    if not amount:
        return lines
    n, high = len(lines), lines[:, 4]
    noise = torch.randn(n, 5, device=lines.device).clamp(-2, 2) * amount
    slant = 0.07 * high * noise[:, 0]
    shift = 0.06 * high * noise[:, 1]
    left, right = lines[:, 0] + 0.12 * high * noise[:, 2] - 0.04 * high, lines[:, 2] + 0.12 * high * noise[:, 3]
    right = torch.maximum(right + 0.04 * high, left + 2)
    tall = high * (1 + 0.12 * noise[:, 4] + 0.05)
    return torch.stack((left, lines[:, 1] + shift - slant, right, lines[:, 3] + shift + slant, tall), 1)


def _degraded(strips: Tensor, strength: float) -> Tensor:
    """Degradations of paper and scanner on half of the strips; other inks, fat, thin and slanted print."""
    strips = strips.contiguous()
    random_apply(strips, 0.08 * strength, lambda x: -F.max_pool2d(-x, 3, 1, 1))
    random_apply(strips, 0.06 * strength, lambda x: F.max_pool2d(x, (1, 2), 1, (0, 1))[..., : x.shape[3]])
    random_apply(strips, 0.25 * strength, _slanted)
    pick = torch.randperm(len(strips), device=strips.device)[: len(strips) // 2]
    strips[pick] = degrade(strips[pick], 0.7 * strength)
    random_apply(strips, 0.35 * strength, lambda x: (x - 0.5) * uniform(x, 0.45, 1.2) + uniform(x, 0.3, 0.65))
    random_apply(strips, 0.06 * strength, lambda x: 1 - x)
    return strips.clamp(0, 1)


def _slanted(strips: Tensor) -> Tensor:
    """Italics: rows shifted sideways."""
    slant = uniform(strips, -0.35, 0.35).view(-1)
    matrix = torch.zeros(len(strips), 2, 3, device=strips.device)
    matrix[:, 0, 0] = matrix[:, 1, 1] = 1
    matrix[:, 0, 1] = slant * strips.shape[2] / strips.shape[3]
    return affine(strips, matrix)


class RecognizerTask(Task):
    """The CTC loss of strips."""

    model: Recognizer
    bf16_on_cpu = True
    capturable = False  # the CTC loss waits for the CPU

    def __init__(self, model: Recognizer, seed: int = 0) -> None:
        super().__init__(model, seed)
        self.header = {"sizes": model.sizes}

    def make_batch(self, store: LineStore, count: int, strength: float) -> list[Tensor] | None:
        """Strips, widths, codes and lengths: as much as `count` strips of 512 columns; None without any line."""
        batch = store.batch(count * STRIP_HEIGHT * 512, self.rng)
        if batch is None:
            return None
        rows, columns = batch
        strips, widths = strips_of(store, rows, columns, strength)
        return [strips.half(), widths, store.codes[rows.to(strips.device)].long(), store.lengths[rows], widths.cpu()]

    def forward(self, strips: Tensor, widths: Tensor, codes: Tensor, lengths: Tensor, ends: Tensor) -> Losses:
        """The CTC loss, and the share of strips read exactly."""
        logits = self.model.logits(strips.float() * 2 - 1, widths)
        steps = (ends + STRIDE - 1) // STRIDE
        log_probs = logits.float().log_softmax(2).transpose(0, 1)
        loss = F.ctc_loss(log_probs, codes[:, : int(lengths.max())], steps, lengths, zero_infinity=True)
        return {"ctc": loss, "exact": _exact(logits.detach(), widths, codes)}


def _exact(logits: Tensor, widths: Tensor, codes: Tensor) -> Tensor:
    """Share of strips whose likeliest path spells their text."""
    best = logits.argmax(2)
    ends = torch.arange(best.shape[1], device=best.device) * STRIDE >= widths[:, None]
    best = best.masked_fill(ends, 0)
    before = F.pad(best[:, :-1], (1, 0))
    kept = (best != 0) & (best != before)
    order = (~kept).long().argsort(dim=1, stable=True)
    spelled = torch.where(kept, best, 0).gather(1, order)
    wide = max(spelled.shape[1], codes.shape[1])
    spelled, codes = F.pad(spelled, (0, wide - spelled.shape[1])), F.pad(codes, (0, wide - codes.shape[1]))
    return (spelled == codes).all(1).float().mean()
