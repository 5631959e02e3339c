"""CDPruner: a determinantal point process over the tokens, conditioned on the question."""

from __future__ import annotations

import torch
from torch import Tensor

from homunculus.peers.base import ReducedTokens, VisualTokens, at, exact, pick, precise, stretched, unit

SPENT = 1e-6  # below this, what a token would add to the determinant is rounding


@exact
def cdpruner(visual: VisualTokens, budget: int) -> ReducedTokens:
    """Greedy maximum of the determinant of relevance x cosine x relevance, by incremental Cholesky.

    When the space that the tokens span is used up, the most relevant of the rest follow.
    """
    relevance = (question_likeness(visual) + SPENT).to(precise(visual.tokens).dtype)
    tokens = unit(visual.tokens) * relevance[..., None]  # products of these are the kernel
    gain = tokens.square().sum(2)
    factors = tokens.new_zeros(len(tokens), budget, tokens.shape[1])  # [B, K, N]: rows of the Cholesky factor
    chosen = torch.zeros_like(visual.mask)
    for step in range(budget):
        worth = torch.where(gain > SPENT, gain, SPENT * relevance.clamp(max=1))
        following = torch.where(visual.mask & ~chosen, worth, -torch.inf).argmax(1, keepdim=True)
        chosen = chosen.scatter(1, following, True)
        factor = _next_factor(tokens, factors[:, :step], gain, following)
        factors[:, step] = factor
        gain = gain - factor.square()
    return pick(visual.tokens, chosen & visual.mask, budget)


def question_likeness(visual: VisualTokens) -> Tensor:
    """Cosine of each token with the mean of the question's words, stretched to 0..1; all 1 without one. [B, N]"""
    question = precise(visual.question).sum(1, keepdim=True)  # the length of the sum does not matter to a cosine
    return stretched((unit(visual.tokens) @ unit(question).mT)[..., 0].double(), visual.mask)


def _next_factor(tokens: Tensor, factors: Tensor, gain: Tensor, following: Tensor) -> Tensor:
    """Row of the Cholesky factor that the token `following` [B, 1] adds. [B, N]"""
    kernel = (tokens @ at(tokens, following).mT)[..., 0]
    column = factors.gather(2, following[:, None].expand(-1, factors.shape[1], -1))  # [B, step, 1]
    known = (column.mT @ factors)[:, 0]
    left = gain.gather(1, following)
    return torch.where(left > SPENT, (kernel - known) / left.clamp(min=SPENT).sqrt(), 0)
