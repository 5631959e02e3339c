"""Letters and the encoder: any set of cells, whatever stands beside it."""

import os
import string
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import homunculus as hm
from homunculus import positions, tokens
from homunculus.allocators import ALLOCATORS
from homunculus.cells import CellTree, Selection
from homunculus.errors import InputError
from homunculus.fixation import peak
from homunculus.reader import Encoder, weights
from homunculus.reader.blocks import norm_and_rotate, rope_of
from homunculus.reader.halo import HALO, haloed
from homunculus.reader.letters import BLANK, decode, encode, plain
from homunculus.relevance import Scene, relevance_of
from small import noise, scene_of, seen, small_encoder

INVOICE = Path(__file__).parents[1] / "examples" / "invoice.png"
PRINTABLE = string.ascii_letters + string.digits + string.punctuation


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return small_encoder()


@pytest.fixture(scope="module")
def invoice() -> Scene:
    pixels = hm.load_image(INVOICE)
    return Scene(pixels[None], CellTree(*pixels.shape[1:]))


# -- letters ---------------------------------------------------------------------------------------------------


@given(st.lists(st.text(PRINTABLE, min_size=1, max_size=8), max_size=5))
def test_what_is_encoded_is_decoded(words):
    text = " ".join(words)
    assert decode(encode([text], 64)[0].tolist()) == text


def test_letters_beyond_ascii_are_folded_and_spaces_single():
    assert plain("Fläche  Señor\n“naïve” – ½ × 3…") == 'Flache Senor "naive" - 12 x 3...'
    assert plain("左上 🙂") == ""
    assert decode(encode(["café\tau  lait"], 20)[0].tolist()) == "cafe au lait"


def test_a_text_is_cut_off_at_the_length_and_blank_behind_its_last_letter():
    codes = encode(["ab", "", "abcdefgh"], 5)
    assert codes.tolist() == [[66, 67, 0, 0, 0], [0] * 5, [66, 67, 68, 69, 70]]
    assert decode([66, BLANK, 67, BLANK]) == "ab"


# -- encoder ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("allocator", hm.list_allocators())
def test_any_selection_of_any_allocator_is_read(encoder, allocator):
    scene = scene_of(190, 260, pages=2)
    relevance = relevance_of("information", scene, ["", ""])
    context = {"error": scene.lost, "energy": scene.lost_along(), "question": ["", ""]}
    context["segments"] = [torch.zeros(190, 260, dtype=torch.long)] * 2
    wanted = {name: context[name] for name in ALLOCATORS[allocator].context if name in context}
    selection = hm.allocate(allocator, scene.tree, relevance, 21, peak(scene.tree, relevance), **wanted)
    patches, places = seen(scene, selection)
    with torch.no_grad():
        x = encoder(patches, places, selection.mask)
    assert x.shape == (2, selection.mask.shape[1], 96) and torch.isfinite(x).all()
    assert encoder.characters(x).shape == (*x.shape[:2], 4, 8, 96)


def test_uniform_gives_fractional_levels_and_they_lie_between_the_whole_ones(encoder):
    scene = scene_of(190, 260)
    selection = hm.allocate("uniform", scene.tree, torch.ones(1, scene.tree.size), 21)
    levels = selection.levels.double()
    assert (levels != levels.round()).any()
    patches, places = seen(scene, selection)
    apart = torch.arange(places.shape[1])[None, :, None] * 1000.0  # no cell adjoins another

    def at(level: float) -> torch.Tensor:
        spots = torch.cat((torch.full_like(apart, level), apart, apart), 2)
        return encoder.embed(patches, spots)

    with torch.no_grad():
        low, high, middle, last, deep = (at(level) for level in (0, 1, 0.5, 9, 12))
    torch.testing.assert_close(middle, (low + high) / 2)
    torch.testing.assert_close(deep, last)


@pytest.fixture
def looked():
    """Patches and places of three rows of 30 cells."""
    scene = scene_of(200, 300, pages=3)
    generator = torch.manual_seed(0)
    chosen = torch.stack([torch.randperm(scene.tree.size, generator=generator)[:30] for _ in range(3)])
    return seen(scene, Selection.of(scene.tree, chosen))


@torch.no_grad()
def test_a_row_does_not_depend_on_the_other_rows(encoder, looked):
    patches, places = looked
    together = encoder(patches, places)
    for row in range(3):
        alone = encoder(patches[row : row + 1], places[row : row + 1])
        torch.testing.assert_close(together[row : row + 1], alone, rtol=0, atol=1e-4)
    assert (together[0] - together[1]).abs().max() > 0.01


@torch.no_grad()
def test_the_order_of_the_cells_does_not_matter(encoder, looked):
    patches, places = looked
    order = torch.randperm(30, generator=torch.manual_seed(2))
    expected = encoder(patches, places)[:, order]
    torch.testing.assert_close(encoder(patches[:, order], places[:, order]), expected, rtol=0, atol=1e-4)


@torch.no_grad()
def test_places_that_a_row_does_not_have_change_nothing(encoder, looked):
    patches, places = looked
    mask = torch.ones(3, 30, dtype=torch.bool)
    mask[1, 20:] = False
    other = patches.clone()
    other[1, 20:] = 255 - other[1, 20:]
    alone = encoder(patches[1:2, :20], places[1:2, :20])
    for pixels in (patches, other):
        torch.testing.assert_close(encoder(pixels, places, mask)[1:2, :20], alone, rtol=0, atol=1e-4)
    assert (encoder(other, places)[1, :20] - alone[0]).abs().max() > 1e-3


