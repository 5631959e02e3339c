"""Published methods inside other people's VLMs: tiny random ones of every family."""

import copy
import sys

import pytest
import torch
from PIL import Image

import homunculus as hm
from homunculus.adapters.base import Gridded
from homunculus.adapters.tiled import WHOLE, TokenGrid
from homunculus.errors import InputError
from homunculus.peers import BEFORE, INSIDE, Stage, list_peers, mean_tokens, vlms
from homunculus.peers.base import pick
from homunculus.peers.towers import _attentions, _layers, capture_tower, received, token_attention
from test_adapters import FAMILIES, PICTURES, QUESTIONS, last_logits, picture
from vlms import tiny

BUDGET = 9
IMAGE, QUESTION = PICTURES[0][0], QUESTIONS[0]
WINDOWED = ("gemma3",)
ALL = {"budget": 10_000, "where": "after", "scout": False}
peers = pytest.mark.parametrize("peer", list_peers())
before = pytest.mark.parametrize("peer", BEFORE)


@pytest.fixture(scope="module", params=FAMILIES)
def vlm(request, tmp_path_factory):
    try:
        return hm.adapters.wrap(*tiny(request.param, tmp_path_factory.mktemp(request.param) / "model"))
    except ImportError as error:  # some older image processors are there with torchvision only
        pytest.skip(str(error).strip().splitlines()[0])


@pytest.fixture
def decoder(vlm):
    if vlm.model.config.model_type in WINDOWED:
        pytest.skip("its layers have windows")
    return vlms._text_decoder(vlm)


def visual_tokens(vlm, inputs):
    return (inputs["input_ids"] == vlm.family.image_token).sum(1)


def captured(vlm, images=PICTURES, questions=QUESTIONS):
    """What is noted of a tower while it looks at pictures."""
    texts, asked, pictures = vlm.parse(images, questions)
    eye = hm.Eye("grid", "information", 10_000, cell=vlm.family.cell, scout=False)
    with capture_tower(vlm.family) as capture:
        prompt = vlm.family.encode_request(hm.adapters.base.VLMRequest(texts, asked, pictures, eye, "after"))
    return capture, prompt


class Fixed:
    """Keeps the same tokens whatever is attended to, and remembers what that was."""

    def __init__(self):
        self.seen = []

    def plan(self, layers, count, budget):
        return [Stage(layers - 1, budget)]

    def keep(self, inner, count):
        self.seen.append(inner)
        chosen = torch.arange(inner.mask.shape[1]) % 3 == 1
        chosen &= chosen.cumsum(0) <= count
        return pick(inner.hidden_states, (inner.mask & chosen), count)


# ---- before the language model ------------------------------------------------------------------------------------


@torch.no_grad()
@before
def test_exactly_the_budget_and_alone_as_in_a_batch(vlm, peer):
    together = vlms.prepare(vlm, PICTURES, QUESTIONS, peer, BUDGET)
    assert visual_tokens(vlm, together).tolist() == [BUDGET * len(group) for group in PICTURES]
    logits = last_logits(vlm(together))
    assert logits.isfinite().all()
    for i in range(len(PICTURES)):
        alone = vlms.prepare(vlm, PICTURES[i : i + 1], QUESTIONS[i : i + 1], peer, BUDGET)
        torch.testing.assert_close(last_logits(vlm(alone))[0], logits[i], rtol=1e-4, atol=1e-4)


@torch.no_grad()
@before
def test_enough_budget_gives_the_inputs_of_the_model(vlm, peer):
    ours, stock = vlms.prepare(vlm, PICTURES, QUESTIONS, peer, 10_000), vlm.prepare(PICTURES, QUESTIONS, **ALL)
    assert ours.keys() == stock.keys()
    assert all(torch.equal(ours[name], stock[name]) for name in ours if name != "mm_encoder_outputs")
    assert torch.equal(last_logits(vlm(ours)), last_logits(vlm(stock)))


