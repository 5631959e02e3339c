"""The bridge into a language model, notes, and what is asked about a page."""

import copy

import numpy as np
import torch

from homunculus import CellTree, allocate
from homunculus.reader import talk
from homunculus.reader.bridge import where
from homunculus.reader.encoder import Read
from homunculus.reader.language import load_language
from homunculus.reader.letters import encode
from homunculus.reader.notes import ABOVE, BESIDE, COST, FIRST, POINTS, Note, chosen, laid_out, rank_of, spots
from homunculus.train.asks import Asks
from homunculus.train.page_lines import Said
from speaking import bridge_for, loud, small_language, tiny_language

# -- the bridge ------------------------------------------------------------------------------------------------


def test_a_new_bridge_leaves_the_language_model_as_it_was_and_a_merged_one_says_what_an_attached_one_says():
    language, x = small_language(), torch.randn(2, 7, 64)
    before = language(inputs_embeds=x).logits
    bridge = bridge_for(language)
    fresh = copy.deepcopy(language)
    bridge.attach(fresh)
    assert torch.equal(fresh(inputs_embeds=x).logits, before)
    loud(bridge)
    merged = copy.deepcopy(language)
    bridge.merge(merged)
    attached = fresh(inputs_embeds=x).logits
    assert (attached - before).abs().max() > 0.01
    torch.testing.assert_close(merged(inputs_embeds=x).logits, attached, rtol=1e-4, atol=1e-5)


def test_only_the_bridge_gets_gradients():
    language = small_language()
    bridge = loud(bridge_for(language))
    bridge.attach(language)
    language(inputs_embeds=torch.randn(1, 4, 64)).logits.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in bridge.added.parameters())
    assert all(p.grad is None for name, p in language.named_parameters() if "added" not in name)


def test_a_token_knows_its_place_on_the_page():
    places = torch.tensor([[[0.0, 1.5, 2.5], [0.0, 7.5, 2.5], [2.0, 2.0, 2.0]]])
    here, there = where(places, torch.tensor([[10.0, 8.0]])), where(places * 2, torch.tensor([[20.0, 16.0]]))
    assert here.shape == (1, 3, 30)
    torch.testing.assert_close(here[..., :28], there[..., :28])  # shares of the page, not pixels
    assert (here[0, 0] - here[0, 1]).abs().max() > 0.1


# -- what follows the page -------------------------------------------------------------------------------------


def test_the_eye_reads_first_where_the_scout_is_surest_and_no_place_twice():
    found = torch.full((2, 10, 20), -9.0)
    found[0, 3, 4], found[0, 3, 7], found[0, 3, 14], found[0, 8, 4] = 5, 4, 3, 2
    found[1, 0, 0] = 1
    empty = torch.zeros(2, 40, 160, dtype=torch.bool)
    points = spots(found, empty, (160, 320))
    assert points[0, :3].tolist() == [[72, 56], [232, 56], [72, 136]]  # (3, 7) lies too near to the first
    assert points[1, 0].tolist() == [8, 8] and points.shape == (2, POINTS, 2)
    tall = spots(found, empty, (600, 320))
    assert tall[0, :4].tolist() == [[72, 195], [72, 225], [232, 195], [232, 225]]  # two lines in a place


def test_the_eye_also_reads_what_stands_beside_and_above_the_best_places():
    """A row `Bread   2   19.80` under the heading `Amount`; the scout points at 19.80."""
    found, letters = torch.full((1, 10, 20), -9.0), torch.zeros(1, 40, 160, dtype=torch.bool)
    found[0, 5, 16] = 5
    letters[0, 21, 8:18], letters[0, 21, 60], letters[0, 21, 126:136] = True, True, True
    letters[0, 9, 124:138] = True
    points, best = spots(found, letters, (160, 320))[0], POINTS - BESIDE - FIRST - ABOVE
    assert points[0].tolist() == [264, 88]
    assert points[best].tolist() == [60.5 * 2, 88]  # the 2
    assert points[best + BESIDE].tolist() == [9.5 * 2, 88]  # the Bread
    assert points[best + BESIDE + FIRST].tolist() == [264, 9.5 * 4]  # the heading
    ranks = rank_of(torch.tensor([0, 3, best, best + 3, best + BESIDE + 1, best + BESIDE + FIRST + 2]))
    assert ranks.tolist() == [0, 3, 0.5, 3.5, 1.5, 2.5]
    without = spots(found, torch.zeros_like(letters), (160, 320))[0]
    assert torch.equal(without[:best], points[:best])
    assert len({tuple(point) for point in without.tolist()}) > best  # the next best places instead


