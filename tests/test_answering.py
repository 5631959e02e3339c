"""What the reader learns from: the bridge into a language model, notes, questions and answers behind a page."""

import copy
import random

import numpy as np
import torch

from homunculus import CellTree, allocate
from homunculus.reader import Encoder, Scout, talk
from homunculus.reader.bridge import where
from homunculus.reader.encoder import Read
from homunculus.reader.language import load_language
from homunculus.reader.letters import encode
from homunculus.reader.notes import ABOVE, BESIDE, COST, FIRST, POINTS, Note, chosen, laid_out, rank_of, spots
from homunculus.train.aloud import Line, Said, read_aloud
from homunculus.train.answering import Joint, ReaderTask, disguised, located, sequence, slipped_in
from homunculus.train.asks import Asks
from speaking import SMALL, bridge_for, loud, small_language, tiny_language

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


def test_what_is_missing_at_the_end_of_a_row_changes_nothing(tmp_path):
    language = load_language(tiny_language(tmp_path))
    fresh = copy.deepcopy(language.model)
    bridge = loud(bridge_for(fresh))
    task = ReaderTask(Joint(bridge, Encoder(**SMALL)), language, Scout()).eval()
    bridge.merge(fresh)
    ids, at, seen = torch.randint(1, 200, (2, 9)), torch.tensor([[3, 4, 5], [2, 3, 4]]), torch.randn(2, 11, 64)
    ids[0, 7:], ids[1, 5:] = talk.PAD, talk.PAD
    with torch.no_grad():
        together = task._says(seen, ids, at)
        for b, length in ((0, 7), (1, 5)):
            embed = fresh.get_input_embeddings()
            x = torch.cat((embed(task.before), seen[b], embed(ids[b, :length])))[None]
            alone = fresh(inputs_embeds=x).logits[0, len(task.before) + 11 + at[b]]
            torch.testing.assert_close(together[b], alone, rtol=1e-4, atol=1e-4)


def test_the_question_stands_before_the_notes_and_after_them_in_lessons_as_later(tmp_path):
    language = load_language(tiny_language(tmp_path))
    task = ReaderTask(Joint(bridge_for(language.model), Encoder(**SMALL)), language, Scout())
    noted, asked = talk.note_ids(language.tokenizer, ["Total 12"])[0], talk.question_ids(language.tokenizer, "Total?")
    reply = talk.reply_ids(language.tokenizer, "12")
    rows = [talk.row(ids, length)[None] for ids, length in ((noted, 40), (asked, talk.ASK), (reply, 12))]
    task.figures = torch.tensor([5])  # no other figures
    ids, at, answer = task._talk(*rows, torch.tensor([True]))
    prompt = talk.prompt_ids(language.tokenizer, "Total?", noted)
    assert ids[0, : len(prompt) + len(reply)].tolist() == prompt + reply
    assert at[0, 0] == len(prompt) - 1 and answer[0, : len(reply)].tolist() == reply
    text = language.tokenizer.decode(prompt, skip_special_tokens=False)
    assert text == "\nTotal?\nTotal 12\n\nTotal?<|im_end|>\n<|im_start|>assistant\n"


def test_notes_question_and_answer_follow_without_gaps_and_each_token_is_asked_of_the_one_before():
    notes, ask = torch.tensor([[7, 8, 0, 0], [9, 0, 0, 0]]), torch.tensor([[11, 12, 13], [21, 0, 0]])
    reply = torch.tensor([[31, 32, 2, 0], [41, 2, 0, 0]])
    ids, at, answer = sequence((notes, ask, reply), torch.tensor([True, True]))
    assert ids[0].tolist() == [7, 8, 11, 12, 13, 31, 32, 2, 0, 0, 0]
    assert ids[1].tolist() == [9, 21, 41, 2] + [0] * 7
    assert answer.tolist() == [[31, 32, 2, -1], [41, 2, -1, -1]]
    for b in range(2):
        for place, token in zip(at[b].tolist(), answer[b].tolist(), strict=True):
            assert token < 0 or ids[b, place + 1] == token
    *_, unusable = sequence((notes, ask, reply), torch.tensor([False, True]))
    assert (unusable[0] == -1).all() and (unusable[1] >= 0).any()


