"""Visual tokens of small images, for the tests of token reduction."""

from dataclasses import fields

import pytest
import torch

from homunculus.peers import (
    ReducedTokens,
    VisualTokens,
)


def visual_tokens(tokens, grid, **given) -> VisualTokens:
    """One image with the tokens of a grid; nothing is attended to and nothing asked unless given."""
    tokens = torch.as_tensor(tokens, dtype=torch.float32)
    tokens = (tokens if tokens.ndim == 2 else tokens[:, None])[None]
    rows, columns = grid
    n = torch.arange(rows * columns)
    values = {name: torch.as_tensor(value, dtype=torch.float32)[None] for name, value in given.items()}
    question = values.get("question", torch.zeros(1, 0, tokens.shape[2]))
    return VisualTokens(
        tokens=tokens,
        keys=values.get("keys", tokens),
        attention=values.get("attention", torch.zeros(1, len(n))),
        early=values.get("early", torch.zeros(1, len(n))),
        question=question,
        question_mask=torch.ones(question.shape[:2], dtype=torch.bool),
        mask=torch.ones(1, len(n), dtype=torch.bool),
        positions=torch.stack((n // columns, n % columns), 1)[None].float(),
        grid=torch.tensor([grid]),
    )


def at_angles(*degrees: float) -> torch.Tensor:
    angle = torch.tensor(degrees).deg2rad()
    return torch.stack((angle.cos(), angle.sin()), 1)


def assert_kept(kept: ReducedTokens, index: list[int], tokens: list[float] | None = None) -> None:
    assert kept.index.tolist() == [index]
    if tokens is not None:
        assert kept.tokens[0].flatten().tolist() == pytest.approx(tokens, rel=1e-5)


GRIDS = [(5, 7), (3, 4), (6, 6), (1, 3)]


def image(grid, seed) -> VisualTokens:
    torch.manual_seed(seed)
    n, words = grid[0] * grid[1], 2 + seed % 3
    random = {"keys": torch.randn(n, 5), "attention": torch.rand(n), "early": torch.rand(n)}
    return visual_tokens(torch.randn(n, 8), grid, question=torch.randn(words, 8), **random)


def batch(images: list[VisualTokens]) -> VisualTokens:
    """Images of different sizes in one batch, with NaN where nothing is."""
    joined = {}
    for field in fields(VisualTokens):
        parts = [getattr(one, field.name) for one in images]
        most = max(part.shape[1] for part in parts)
        fill = False if parts[0].dtype == torch.bool else float("nan")
        pad = [(0, 0) * (part.ndim - 2) + (0, most - part.shape[1]) for part in parts]
        padded = [
            torch.nn.functional.pad(p, by, value=fill) if any(by) else p for p, by in zip(parts, pad, strict=True)
        ]
        joined[field.name] = torch.cat(padded)
    return VisualTokens(**joined)


IMAGES = [image(grid, seed) for seed, grid in enumerate(GRIDS)]