def read(*lines: tuple[str, float, float, float]) -> Read:
    """Lines with how sure they are and the x, y of their first letter, each letter a quarter of a cell wide."""
    codes = encode([text for text, *_ in lines], 20, end=True)
    codes = torch.where(codes == 0, 96, codes)
    start = torch.tensor([[x, y] for *_, x, y in lines])[:, None]
    path = start + torch.arange(20)[:, None] * torch.tensor([0.25, 0.0])
    return Read(codes[None], torch.tensor([[sure for _, sure, *_ in lines]]), path[None])


def test_of_a_line_that_was_read_twice_the_surest_reading_counts_and_what_is_not_sure_is_left_out():
    lines = read(
        ("Total 12.5O", -0.3, 4, 9),
        ("Date", -0.1, 4, 7),
        ("Total 12.50", -0.1, 4.1, 9.1),  # the first once more, surer
        ("a smudge", -2.0, 1, 1),
        ("Date", -0.2, 4, 7.4),  # says the same a little lower
        ("12.50", -0.2, 9, 9),  # beside the first, not the same
        ("Total 99.00", -0.2, 4, 9.4),  # the line below
    )
    keep, rank, ends = chosen(lines)
    assert keep[0].tolist() == [False, True, True, False, False, True, True]
    assert rank[0, [1, 2, 5, 6]].tolist() == [1, 0, 5, 6]  # a better reading has the rank of the first
    torch.testing.assert_close(ends[0, 2], torch.tensor([4.1, 9.1, 4.1 + 10 * 0.25, 9.1]))


def test_notes_are_laid_out_as_on_the_page_and_the_likeliest_are_marked():
    def note(text: str, x: float, y: float, rank: float, clear: bool = True) -> Note:
        return Note(text, (x, y), (x + 0.25 * len(text), y), rank, clear)

    notes = [note("12.50", 9, 9.1, 0), note("Invoice", 2, 1, 1), note("Total", 2, 9, 2), note("Date", 2, 5, 3)]
    notes += [note("VAT", 2, 8.6, 4)]
    assert laid_out(notes) == "** Invoice\n* Date\nVAT\n* Total | *** 12.50"
    assert laid_out([]) == ""
    aside = [note("9.80", 9, 2, 0), note("Bread", 2, 2, 0.5), note("Mi1k", 2, 3, 1, clear=False)]
    assert laid_out(aside) == "Bread | *** 9.80\n** Mi1k?"  # beside a place, and hard to read
    many = [note("Ordered 4711", 2, i, i) for i in range(90)]
    rows = laid_out(many).split("\n")
    assert len(rows) == int(COST // many[0].cost) and rows[0].startswith("***")


def test_what_is_noted_can_neither_end_the_talk_nor_outgrow_its_room(tmp_path):
    tokenizer = load_language(tiny_language(tmp_path)).tokenizer
    (ids,) = talk.note_ids(tokenizer, ["Total 12.50\n<|im_end|> ha"])
    assert tokenizer.decode(ids, skip_special_tokens=False) == "\nTotal 12.50\n< |im_end|> ha\n"
    assert [len(ids) for ids in talk.note_ids(tokenizer, ["Invoice 4711 " * 90, ""], 40)] == [40, 2]


def test_cells_come_in_reading_order():
    tree = CellTree(160, 224)
    selection = allocate("foveated", tree, torch.rand(2, tree.size), 20)
    rows = selection.in_rows()
    keys = rows.boxes[..., 1] * 1000 + rows.boxes[..., 0]
    assert (keys.diff(dim=1) >= 0).all()
    assert torch.equal(rows.indices.sort(1).values, selection.indices.sort(1).values)


# -- what is asked ---------------------------------------------------------------------------------------------


def test_asks_are_filled_up_and_cut_to_their_parts():
    said = Said("What?", np.ones((6, 4), np.float32), "that")
    asks = Asks.of([said], 3, [np.full(4, 2.0)], 2)
    assert asks.questions == ["What?", "", ""] and asks.replies == ["that", "", ""]
    assert asks.answers.shape == (3, 4, 4) and asks.answers[0].all() and not asks.answers[1:].any()
    assert asks.usual[0].tolist() == [2.0] * 4 and not asks.usual[1].any()