@torch.no_grad()
def test_kept_tokens_stand_where_they_stood(vlm):
    """In models of one grid, where positions tell; DeepStack features go with them."""
    if not isinstance(vlm.family, Gridded):
        pytest.skip("positions of tiles are not those of one grid")
    full = vlm.prepare([IMAGE], [QUESTION], **ALL)
    ours = vlms.prepare(vlm, [IMAGE], [QUESTION], "divprune", BUDGET)
    rows, columns = ours.views[0].grid
    at = ours["position_ids"][..., ours["input_ids"] == vlm.family.image_token]
    first = full["position_ids"][..., full["input_ids"] == vlm.family.image_token]
    index = (at - first[0]) if at.ndim == 1 else (at[2] - first[2, 0]) * columns + at[3] - first[3, 0]
    assert (index.diff() > 0).all() and len(index) == BUDGET and int(index.max()) < rows * columns
    boxes = ours.views[0].selection.boxes[0] // vlm.family.cell
    assert torch.equal(boxes[:, 1] * columns + boxes[:, 0], index)
    whole, kept = (x["mm_encoder_outputs"]["image"] for x in (full, ours))
    assert torch.equal(kept.pooler_output[0], whole.pooler_output[0][index])
    layers = [getattr(x, "deepstack_features", None) or [] for x in (whole, kept)]
    for all_of_it, some in zip(*layers, strict=True):
        assert torch.equal(torch.cat(list(some)), torch.cat(list(all_of_it))[index])


