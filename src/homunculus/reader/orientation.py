"""Which way up a page is: what the line finder believes, checked by reading where it is not sure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from homunculus.reader.strips import grey_pyramid, sample_strips

if TYPE_CHECKING:
    from homunculus.reader.finder import FoundLines, LineFinder
    from homunculus.reader.session import Recognizing

SURE = 0.85  # probability of being upright from which a page is taken as it lies
POSSIBLE = 0.04  # probability from which a turn is tried
SAMPLE = 8  # lines that are read for each turn
LEVELS = 4  # of the pyramid that they are read from
MIN_LENGTH = 2.5  # print heights: shorter lines tell little
CLEAR = 0.6  # mean confidence from which a turned page is believed
BETTER = 1.15  # times as confident as on the page as it lies


@torch.no_grad()
def find_upright(finder: LineFinder, recognizer: Recognizing, page: Tensor) -> FoundLines:
    """Lines of a grey page uint8 [H, W] in the orientation in which they read best."""
    found = finder.find(page)
    if float(found.turn_probs[0]) >= SURE:
        return found
    best, most = found, max(CLEAR, BETTER * _confidence(recognizer, page, found.lines))
    for turns in range(1, 4):
        if float(found.turn_probs[turns]) >= POSSIBLE:
            other = finder.find(page, turns)
            sure = _confidence(recognizer, torch.rot90(page, turns).contiguous(), other.lines)
            if sure > most:
                best, most = other, sure
    return best


def _confidence(recognizer: Recognizing, page: Tensor, lines: Tensor) -> float:
    """Mean confidence with which the longest lines are read, weighted by characters; 0 without lines."""
    length = (lines[:, 2:4] - lines[:, :2]).norm(dim=1)
    order = length.argsort(descending=True)[:SAMPLE]
    chosen = lines[order[length[order] > MIN_LENGTH * lines[order, 4]]].to(page.device)
    if not len(chosen):
        return 0.0
    texts = recognizer(*sample_strips(grey_pyramid(page, LEVELS), chosen, recognizer.height))
    count = sum(len(text) for text, _ in texts)
    return sum(len(text) * sure for text, sure in texts) / count if count else 0.0
