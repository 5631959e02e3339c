"""A fixed budget inside other people's VLMs: tiny random ones of every family, saved and loaded back."""

import copy
import json
from itertools import chain

import pytest
import torch
from PIL import Image
from transformers import AutoProcessor

import homunculus as hm
from homunculus.adapters.base import View
from homunculus.cells import CellTree
from homunculus.errors import InputError
from homunculus.relevance import Scene
from vlms import tiny

FAMILIES = list(hm.adapters.list_families())
BEFORE = [name for name in FAMILIES if "before" in hm.adapters.FAMILIES[name].where]


@pytest.fixture(scope="module", params=FAMILIES)
def vlm(request, tmp_path_factory):
    try:
        return hm.adapters.wrap(*tiny(request.param, tmp_path_factory.mktemp(request.param) / "model"))
    except ImportError as error:  # some older image processors are there with torchvision only
        pytest.skip(str(error).strip().splitlines()[0])


def picture(width: int, height: int, seed: int = 0) -> Image.Image:
    lots = torch.Generator().manual_seed(seed)
    coarse = torch.rand(1, 3, 7, 9, generator=lots)
    pixels = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")[0].clamp(0, 1)
    return Image.fromarray((pixels * 255).byte().permute(1, 2, 0).numpy())


PICTURES = [[picture(160, 96)], [picture(128, 224, 1), picture(96, 96, 2)]]
QUESTIONS = ["What is it?", "Which of the two is the larger one?"]


def stock(vlm, images, questions):
    """What the model gets without us."""
    texts = [vlm._text(question, len(group)) for question, group in zip(questions, images, strict=True)]
    return vlm.processor(text=texts, images=images, return_tensors="pt", padding=True, padding_side="left")


def last_logits(out) -> torch.Tensor:
    return out.logits[:, -1]


