"""The quick way from pixels to chosen cells is what the eye does step by step."""

import pytest
import torch

import homunculus as hm
from homunculus import tokens
from homunculus.allocators import ALLOCATORS
from homunculus.cells import CellTree
from homunculus.reader import load_scout
from homunculus.reader.selection_graphs import MAX_KEPT, SelectionGraphs
from homunculus.relevance import Scene

QUESTIONS = ["What is the total?", "Who signed it?"]
CAPTURABLE = [name for name, entry in ALLOCATORS.items() if entry.capturable]


def scene(height: int, width: int, device: str = "cpu", cell: int = 32) -> Scene:
    generator = torch.Generator().manual_seed(height)
    pixels = torch.randint(0, 256, (2, 3, height, width), dtype=torch.uint8, generator=generator).to(device)
    return Scene(pixels, CellTree(height, width, cell))


def check_agreement(graphs: SelectionGraphs, eye: hm.Eye, device: str) -> None:
    here = scene(416, 300, device)
    chosen, pixels = graphs(here, QUESTIONS, eye)
    wanted = eye.choose(scene(416, 300, device), QUESTIONS).in_rows()
    assert torch.equal(chosen.indices, wanted.indices) and torch.equal(chosen.boxes, wanted.boxes)
    assert torch.equal(chosen.levels, wanted.levels) and bool(chosen.mask.all())
    assert torch.equal(pixels, tokens.patches(here.levels, wanted))


@pytest.mark.parametrize("rule", CAPTURABLE)
def test_it_chooses_what_the_eye_chooses(rule):
    eye = hm.Eye(rule, "query", 40, scout=load_scout())
    assert SelectionGraphs().supports(eye, QUESTIONS)
    check_agreement(SelectionGraphs(), eye, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("rule", CAPTURABLE)
def test_captured_it_chooses_the_same(rule):
    graphs, eye = SelectionGraphs(), hm.Eye(rule, "query", 40, scout=load_scout(device="cuda"))
    for _ in range(4):  # the first as it stands, the second captured, the others replayed
        check_agreement(graphs, eye, "cuda")


def test_what_it_cannot_do_is_left_to_the_eye():
    scout, graphs = load_scout(), SelectionGraphs()
    assert not graphs.supports(hm.Eye("foveated", "information", 40), QUESTIONS)
    assert not graphs.supports(hm.Eye("stratified", "query", 40, scout=scout), QUESTIONS)
    assert not graphs.supports(hm.Eye("dag", "query", 40, scout=scout, error="legibility"), QUESTIONS)
    assert not graphs.supports(hm.Eye("dag", "query", 40, scout=scout, lines=[torch.zeros(0, 5)]), QUESTIONS)
    eye = hm.Eye("foveated", "query", 40, scout=scout, fovea=0.3)
    assert graphs.supports(eye, QUESTIONS)
    assert not graphs.supports(eye, ["What is at the top left?", "What?"])  # a place that words name needs the page
    assert not graphs.supports(eye, ["What?", ""])


def test_trees_of_other_depths_are_told_apart():
    graphs, eye = SelectionGraphs(), hm.Eye("grid", "query", 20, scout=load_scout())
    for levels in (2, 4):
        here = scene(416, 300)
        here = Scene(here.pixels, CellTree(416, 300, 32, levels))
        assert torch.equal(graphs(here, QUESTIONS, eye)[0].boxes, eye.choose(here, QUESTIONS).in_rows().boxes)
    assert len(graphs.graphs) == 2


def test_it_forgets_what_was_longest_unused():
    graphs, eye = SelectionGraphs(), hm.Eye("grid", "query", 3, scout=load_scout())
    sizes = [(64, 64 + 32 * n) for n in range(MAX_KEPT + 1)]
    for height, width in sizes:
        graphs(scene(height, width), QUESTIONS, eye)
    assert len(graphs.graphs) == MAX_KEPT
    assert [key[0][0] for key in graphs.graphs] == sizes[1:]
