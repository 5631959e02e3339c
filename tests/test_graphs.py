"""What comes in the same shape again is captured; what comes in ever new shapes is not."""

import pytest
import torch

from homunculus.runtime.graphs import KEPT, Replay


def doubled() -> tuple[Replay, list[torch.Size]]:
    called: list[torch.Size] = []

    def double(x: torch.Tensor) -> torch.Tensor:
        called.append(x.shape)
        return 2 * x

    return Replay(double), called


def test_on_a_cpu_it_is_the_function_itself():
    replay, called = doubled()
    for _ in range(4):
        assert torch.equal(replay(torch.ones(3)), torch.full((3,), 2.0))
    assert len(called) == 4 and not replay.graphs and not replay.met


@pytest.mark.gpu
@torch.no_grad()
def test_shapes_that_come_again_are_captured_and_others_forgotten():
    replay, called = doubled()
    for turn in range(3):
        for size in range(1, KEPT + 2):  # one more than is kept, in turn
            assert torch.equal(replay(torch.full((size,), turn, device="cuda")).cpu(), torch.full((size,), 2 * turn))
    assert not replay.graphs and len(replay.met) == KEPT and len(called) == 3 * (KEPT + 1)
    for size in range(20, 20 + 2 * KEPT):
        for turn in range(4):
            assert torch.equal(replay(torch.full((size,), turn, device="cuda")).cpu(), torch.full((size,), 2 * turn))
    assert len(replay.graphs) == KEPT and len(called) == 3 * (KEPT + 1) + 2 * KEPT * 4  # once, three times to capture
