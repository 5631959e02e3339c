"""The vision encoder, its teacher, and what it learns from photographs."""

import random

import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from homunculus import CellTree, allocate, positions, tokens
from homunculus.cells import Selection
from homunculus.errors import InputError
from homunculus.pyramid import gaussian
from homunculus.reader.vision import CELL, VisionEncoder
from homunculus.train.scans.photos import SIDE, Photos
from homunculus.train.tasks.vision import VisionTask, over_cells
from homunculus.train.teacher import PATCH, Teacher, begin_with


@pytest.fixture(scope="module")
def teacher():
    torch.manual_seed(0)
    found = Teacher().eval()
    for weights in (found.position, found.summary):
        torch.nn.init.normal_(weights, std=0.5)
    return found


@pytest.fixture(scope="module")
def encoder(teacher):
    found = VisionEncoder().eval()
    begin_with(found, teacher)
    return found


def looked_at(pixels, tree, selection):
    return tokens.patches(gaussian(pixels, tree.levels), selection), positions.coordinates(selection), selection.sizes


@torch.no_grad()
def test_an_encoder_begins_as_its_teacher_on_the_smaller_image(encoder, teacher):
    pixels = (torch.arange(3 * 96 * 128).view(1, 3, 96, 128) % 251).to(torch.uint8)
    pixels = F.avg_pool2d(pixels.float(), 8, 8).repeat_interleave(8, 2).repeat_interleave(8, 3).to(torch.uint8)
    tree = CellTree(96, 128, CELL)
    fine = Selection.of(tree, torch.arange(tree.size)[tree.at(0)][None])
    cells, image = encoder(*looked_at(pixels, tree, fine))
    blocks = pixels.float().unfold(2, CELL, CELL).unfold(3, CELL, CELL)  # [1, 3, 3, 4, 32, 32]
    small = F.interpolate(blocks.reshape(-1, 1, CELL, CELL), (PATCH, PATCH), mode="bicubic", antialias=True)
    small = small.view(1, 3, 3, 4, PATCH, PATCH).permute(0, 1, 2, 4, 3, 5).reshape(1, 3, 3 * PATCH, 4 * PATCH)
    features, expected, _ = teacher(small)
    torch.testing.assert_close(cells, features.flatten(2).transpose(1, 2), atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(image, expected, atol=1e-3, rtol=1e-3)


@torch.no_grad()
def test_places_that_a_row_does_not_have_change_nothing(encoder):
    tree = CellTree(128, 160, CELL)
    pixels = torch.randint(256, (1, 3, 128, 160), dtype=torch.uint8)
    selection = allocate("dag", tree, torch.rand(1, tree.size), 12)
    patches, places, sizes = looked_at(pixels, tree, selection)
    cells, image = encoder(patches, places, sizes)
    more = torch.cat((patches, patches[:, :3]), 1), torch.cat((places, places[:, :3]), 1)
    mask = torch.arange(15)[None] < 12
    padded, same = encoder(*more, sizes, mask)
    torch.testing.assert_close(padded[:, :12], cells, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(same, image, atol=1e-4, rtol=1e-4)


def test_cells_of_another_size_are_refused(encoder):
    with pytest.raises(InputError, match="3 x 32 x 32"):
        encoder(torch.zeros(1, 2, 3, 16, 16, dtype=torch.uint8), torch.zeros(1, 2, 3), torch.tensor([[32, 64]]))


def test_means_over_cells_are_those_of_their_pixels():
    tree = CellTree(96, 128, CELL)
    every = Selection.of(tree, torch.arange(tree.size)[None])
    map = torch.rand(1, 2, 12, 16)  # 8 pixels a place
    found = over_cells(map, every)
    for k, box in enumerate(every.boxes[0].tolist()):
        x0, y0, x1, y1 = (int(v) // 8 for v in box)
        torch.testing.assert_close(found[0, k], map[0, :, y0 : min(y1, 12), x0 : min(x1, 16)].mean((1, 2)))


def test_learning_brings_cells_nearer_to_the_teachers(teacher):
    torch.manual_seed(1)
    task = VisionTask(VisionEncoder(depth=1))
    crops = torch.randint(256, (2, 3, 64, 96), dtype=torch.uint8)
    batch = task.make_batch(crops, teacher, random.Random(0))
    assert len({len(part) for part in batch}) == 1 and batch[3].shape == (*batch[1].shape[:2], 384)
    optimizer = torch.optim.AdamW(task.parameters(), 1e-3)
    losses = []
    for _ in range(6):
        found = task(*batch)
        assert set(found) == {"features", "image", "saliency"}
        losses.append(sum(value.item() for value in found.values()))
        optimizer.zero_grad()
        sum(found.values()).backward()
        optimizer.step()
    assert losses[-1] < 0.9 * losses[0]


def test_crops_show_photographs(tmp_path):
    folder = tmp_path / "set"
    (folder / "images").mkdir(parents=True)
    for i in range(60):
        Image.new("RGB", (700 if i else 90, 60), (i, 100, 200)).save(folder / "images" / f"{i}.png")
    photos, val = (Photos.read([folder], torch.device("cpu"), val) for val in (False, True))
    assert len(photos) + len(val) == 60 and len(val) > 0
    assert int(photos.sizes.max()) == SIDE  # larger ones are made smaller
    rows = torch.arange(4)
    whole = photos.crops(rows, (64, 96), torch.Generator(), plain=True)
    expected = photos.pixels[:4, :, :1, :1].expand(-1, -1, 64, 96)
    assert torch.equal(whole, expected)
    first, again = (photos.crops(rows, (64, 96), torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, again) and first.float().std((2, 3)).max() < 1  # of one colour, nothing from beyond
    with pytest.raises(InputError, match="no photographs"):
        Photos.read([tmp_path], torch.device("cpu"))