@torch.no_grad()
def test_with_all_tokens_the_model_says_what_it_always_says(vlm):
    where = "after"
    own = stock(vlm, PICTURES, QUESTIONS)
    inputs = vlm.prepare(PICTURES, QUESTIONS, budget=10_000, where=where, scout=False)
    ids, counted = inputs["input_ids"], (own["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    expected = vlm.model(**own, **({"position_ids": counted} if vlm.family.guard else {}))  # else padding counts
    assert torch.equal(ids, own["input_ids"]) and torch.equal(inputs["attention_mask"], own["attention_mask"])
    assert torch.equal(last_logits(vlm(inputs)), last_logits(expected))
    said = vlm.model.generate(**own, max_new_tokens=8, do_sample=False)
    assert torch.equal(vlm.generate(inputs, max_new_tokens=8, do_sample=False), said)
    if vlm.takes_features:  # as from transformers 5.18
        assert torch.equal(vlm.model.generate(**inputs, max_new_tokens=8, do_sample=False), said)


@torch.no_grad()
@pytest.mark.parametrize("where", ["after", "before"])
def test_with_fewer_tokens_alone_is_as_in_a_batch_and_a_cache_changes_nothing(vlm, where):
    if where not in vlm.family.where:
        pytest.skip("not before the tower")

    def said(images, questions, **more):
        inputs = vlm.prepare(images, questions, budget=9, where=where, relevance="information")
        count = int((inputs["input_ids"] == vlm.family.image_token).sum())
        assert count == 9 * sum(map(len, images))
        out = vlm.generate(inputs, max_new_tokens=6, do_sample=False, **more)
        return out[:, inputs["input_ids"].shape[1] :], last_logits(vlm(inputs))

    together, logits = said(PICTURES, QUESTIONS)
    again, _ = said(PICTURES, QUESTIONS, use_cache=False)
    assert torch.equal(together, again)
    for i in range(2):
        alone, single = said(PICTURES[i : i + 1], QUESTIONS[i : i + 1])
        assert torch.equal(alone[0], together[i])
        torch.testing.assert_close(single[0], logits[i], rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_dropped_tokens_are_as_if_nobody_saw_them(vlm):
    """Against the whole sequence with the dropped keys masked."""
    if vlm.model.config.model_type == "gemma3":
        pytest.skip("its sliding window counts the tokens that are there, so fewer tokens reach further back")
    images, questions = PICTURES[:1], QUESTIONS[:1]
    inputs = vlm.prepare(images, questions, 9, "after", "grid", "information")
    own = stock(vlm, images, questions)
    full = vlm.prepare(images, questions, 10_000, "after", scout=False)
    ids = own["input_ids"][0]
    kept = torch.ones_like(ids, dtype=torch.bool)
    if vlm.family.guard:  # positions in one direction are those of the whole sequence
        kept[:] = False
        kept[inputs["position_ids"][0][inputs["attention_mask"][0].bool()]] = True
    else:
        at = (ids == vlm.family.image_token).nonzero()[:, 0]
        eye = hm.Eye("grid", "information", 9, cell=vlm.family.cell)
        (view,) = vlm.family._viewed(images[0], questions, eye)
        column, row = (view.selection.boxes[0, :, :2] // vlm.family.cell).unbind(1)
        kept[at] = False
        kept[at[row * view.grid[1] + column]] = True
    assert int(kept.sum()) == int(inputs["attention_mask"].sum())
    length = len(ids)
    seen = torch.ones(length, length, dtype=torch.bool).tril() & kept
    seen |= torch.eye(length, dtype=torch.bool)
    bias = torch.where(seen, 0.0, torch.finfo(torch.float32).min)[None, None]
    expected = vlm({**full, "attention_mask": bias})
    torch.testing.assert_close(last_logits(vlm(inputs)), last_logits(expected), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_before_the_tower_all_blocks_of_level_0_are_what_the_tower_always_makes(vlm):
    if "before" not in vlm.family.where:
        pytest.skip("not before the tower")
    pictures = [group[0] for group in PICTURES]
    views = []
    for image in pictures:
        pixels = vlm.family.view(image)
        scene = Scene(pixels[None], CellTree(*pixels.shape[1:], vlm.family.cell))
        count = scene.tree.shapes[0][0] * scene.tree.shapes[0][1]
        every = hm.allocate("grid", scene.tree, torch.ones(1, scene.tree.size), count)
        views.append(View(scene, every.in_rows()))
    seen, expected = vlm.family.look(views), vlm.family.encode(pictures)
    for ours, theirs in zip(seen.features, expected.features, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(chain(*seen.deeper), chain(*expected.deeper), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    if vlm.model.config.model_type != "qwen2_5_vl":  # its windows go by place, so order within them is its own
        mixed = [View(view.scene, view.selection.take(torch.arange(view.count).flip(0)[None])) for view in views]
        for ours, theirs in zip(vlm.family.look(mixed).features, expected.features, strict=True):
            torch.testing.assert_close(ours, theirs.flip(0), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_the_model_is_as_it_was(vlm):
    state, config = copy.deepcopy(vlm.model.state_dict()), vlm.model.config.to_dict()
    names = {name: set(vars(module)) - {"rope_deltas"} for name, module in vlm.model.named_modules()}
    hooks = [len(module._forward_hooks) for module in vlm.model.modules()]
    for where in vlm.family.where:  # crops too
        vlm.generate(vlm.prepare(PICTURES[:1], QUESTIONS[:1], 9, where, relevance="information"), max_new_tokens=2)
    assert vlm.model.config.to_dict() == config
    assert {name: set(vars(module)) - {"rope_deltas"} for name, module in vlm.model.named_modules()} == names
    assert [len(module._forward_hooks) for module in vlm.model.modules()] == hooks
    assert all(torch.equal(value, state[name]) for name, value in vlm.model.state_dict().items())


def test_what_cannot_be_is_said_in_a_sentence(vlm):
    with pytest.raises(InputError, match="where must be one of"):
        vlm.prepare(PICTURES, QUESTIONS, where="beside")
    if vlm.family.rules:
        with pytest.raises(InputError, match="only grid can choose"):
            vlm.prepare(PICTURES, QUESTIONS, allocator="dag")
    with pytest.raises(InputError, match="budget"):
        vlm.prepare(PICTURES, QUESTIONS, budget=0)
    with pytest.raises(InputError, match="at least one image"):
        vlm.prepare([PICTURES[0], []], QUESTIONS)
    with pytest.raises(InputError, match="2 questions but 1"):
        vlm.prepare(PICTURES, QUESTIONS[:1])
    with pytest.raises(InputError, match="no adapter for models of type 'mystery'"):
        other = copy.copy(vlm.model.config)
        other.model_type = "mystery"
        hm.adapters.wrap(type("Model", (), {"config": other})(), vlm.processor)
    message = [{"role": "user", "content": [{"type": "image"}, {"type": "image"}, {"type": "text", "text": "And?"}]}]
    with pytest.raises(InputError, match="2 placeholders for images, but 1"):
        vlm.prepare([PICTURES[0]], [message], relevance="information")


@torch.no_grad()
def test_crops_are_ordinary_images_within_the_budget(vlm):
    if "crops" not in vlm.family.where:
        with pytest.raises(InputError, match="where must be one of"):
            vlm.prepare(PICTURES, QUESTIONS, where="crops")
        return
    images = [[picture(448, 320)], [picture(320, 512, 1)]]
    inputs = vlm.prepare(images, QUESTIONS, budget=40, where="crops", relevance="information")
    counts = (inputs["input_ids"] == vlm.family.image_token).sum(1)
    assert (counts <= 40).all() and (counts > 25).all()
    assert torch.equal(vlm.generate(inputs, max_new_tokens=3), vlm.model.generate(**inputs, max_new_tokens=3))
    with pytest.raises(InputError, match="plain texts"):
        talk = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "And?"}]}]
        vlm.prepare(images[:1], [talk], where="crops", relevance="information")


@torch.no_grad()
def test_a_second_turn_on_the_kept_cache_is_the_same_as_recomputed(vlm):
    images, budget = PICTURES[:1], 9
    first = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}]
    more = [{"role": "assistant", "content": "A form"}, {"role": "user", "content": "And where?"}]
    how = {"budget": budget, "where": "after", "allocator": "grid", "relevance": "information"}
    whole = vlm.prepare(images, [[*first, *more]], **how)
    length = vlm.prepare(images, [first], **how)["input_ids"].shape[1] - 4
    expected = vlm(whole, use_cache=True)
    begun = {name: value[..., :length] for name, value in whole.items() if name != "mm_encoder_outputs"}
    kept = vlm(begun | {"mm_encoder_outputs": whole["mm_encoder_outputs"]}, use_cache=True).past_key_values
    rest = {
        name: value[..., length:]
        for name, value in whole.items()
        if name not in ("mm_encoder_outputs", "attention_mask")
    }
    again = vlm.model(**rest, attention_mask=whole["attention_mask"], past_key_values=kept, use_cache=True)
    torch.testing.assert_close(last_logits(again), last_logits(expected), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_tokens_of_tiles_are_where_they_are_said_to_be(vlm):
    """Noise in the part of the image that a token shows changes that token most, or one that it shares it with."""
    if not hasattr(vlm.family, "pieces"):
        pytest.skip("no tiles")
    image = picture(240, 160)
    text = [vlm._text("What?", 1)]

    def features(shown):
        own = vlm.processor(text=text, images=[[shown]], return_tensors="pt", padding=True)
        rows = [ids.tolist() for ids in own["input_ids"]]
        return vlm.family._encoded(own, vlm.family.counts(rows, [[shown]])).features[0]

    before = features(image)
    pieces = vlm.family.pieces(image, len(before))
    boxes = torch.cat([piece.boxes() for piece in pieces])
    assert len(boxes) == len(before)
    lots = torch.Generator().manual_seed(3)
    right = total = 0
    for i in torch.randperm(len(boxes), generator=lots)[:16].tolist():
        if boxes[i].isnan().any():
            continue
        x0, y0, x1, y1 = (boxes[i] * torch.tensor([240, 160, 240, 160])).round().int().tolist()
        noise = (torch.rand(max(1, y1 - y0), max(1, x1 - x0), 3, generator=lots) * 255).byte().numpy()
        changed = image.copy()
        changed.paste(Image.fromarray(noise), (x0, y0))
        most = int((features(changed) - before).norm(dim=1).argmax())
        reach = (boxes[i, 2:] - boxes[i, :2]) / 2  # where tiles are scaled down, a token shows some of its neighbours'
        low = torch.maximum(boxes[most, :2], boxes[i, :2] - reach)
        high = torch.minimum(boxes[most, 2:], boxes[i, 2:] + reach)
        right += bool((high > low).all())
        total += 1
    assert right >= 0.7 * total > 0


@pytest.mark.parametrize("size", [(160, 96), (97, 201), (33, 300), (20, 20), (1200, 700), (310, 299)])
def test_an_image_is_viewed_in_the_pixels_that_the_processor_makes(vlm, size):
    if not vlm.model.config.model_type.startswith("qwen"):
        pytest.skip("others ask their processor")
    image = picture(*size)
    own = vlm.processor.image_processor(images=[image], do_rescale=False, do_normalize=False, return_tensors="pt")
    _, rows, columns = own["image_grid_thw"][0].tolist()
    m, p = vlm.family.merge, vlm.family.patch
    blocks = own["pixel_values"].view(rows // m, columns // m, m, m, 3, -1, p, p)[:, :, :, :, :, 0]
    expected = blocks.permute(4, 0, 2, 5, 1, 3, 6).reshape(3, rows * p, columns * p)
    assert torch.equal(vlm.family.view(image).float(), expected)


@torch.no_grad()
@pytest.mark.parametrize("relevance", ["information", "query"])
def test_images_of_one_size_looked_at_together_are_as_one_by_one(vlm, relevance, monkeypatch):
    if "before" not in vlm.family.where:
        pytest.skip("tiles are looked at one by one")
    shapes = [(224, 160), (224, 160), (160, 224), (224, 160)]
    images = [[torch.as_tensor(list(picture(*size, n).tobytes()), dtype=torch.uint8)] for n, size in enumerate(shapes)]
    images = [[x.view(h, w, 3).permute(2, 0, 1)] for (x,), (w, h) in zip(images, shapes, strict=True)]
    questions = ["What is at the top?", "And at the bottom left?", "What?", "Where is the total?"]
    one = vlm.prepare(images, questions, 12, "before", relevance=relevance)
    monkeypatch.setattr(type(vlm.family), "together", True)
    two = vlm.prepare(images, questions, 12, "before", relevance=relevance)
    assert torch.equal(one["position_ids"], two["position_ids"])
    for a, b in zip(*(x["mm_encoder_outputs"]["image"].pooler_output for x in (one, two)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_the_captured_way_to_the_first_token_is_the_models_own(vlm):
    if "before" not in vlm.family.where:
        with pytest.raises(InputError, match="no captured prefill"):
            _ = vlm.prefill
        return
    inputs = vlm.prepare(PICTURES, QUESTIONS, 9, "before", relevance="information")
    own = vlm(inputs, use_cache=True)
    logits, cache = vlm.prefill(inputs)
    torch.testing.assert_close(logits, last_logits(own), rtol=1e-4, atol=1e-4)
    token, at = logits.argmax(1, keepdim=True), inputs["position_ids"][..., -1:] + 1
    mask = torch.cat((inputs["attention_mask"], torch.ones_like(token)), 1)
    steps = [
        vlm.model(input_ids=token, attention_mask=mask, position_ids=at, past_key_values=past).logits
        for past in (cache, own.past_key_values)
    ]
    torch.testing.assert_close(steps[0], steps[1], rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_a_model_of_a_folder_is_asked_on_the_command_line(vlm, tmp_path, homunculus, monkeypatch):
    image = tmp_path / "page.png"
    picture(320, 256).save(image)
    folder = tmp_path / "model"
    kind = vlm.model.config.model_type
    _, processor = tiny(kind, folder)
    monkeypatch.setattr(AutoProcessor, "from_pretrained", lambda name: processor)  # some need torchvision
    how = ("--model", folder, "--budget", 20, "--max-new-tokens", 5, "--relevance", "information")
    code, out, err = homunculus("ask", image, "What is it?", "And where?", *how, "--json", tmp_path / "said.json")
    assert code == 0, err
    lines = [json.loads(line) for line in (tmp_path / "said.json").read_text().splitlines()]
    inputs = vlm.prepare([image], ["What is it?"], budget=20, relevance="information")
    said = vlm.generate(inputs, max_new_tokens=5, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    assert lines[0]["answer"] == vlm.family.tokenizer.decode(said, skip_special_tokens=True).strip()
    assert len(lines) == 2 and 0 < lines[0]["probability"] <= 1 and "probability" in out
    gridded = "before" in vlm.family.where
    assert (len(lines[0].get("tokens", [])) == 20) == gridded
    code, _, err = homunculus("ask", image, "What is it?", *how, "--png", tmp_path / "said.png")
    assert (code, (tmp_path / "said.png").is_file()) == ((0, True) if gridded else (2, False)), err
    code, _, err = homunculus("ask", image, "What is it?", *how, "--allocator", "foveated")
    assert code == (0 if gridded else 2) and ("only grid can choose, got 'foveated'" in err) != gridded


@torch.no_grad()
def test_an_answer_shows_the_image_that_its_inputs_were_made_of(vlm):
    images, how = [picture(160, 96), picture(96, 224, 1)], {"relevance": "information"}
    prepared = [vlm.prepare([image], ["What is it?"], 9, **how) for image in images]
    for image, inputs in zip(images, prepared, strict=True):
        reply = vlm.answer(inputs, "What is it?", 2, do_sample=False)
        own = vlm.ask(image, ["What is it?"], 2, budget=9, **how)[0]
        assert (reply.text, reply.to_json()) == (own.text, own.to_json())
        assert (reply.glance is not None) == ("before" in vlm.family.where)


def test_what_is_no_list_or_too_narrow_is_told_in_a_sentence(tmp_path):
    vlm = hm.adapters.wrap(*tiny("qwen3_vl", tmp_path / "model"))
    page, how = picture(64, 64), {"budget": 9, "relevance": "information"}
    for images, questions in ((page, ["What?"]), ("page.png", ["What?"]), ([page], "?")):
        with pytest.raises(InputError, match="come in lists"):
            vlm.prepare(images, questions, **how)
    with pytest.raises(InputError, match="come in a list"):
        vlm.ask(page, "What?", **how)
    with pytest.raises(InputError, match="no question"):
        vlm.prepare([], [], **how)
    with pytest.raises(InputError, match="conversation is empty"):
        vlm.prepare([page], [[]], **how)
    for where, budget in (("after", 9), ("crops", 50)):
        with pytest.raises(InputError, match="processor does not take the image: absolute aspect ratio"):
            vlm.prepare([picture(640, 1)], ["What?"], budget, where, relevance="information")


def test_seed_and_temperature_are_as_for_the_reader(tmp_path):
    vlm = hm.adapters.wrap(*tiny("qwen3_vl", tmp_path / "model"))
    how = {"budget": 9, "relevance": "information", "max_new_tokens": 3}
    cold, plain = (vlm.ask(picture(64, 64), ["What?"], temperature=t, **how)[0].text for t in (1e-45, 0))
    assert cold == plain
    with pytest.raises(InputError, match="seed must be"):
        vlm.ask(picture(64, 64), ["What?"], seed=1 << 64, **how)


def test_a_model_that_cannot_be_loaded_is_named_in_a_sentence(tmp_path, homunculus):
    picture(64, 64).save(tmp_path / "page.png")
    (tmp_path / "none").mkdir()
    code, _, err = homunculus("ask", tmp_path / "page.png", "What?", "--model", tmp_path / "none")
    assert code == 2 and "cannot load a vision-language model from" in err and "Traceback" not in err
    code, _, err = homunculus("ask", tmp_path / "page.png", "What?", "--model", tmp_path / "none", "--device", "meta")
    assert code == 2 and "no device 'meta'" in err


@pytest.mark.parametrize("kind", BEFORE)
def test_a_model_can_be_taught_mixed_scales(kind, tmp_path):
    vlm = hm.adapters.wrap(*tiny(kind, tmp_path / "model"))
    vlm.model.requires_grad_(True)
    tower = [p for name, p in vlm.model.named_parameters() if "vis" in name]
    before = [p.detach().clone() for p in tower]
    learn = torch.optim.AdamW(vlm.model.parameters(), lr=1e-3)
    talk = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}]
    answered = [*talk, {"role": "assistant", "content": "A form"}]
    losses = []
    for _ in range(6):
        inputs = vlm.prepare([picture(320, 256)], [answered], budget=20, where="before", relevance="information")
        asked = len(vlm.family.tokenizer(vlm._text(talk, 1))["input_ids"]) - 1 + 20
        labels = inputs["input_ids"].clone()
        labels[:, :asked] = -100
        loss = vlm(inputs, labels=labels).loss
        losses.append(loss.item())
        loss.backward()
        learn.step()
        learn.zero_grad()
    assert losses[-1] < losses[0] - 0.05, losses
    assert tower and any(not torch.equal(p, old) for p, old in zip(tower, before, strict=True))