@torch.no_grad()
def test_the_tower_is_watched_without_being_changed(vlm, monkeypatch):
    """What is noted is what eager attention has, in both layers, of images and tiles of a batch."""
    capture, prompt = captured(vlm)
    _, modules = _attentions(vlm.family)
    source, eager, weights = sys.modules[type(modules[0]).__module__], "eager_attention_forward", {}

    def recorded(module, *words, **how):
        out = usual(module, *words, **how)
        weights.setdefault(module, []).append((out[1].mean(1), words[1].mean(1)))
        return out

    usual = getattr(source, eager)
    monkeypatch.setattr(source, eager, recorded)
    vlm.model.set_attn_implementation("eager")
    try:
        stock = vlm.prepare(PICTURES, QUESTIONS, **ALL)
    finally:
        vlm.model.set_attn_implementation("sdpa")
    assert capture.has_class_token == (
        vlm.model.config.model_type in ("llava", "llava_next", "internvl")
    )  # CLIP, InternViT
    late, early = _layers(vlm.model.config, modules[0].config, len(modules))
    assert capture.late_module is modules[late] and capture.early_module is modules[early]
    for module, found in ((capture.late_module, capture.late), (capture.early_module, capture.early)):
        for (weight, _), ours in zip(weights[module], found, strict=True):
            wanted = weight[:, 0] if capture.has_class_token else weight.mean(1)
            torch.testing.assert_close(ours, wanted, rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(ours.sum(1), torch.ones(len(ours)))
    for (_, key), ours in zip(weights[capture.late_module], capture.keys, strict=True):
        torch.testing.assert_close(ours, key, rtol=1e-4, atol=1e-4)
    ours = torch.cat([noted.late for noted in token_attention(vlm.family, capture, prompt)])
    tower = torch.cat(
        [w[:, 0, 1:] if capture.has_class_token else w.mean(1) for w, _ in weights[capture.late_module]], 1
    )
    if vlm.model.config.model_type == "llava":  # a patch is a token
        torch.testing.assert_close(ours, tower.flatten(), rtol=1e-4, atol=1e-4)
    if vlm.model.config.model_type in ("qwen3_vl", "qwen2_vl"):  # four patches are one, block by block
        torch.testing.assert_close(ours, tower.view(-1, 4).mean(1), rtol=1e-4, atol=1e-4)
    if vlm.model.config.model_type == "internvl":  # squares of four
        squares = tower.view(-1, 4, 2, 4, 2).mean((2, 4))
        torch.testing.assert_close(ours, squares.flatten(), rtol=1e-4, atol=1e-4)
    eager_features = stock["mm_encoder_outputs"]["image"].pooler_output
    parts = [x.flatten(0, -2) for x in eager_features]
    torch.testing.assert_close(torch.cat(prompt.encoded.features), torch.cat(parts), rtol=1e-3, atol=1e-3)


@torch.no_grad()
def test_what_is_noted_belongs_to_the_token_that_shows_it(vlm):
    """Noise where a token is changes the key of that token most, or of one that shows the same place."""
    image = picture(240, 160)
    capture, prompt = captured(vlm, [image], ["What?"])
    (noted,) = token_attention(vlm.family, capture, prompt)
    assert len(noted.late) == len(noted.early) == len(noted.keys) == len(prompt.encoded.features[0])
    assert noted.late.isfinite().all() and noted.keys.isfinite().all()
    if prompt.views:
        height, width = prompt.views[0].scene.pixels.shape[-2:]
        boxes = prompt.views[0].selection.boxes[0] / torch.tensor([width, height, width, height])
        assert not noted.newline.any()
    else:
        boxes = torch.cat([grid.boxes() for grid in vlm.family.grids(image, len(noted.late))])
        assert torch.equal(boxes.isnan().any(1), noted.newline)
        assert noted.late[noted.newline].le(noted.late.min()).all() and not noted.keys[noted.newline].any()
    square = vlm.model.config.model_type == "llava"  # shows the middle of the image
    corner = torch.tensor([40.0 if square else 0.0, 0.0])
    scale = torch.tensor([160.0 if square else 240.0, 160.0])
    lots = torch.Generator().manual_seed(3)
    right = total = 0
    for i in torch.randperm(len(boxes), generator=lots)[:10].tolist():
        if noted.newline[i]:
            continue
        x0, y0 = (boxes[i, :2] * scale + corner).round().int().tolist()
        x1, y1 = (boxes[i, 2:] * scale + corner).round().int().tolist()
        noise = (torch.rand(max(1, y1 - y0), max(1, x1 - x0), 3, generator=lots) * 255).byte().numpy()
        changed = image.copy()
        changed.paste(Image.fromarray(noise), (x0, y0))
        (after,) = token_attention(vlm.family, *captured(vlm, [changed], ["What?"]))
        most = int((after.keys - noted.keys).norm(dim=1).argmax())
        reach = (boxes[i, 2:] - boxes[i, :2]) / 2
        low = torch.maximum(boxes[most, :2], boxes[i, :2] - reach)
        high = torch.minimum(boxes[most, 2:], boxes[i, 2:] + reach)
        right += bool((high > low).all())
        total += 1
    assert right >= 0.7 * total > 0


@torch.no_grad()
def test_ends_of_rows_go_first(vlm):
    newline = getattr(vlm.family.base, "image_newline", None)
    if newline is None:
        pytest.skip("rows have no ends")
    for peer in ("divprune", "hired", "cdpruner"):
        seen = vlms.prepare(vlm, [IMAGE], [QUESTION], peer, 80)["mm_encoder_outputs"]["image"].pooler_output
        assert not (torch.cat(list(seen)) == newline).all(1).any()
        seen = vlms.prepare(vlm, [IMAGE], [QUESTION], peer, 119)["mm_encoder_outputs"]["image"].pooler_output
        assert len(torch.cat(list(seen))) == 119


def test_tiles_and_the_small_copy_share_one_grid():
    pieces = [
        TokenGrid((0.0, 0.0, 0.5, 1.0), 2, 2),
        TokenGrid((0.5, 0.0, 1.0, 1.0), 2, 2, True),
        TokenGrid(WHOLE, 1, 1),
    ]
    places, grid = vlms.common_grid([*pieces, TokenGrid(WHOLE, 1, 0, True)])
    assert grid == (2, 4)
    left, right = [[0, 0], [0, 1], [1, 0], [1, 1]], [[0, 2], [0, 3], [0, 3], [1, 2], [1, 3], [1, 3]]
    assert places.tolist() == [*left, *right, [0.5, 1.5], [0.5, 1.5]]


def test_attention_that_is_received_counts_only_what_is_there(monkeypatch):
    torch.manual_seed(0)
    query, key = torch.randn(2, 3, 7, 4), torch.randn(2, 3, 7, 4)
    there = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    allowed = there[:, None, None].expand(2, 1, 7, 7)
    weight = (query @ key.mT * 0.3).masked_fill(~allowed, -torch.inf).softmax(-1).mean(1)
    wanted = torch.stack((weight[0].mean(0), weight[1, :4].mean(0)))
    for room in (1 << 26, 50):  # all rows at once, one by one
        monkeypatch.setattr("homunculus.peers.towers.ROOM", room)
        torch.testing.assert_close(received(query, key, allowed, 0.3, False), wanted)
        torch.testing.assert_close(received(query, key, allowed, 0.3, True), weight[:, 0])


# ---- inside it ----------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_dropping_nothing_is_the_models_own_forward(vlm, decoder):
    inputs = vlm.prepare(PICTURES, QUESTIONS, **ALL)
    logits, left = decoder.pruned().begin(decoder.text(inputs), Fixed(), [])
    torch.testing.assert_close(logits, last_logits(vlm(inputs)), rtol=1e-4, atol=1e-4)
    assert left.sum(1).tolist() == visual_tokens(vlm, inputs).tolist()


@torch.no_grad()
@pytest.mark.parametrize("penalty", [1.0, 1.7])
def test_words_are_chosen_as_generate_chooses_them(vlm, decoder, penalty, monkeypatch):
    monkeypatch.setattr(vlm.model.generation_config, "repetition_penalty", penalty)
    inputs = vlm.prepare([IMAGE], [QUESTION], **ALL)
    said, sure, _ = vlms._generate(decoder, inputs, Fixed(), [], 12)
    reply = vlm.answer(inputs, QUESTION, 12, do_sample=False)
    assert vlm.family.tokenizer.decode(said, skip_special_tokens=True).strip() == reply.text
    assert sum(sure) / len(sure) == pytest.approx(reply.probability, rel=1e-4)
    monkeypatch.setattr(vlm.model.generation_config, "eos_token_id", [said[3]])
    cut, _, _ = vlms._generate(decoder, inputs, Fixed(), [], 12)
    assert cut == said[: said.index(said[3]) + 1]


@torch.no_grad()
def test_what_was_dropped_is_as_if_later_layers_did_not_see_it(vlm, decoder):
    inputs = vlm.prepare([IMAGE], [QUESTION], **ALL)
    logits, left = decoder.pruned().begin(decoder.text(inputs), Fixed(), [Stage(1, 6), Stage(2, 2)])
    assert int(left.sum()) == 2
    ids = inputs["input_ids"][0]
    at = (ids == vlm.family.image_token).nonzero()[:, 0]
    number = torch.arange(len(at))
    first = number[number % 3 == 1][:6]
    assert left[0].nonzero()[:, 0].tolist() == first[[1, 4]].tolist()

    def bias(kept):
        there = torch.ones(len(ids), dtype=torch.bool)
        there[at] = False
        there[at[kept]] = True
        seen = torch.ones(len(ids), len(ids), dtype=torch.bool).tril() & there | torch.eye(len(ids), dtype=torch.bool)
        return torch.where(seen, 0.0, torch.finfo(torch.float32).min)[None, None]

    def seeing(kept):
        return lambda module, words, how: (words, how | {"attention_mask": bias(kept)})

    layers = decoder.language.layers
    handles = [
        layers[n].register_forward_pre_hook(seeing(kept), with_kwargs=True)
        for n, kept in enumerate((number, first, first[[1, 4]]))
    ]
    try:
        expected = last_logits(vlm(inputs))
    finally:
        for handle in handles:
            handle.remove()
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_step_by_step_is_the_same_as_from_scratch(vlm, decoder):
    inputs, plan = vlm.prepare(PICTURES, QUESTIONS, **ALL), [Stage(1, 8), Stage(2, 3)]
    run, text = decoder.pruned(), decoder.text(inputs)
    logits, _ = run.begin(text, Fixed(), plan)
    for _ in range(3):
        word = vlm.model.get_input_embeddings()(logits.argmax(1, keepdim=True))
        logits = run.step(word)
        more = torch.ones(len(word), 1, dtype=torch.bool)
        text = text.of(
            torch.cat((text.hidden_states, word), 1),
            torch.cat((text.attention_mask, more), 1),
            torch.cat((text.visual_mask, ~more), 1),
            torch.cat((text.position_ids, text.position_ids[..., -1:] + 1), -1),
            [torch.nn.functional.pad(part, (0, 0, 0, 1)) for part in text.deepstack],
        )
        again, _ = decoder.pruned().begin(text, Fixed(), plan)
        torch.testing.assert_close(logits, again, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_methods_are_told_the_attention_of_the_model(vlm, decoder):
    inputs, method = vlm.prepare([IMAGE], [QUESTION], **ALL), Fixed()
    decoder.pruned().begin(decoder.text(inputs), method, [Stage(2, 4)])
    vlm.model.set_attn_implementation("eager")
    try:
        attention = vlm(inputs, output_attentions=True).attentions[1].mean(1)  # [1, L, L]
    finally:
        vlm.model.set_attn_implementation("sdpa")
    at = (inputs["input_ids"][0] == vlm.family.image_token).nonzero()[:, 0]
    (inner,) = method.seen
    torch.testing.assert_close(inner.attention, attention[:, int(at[-1]) + 1 :, at], rtol=1e-4, atol=1e-4)


# ---- all ----------------------------------------------------------------------------------------------------------


@torch.no_grad()
@peers
def test_every_peer_answers_and_with_enough_budget_as_the_model_does(vlm, peer):
    if peer in INSIDE and vlm.model.config.model_type in WINDOWED:
        with pytest.raises(InputError, match="sliding window, between which no tokens can be dropped"):
            vlms.ask(vlm, IMAGE, QUESTION, peer, BUDGET)
        return
    reply, tokens = vlms.ask(vlm, IMAGE, QUESTION, peer, BUDGET, 5)
    assert 0 < reply.probability <= 1 and (reply.glance is not None) == isinstance(vlm.family, Gridded)
    count = int(visual_tokens(vlm, vlm.prepare([IMAGE], [QUESTION], **ALL)))
    left = BUDGET
    if peer in INSIDE:
        depth = len(vlms._text_decoder(vlm).language.layers)
        enters = min(count, vlms.entering(peer, depth, BUDGET)) if peer in BEFORE else count
        plan = INSIDE[peer].plan(depth, enters, BUDGET)
        assert tokens == mean_tokens(plan, depth, enters)
        left = plan[-1].keep
    else:
        assert tokens == BUDGET
    assert reply.glance is None or reply.glance.selection.mask.sum() == left
    (stock,) = vlm.ask(IMAGE, [QUESTION], 5, **ALL)
    again, tokens = vlms.ask(vlm, IMAGE, QUESTION, peer, count, 5)
    assert (again.text, again.probability, tokens) == (stock.text, stock.probability, count)


@torch.no_grad()
def test_the_model_is_as_it_was(vlm, monkeypatch):
    def state():
        parts = list(vlm.model.named_modules())
        ways = {name: part.config._attn_implementation for name, part in parts if hasattr(part, "config")}
        own = {name: set(vars(part)) - {"rope_deltas"} for name, part in parts}
        hooks = [len(part._forward_hooks) for part in vlm.model.modules()]
        return ways, own, hooks, vlm.model.config.to_dict(), vlm.model.generation_config.to_dict()

    values, was = copy.deepcopy(vlm.model.state_dict()), state()
    for peer in ("visionzip", *INSIDE):
        if peer == "visionzip" or vlm.model.config.model_type not in WINDOWED:
            vlms.ask(vlm, IMAGE, QUESTION, peer, BUDGET, 3)
    assert state() == was
    monkeypatch.setattr(vlm.family, "encode_request", lambda request: 1 / 0, raising=False)
    with pytest.raises(ZeroDivisionError):
        vlms.prepare(vlm, [IMAGE], [QUESTION], "visionzip", BUDGET)
    monkeypatch.undo()
    if vlm.model.config.model_type not in WINDOWED:
        monkeypatch.setattr(type(INSIDE["fastv"]), "keep", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            vlms.ask(vlm, IMAGE, QUESTION, "fastv", BUDGET, 3)
    assert state() == was
    assert all(torch.equal(value, values[name]) for name, value in vlm.model.state_dict().items())


@torch.no_grad()
def test_paths_pictures_and_tensors_are_the_same_image(vlm, tmp_path):
    IMAGE.save(tmp_path / "page.png")
    pixels = torch.frombuffer(bytearray(IMAGE.tobytes()), dtype=torch.uint8).view(IMAGE.height, IMAGE.width, 3)
    answers = [
        vlms.ask(vlm, image, QUESTION, "visionzip", BUDGET, 4)[0].text
        for image in (IMAGE, tmp_path / "page.png", str(tmp_path / "page.png"))
    ]
    assert len(set(answers)) == 1
    if not vlm.model.config.model_type.startswith("qwen"):  # which scales tensors in its own way
        assert vlms.ask(vlm, pixels.permute(2, 0, 1), QUESTION, "visionzip", BUDGET, 4)[0].text == answers[0]
    assert vlms.ask(vlm, IMAGE, "", "cdpruner", BUDGET, 4)[1] == BUDGET


def test_what_cannot_be_is_said_in_a_sentence(vlm):
    with pytest.raises(InputError, match=r"there is no peer 'fast'; choose one of pooling, .*, sparsevlm"):
        vlms.ask(vlm, IMAGE, QUESTION, "fast", BUDGET)
    with pytest.raises(InputError, match="there is no peer None"):
        vlms.prepare(vlm, [IMAGE], [QUESTION], None, BUDGET)
    with pytest.raises(InputError, match="fastv works inside the language model"):
        vlms.prepare(vlm, [IMAGE], [QUESTION], "fastv", BUDGET)
    for peer in ("tome", "vscan"):
        with pytest.raises(InputError, match="budget must be a whole number"):
            vlms.ask(vlm, IMAGE, QUESTION, peer, 0)
    with pytest.raises(InputError, match="2 questions but 1"):
        vlms.prepare(vlm, PICTURES, QUESTIONS[:1], "tome", BUDGET)
