"""Steps that are taken: Muon, clipping, averages, and updates captured on a GPU."""

import pytest
import torch

from homunculus.train.trainer import optim


def test_muon_in_batches_is_torchs_muon():
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("this torch has no Muon")
    torch.manual_seed(0)
    shapes = [(24, 24), (24, 24), (48, 16), (16, 48), (48, 16)]
    start = [torch.randn(shape) for shape in shapes]
    mine, theirs = ([torch.nn.Parameter(p.clone()) for p in start] for _ in range(2))
    optimizers = (
        optim.Muon(mine, lr=0.02, weight_decay=0.1),
        torch.optim.Muon(theirs, lr=0.02, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"),
    )
    for _ in range(3):
        grads = [torch.randn(shape) for shape in shapes]
        for params, optimizer in zip((mine, theirs), optimizers, strict=True):
            for p, grad in zip(params, grads, strict=True):
                p.grad = grad.clone()
            optimizer.step()
    for p, q, before in zip(mine, theirs, start, strict=True):
        moved = (q - before).norm()
        assert (p - q).norm() < 0.02 * moved and moved > 0.1
    untouched = torch.nn.Parameter(torch.ones(3, 3))
    optim.Muon([untouched]).step()
    assert torch.equal(untouched, torch.ones(3, 3))


def test_an_update_clips_moves_and_lets_the_average_follow():
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.ones(6, 4))
    average = [torch.zeros(6, 4)]
    adam = torch.optim.AdamW([{"params": [weight], "lr_scale": 2.0}], lr=1.0, weight_decay=0.0)
    update = optim.Update([weight.data], average, [adam])
    weight.grad = torch.full((6, 4), 100.0)
    update(0.05, 0.75)
    assert weight.grad.norm() == pytest.approx(1.0, rel=1e-4)  # clipped
    torch.testing.assert_close(weight.data, torch.full((6, 4), 0.9))  # the first step of Adam is rate times scale
    torch.testing.assert_close(average[0], 0.25 * weight.data)


@pytest.mark.gpu
def test_a_captured_update_is_the_plain_one():
    runs = []
    for warm in (optim.WARMUP, 100):
        torch.manual_seed(0)
        weight = torch.nn.Parameter(torch.randn(32, 32, device="cuda"))
        other = torch.nn.Parameter(torch.randn(32, device="cuda"))
        average = [torch.zeros_like(weight), torch.zeros_like(other)]
        optimizers = [
            optim.Muon([{"params": [weight], "lr_scale": 1.5}], 0.1),
            torch.optim.AdamW([{"params": [other], "lr_scale": 1.0}], lr=0.1, fused=True, capturable=True),
        ]
        update = optim.Update([weight.data, other.data], average, optimizers)
        update.warmup = warm
        for step in range(8):
            weight.grad, other.grad = torch.sin(weight.data * step), torch.cos(other.data * step)
            if step == 0:
                grads = weight.grad, other.grad
            else:
                for grad, p in zip(grads, (weight, other), strict=True):
                    grad.copy_(p.grad)
                    p.grad = grad
            update(0.1 / (step + 1), 0.5)
        runs.append((weight.data, other.data, *average))
    assert update.graph is None
    for captured, plain in zip(*runs, strict=True):
        torch.testing.assert_close(captured, plain, rtol=1e-4, atol=1e-5)