def test_a_place_of_the_answer_is_slipped_in_where_told_and_nowhere_else():
    points, boxes = torch.full((64, 5, 2), -100.0), torch.zeros(64, 4, 4)
    boxes[:, 0] = torch.tensor([200.0, 300, 280, 320])
    told = torch.arange(64) % 2 == 0
    mixed = slipped_in(points, boxes, told)
    new = (mixed != points).any(2)
    assert torch.equal(new.sum(1), told.long()) and len(set(new.nonzero()[:, 1].tolist())) == 5
    inside = (mixed[new] >= torch.tensor([176, 294])) & (mixed[new] <= torch.tensor([304, 326]))
    assert inside.all()
    boxes[0, 0], boxes[1, 0] = torch.tensor([-9.0, -9, -8, -8]), 0
    assert located(boxes)[:3].tolist() == [False, False, True]


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


def test_disguised_lessons_have_other_figures_everywhere_and_else_the_same():
    figures = torch.arange(32, 42)
    parts = [torch.randint(0, 60, (200, length)) for length in (30, 8, 6)]
    new = disguised(parts, figures, 0.5)
    changed = torch.stack([(a != b).any(1) for a, b in zip(parts, new, strict=True)]).any(0)
    assert 60 < changed.sum() < 140
    for old, other in zip(parts, new, strict=True):
        plain = ~torch.isin(old, figures)
        assert torch.equal(old[plain], other[plain]) and torch.isin(other[~plain], figures).all()
    row = int(changed.nonzero()[0])
    pairs = {
        (int(a), int(b))
        for old, other in zip(parts, new, strict=True)
        for a, b in zip(old[row], other[row], strict=True)
    }
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)  # one for one in all three


def test_cells_come_in_reading_order():
    tree = CellTree(160, 224)
    selection = allocate("foveated", tree, torch.rand(2, tree.size), 20)
    rows = selection.in_rows()
    keys = rows.boxes[..., 1] * 1000 + rows.boxes[..., 0]
    assert (keys.diff(dim=1) >= 0).all()
    assert torch.equal(rows.indices.sort(1).values, selection.indices.sort(1).values)


# -- what is asked ---------------------------------------------------------------------------------------------


def page_lines() -> list[Line]:
    texts = ["ACME Trading Company", "Invoice number 4711 of March", "Total amount due 12.50", "Thank you very much"]
    lines = []
    for n, text in enumerate(texts):
        words = text.split()
        boxes = np.array([[60 * i, 30 * n, 60 * i + 50, 30 * n + 14] for i in range(len(words))], np.float32)
        lines.append(Line(words, boxes))
    return lines


def test_reading_lessons_say_what_stands_there():
    lines, rng = page_lines(), random.Random(1)
    lessons = [lesson for _ in range(30) for lesson in read_aloud(lines, 10, rng)]
    texts = [line.text for line in lines]
    assert len({lesson.text for lesson in lessons}) > 25
    for lesson in lessons:
        assert any(lesson.answer in text for text in texts)
        x0, y0, x1, _ = lesson.boxes[0]
        line = lines[int(y0 // 30)]
        inside = [w for w, b in zip(line.words, line.boxes, strict=True) if b[0] >= x0 and b[2] <= x1]
        assert " ".join(inside) == lesson.answer  # the box is that of the answer
    below = [lesson for lesson in lessons if "below" in lesson.text or "under" in lesson.text]
    assert below and all(texts.index(lesson.answer) > 0 for lesson in below)
    assert read_aloud([], 5, rng) == []


def test_asks_are_filled_up_and_cut_to_their_parts():
    said = Said("What?", np.ones((6, 4), np.float32), "that")
    asks = Asks.of([said], 3, [np.full(4, 2.0)], 2)
    assert asks.questions == ["What?", "", ""] and asks.replies == ["that", "", ""]
    assert asks.answers.shape == (3, 4, 4) and asks.answers[0].all() and not asks.answers[1:].any()
    assert asks.usual[0].tolist() == [2.0] * 4 and not asks.usual[1].any()