@torch.no_grad()
def test_only_differences_of_places_count(encoder, looked):
    patches, places = looked
    expected = encoder(patches, places)
    moved = encoder(patches, places + torch.tensor([0.0, 8.0, 16.0]))  # whole cells at every level
    torch.testing.assert_close(moved, expected, rtol=0, atol=1e-4)
    spread = encoder(patches, places * torch.tensor([1.0, 2.0, 1.0]))
    assert (spread - expected).abs().max() > 1e-3


@torch.no_grad()
def test_a_row_of_a_bucket_is_read_as_alone(encoder):
    """A small image among larger ones has fewer cells; the places that it lacks give nothing to its neighbours."""
    sizes = [(96, 128), (64, 64)]
    tree = CellTree.bucket(sizes)
    pages = noise(96, 128, 2)
    levels = [pages]
    both = hm.allocate("grid", tree, torch.ones(2, tree.size), 12)
    assert both.mask.sum(1).tolist() == [12, 4]
    together = encoder(tokens.patches(levels, both), positions.coordinates(both), both.mask)
    alone = both.row(1)
    expected = encoder(tokens.patches([pages[1:]], alone), positions.coordinates(alone))
    torch.testing.assert_close(together[1:, :4], expected, rtol=0, atol=1e-4)
    fewer = Selection.of(CellTree(96, 128, levels=1), torch.tensor([[0, 1, 2, 3], [5, 6, -1, -1]]))
    together = encoder(tokens.patches(levels, fewer), positions.coordinates(fewer), fewer.mask)
    alone = fewer.row(1)
    expected = encoder(tokens.patches([pages[1:]], alone), positions.coordinates(alone))
    torch.testing.assert_close(together[1:, :2], expected, rtol=0, atol=1e-4)


def test_cells_side_by_side_share_their_borders_and_show_nothing_else():
    tree, page = CellTree(96, 128, levels=1), noise(96, 128).float() + 1
    framed = torch.nn.functional.pad(page, (HALO,) * 4)
    every = Selection.of(tree, torch.randperm(12, generator=torch.manual_seed(0))[None])
    found = haloed(tokens.patches([page], every), positions.coordinates(every))[0]
    assert found.shape == (12, 3, 32 + 2 * HALO, 32 + 2 * HALO)
    for cell, (x, y, _, _) in zip(found, every.boxes[0].tolist(), strict=True):
        assert torch.equal(cell, framed[0, :, y : y + 32 + 2 * HALO, x : x + 32 + 2 * HALO])
    some = Selection.of(tree, torch.tensor([[5, 6, 0]]))  # side by side, and one at a corner
    found = haloed(tokens.patches([page], some), positions.coordinates(some))[0]
    rim = torch.ones(32 + 2 * HALO, 32 + 2 * HALO, dtype=torch.bool)
    rim[HALO:-HALO, HALO:-HALO] = False
    shown = [int((cell[0][rim] > 0).sum()) for cell in found]
    assert shown == [32 * HALO + HALO**2, 32 * HALO, HALO**2]


def test_cells_of_another_size_are_refused(encoder):
    scene = scene_of(100, 100, cell=28)
    selection = hm.allocate("grid", scene.tree, torch.ones(1, scene.tree.size), 9)
    with pytest.raises(InputError, match=r"cells of 3 x 32 x 32, got \[3, 28, 28\]"):
        encoder(*seen(scene, selection))


def test_the_encoder_has_about_20_million_parameters():
    with torch.device("meta"):
        assert 19.5e6 <= sum(p.numel() for p in Encoder().parameters()) <= 20.5e6


@torch.no_grad()
def test_saved_weights_give_the_same_outputs(tmp_path, looked):
    model = small_encoder()
    weights.save(model, tmp_path / "small.safetensors", {"network": "encoder", "step": 3})
    other = small_encoder(seed=9)
    weights.load(other, tmp_path / "small.safetensors")
    assert weights.about(tmp_path / "small.safetensors") == {"network": "encoder", "step": 3}
    before, after = model(*looked), other(*looked)
    assert (after - before).norm() <= 2e-2 * before.norm()
    weights.save(model, tmp_path / "whole.safetensors", {}, int8=False)
    weights.load(other, tmp_path / "whole.safetensors")
    assert torch.equal(other(*looked), before)
    small, whole = ((tmp_path / f"{name}.safetensors").stat().st_size for name in ("small", "whole"))
    assert small < 0.3 * whole


# -- the Triton twin -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("head", [48, 64])
@pytest.mark.parametrize("places", [(), (1,), (3,), None], ids=["shared", "one", "own", "none"])
def test_the_triton_kernel_norms_and_turns_as_torch_does(device, head, places):
    pytest.importorskip("triton")
    if device == "cpu" and "TRITON_INTERPRET" not in os.environ:
        pytest.skip("needs TRITON_INTERPRET on a CPU")
    from homunculus.kernels.rotary import norm_and_rotate as fast

    torch.manual_seed(0)
    turn = None if places is None else rope_of(torch.rand(*places, 11, 3, device=device) * 20, head)
    packed = torch.randn(3, 11, 2, 5, head, device=device)
    weight = torch.randn(3, 5, 11, head, device=device).transpose(1, 2)
    found = []
    for make in (fast, norm_and_rotate):
        x = packed.clone().requires_grad_()
        y = make(x.unbind(-3)[0], turn)
        (y * weight).sum().backward()
        found.append((y.detach(), x.grad))
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)
    assert found[0][0].is_contiguous()
