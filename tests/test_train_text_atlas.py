"""Glyphs stand where the atlas says they stand, and the texts are plain, repeatable and fit their labels."""

import gzip
import json
import sys
from random import Random

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont

from homunculus.errors import InputError
from homunculus.train.synth import atlas as atlas_module
from homunculus.train.synth import corpus as corpus_module
from homunculus.train.synth.atlas import BASELINE, CHARS, EM, ORIGIN, Atlas, read_faces
from homunculus.train.synth.corpus import plain
from homunculus.train.synth.text import CORPUS, KINDS, SHARE, Texts, kinds_for
from homunculus.train.synth.vocabulary import own_pools


@pytest.fixture(scope="module")
def atlas():
    return Atlas.builtin()


@pytest.fixture
def font_file(tmp_path):
    """Pillow's own font as a file in a folder of fonts, beside one that is no font."""
    path = tmp_path / "fonts" / "deep" / "aileron.ttf"
    path.parent.mkdir(parents=True)
    path.write_bytes(ImageFont.load_default(10).path.getvalue())
    (path.parent / "broken.otf").write_bytes(b"no font")
    (path.parent / "notes.txt").write_text("nothing")
    return path


def tile(atlas, char):
    return atlas.glyphs[0, CHARS.index(char)].numpy()


def test_the_builtin_atlas_has_the_promised_shapes(atlas):
    assert atlas.glyphs.shape == (1, 94, 64, 64) and atlas.glyphs.dtype == torch.uint8
    assert atlas.advance.shape == (1, 95) and atlas.advance.dtype == torch.float32
    assert atlas.xheight.shape == (1,) and atlas.xheight.dtype == torch.float32
    assert atlas.names == ["Aileron Regular"] and atlas.traits == ["sans"] and len(atlas) == 1
    assert (atlas.glyphs.amax((2, 3)) > 200).all()  # every glyph has ink


def test_advances_are_those_of_pillow(atlas):
    font = ImageFont.load_default(1000)
    expected = [font.getlength(char) / 1000 for char in " " + CHARS]
    assert np.allclose(atlas.advance[0], expected, atol=0.01)


def test_letters_stand_on_the_baseline_and_at_the_pen(atlas):
    rows = {char: np.flatnonzero((tile(atlas, char) > 100).any(1)) for char in "xgH"}
    assert rows["x"][-1] == BASELINE - 1
    assert rows["g"][-1] > BASELINE + 4
    assert rows["H"][0] < rows["x"][0]
    assert (BASELINE - rows["x"][0]) / EM == pytest.approx(float(atlas.xheight[0]), abs=0.03)
    left = np.flatnonzero((tile(atlas, "H") > 100).any(0))[0]
    large = Image.new("L", (2000, 1200))
    ImageDraw.Draw(large).text((500, 1000), "H", 255, ImageFont.load_default(1000), anchor="ls")
    assert left == pytest.approx(ORIGIN + (large.getbbox()[0] - 500) / 1000 * EM, abs=1)


def test_tiles_are_what_pillow_draws(atlas):
    canvas = Image.new("L", (64, 64))
    ImageDraw.Draw(canvas).text((ORIGIN, BASELINE), "R", 255, ImageFont.load_default(EM), anchor="ls")
    assert np.abs(np.asarray(canvas, float) - tile(atlas, "R")).mean() < 5  # hinting moves edges a little


def test_an_atlas_comes_back_from_its_file(atlas, tmp_path):
    atlas.save(tmp_path / "atlas.bin")
    again = Atlas.load(tmp_path / "atlas.bin").to("cpu")
    for name in ("glyphs", "advance", "xheight"):
        assert torch.equal(getattr(again, name), getattr(atlas, name))
    assert (again.names, again.traits) == (atlas.names, atlas.traits)
    assert [path.name for path in tmp_path.iterdir()] == ["atlas.bin"]


def test_what_is_no_atlas_is_refused(tmp_path):
    (tmp_path / "bad.npz").write_bytes(b"PK nonsense")
    with pytest.raises(InputError, match="glyph atlas"):
        Atlas.load(tmp_path / "bad.npz")
    with pytest.raises(InputError, match="at least one font"):
        Atlas.of(read_faces([tmp_path / "bad.npz"])[0])


def test_packing_a_file_is_packing_the_builtin_font(atlas, font_file):
    assert torch.equal(Atlas.of(read_faces([font_file])[0]).glyphs, atlas.glyphs)


def test_the_command_packs_a_folder_and_says_what_it_left_out(font_file, tmp_path, capsys):
    (font_file.parent / "twin.ttf").write_bytes(font_file.read_bytes())
    out, picture = tmp_path / "atlas.npz", tmp_path / "sheet.png"
    assert atlas_module.main([str(tmp_path / "fonts"), "--out", str(out), "--sheet", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "1 of 3 fonts packed (1 sans)" in said and "broken.otf" in said and "is there already" in said
    assert len(Atlas.load(out)) == 1
    assert np.asarray(Image.open(picture)).min() == 0


def test_the_command_takes_what_is_picked_or_fails(font_file, tmp_path, capsys):
    picks = tmp_path / "picks.md"
    picks.write_text("# Faces\n\n  broken.otf\n")
    arguments = [str(tmp_path / "fonts"), "--pick", str(picks), "--out", str(tmp_path / "a.npz")]
    assert atlas_module.main(arguments) == 2
    assert "at least one font" in capsys.readouterr().err
    picks.write_text("| aileron.ttf |\naileron.ttf\n")
    assert atlas_module.main(arguments) == 0
    assert atlas_module.main([str(tmp_path / "nowhere"), "--out", str(tmp_path / "b.npz")]) == 2


def test_capitals_for_small_letters_are_no_latin_face(atlas):
    glyphs = atlas.glyphs[0].numpy().copy()
    assert atlas_module._latin(glyphs)
    for small in "abcdefghijklmnopqrstuvwxyz":
        glyphs[CHARS.index(small)] = glyphs[CHARS.index(small.upper())]
    assert not atlas_module._latin(glyphs)
    assert not atlas_module._latin(glyphs[np.random.default_rng(0).permutation(94)])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_draws_plain_text(kind):
    texts = Texts.builtin(3)
    drawn = [texts(kind) for _ in range(400)]
    assert all(text and text.isascii() and text.isprintable() and text == text.strip() for text in drawn)
    assert len(set(drawn)) >= 10


def test_equal_seeds_draw_equal_texts():
    one, other = Texts.builtin(5), Texts.builtin(6)

    def draw(texts):
        return [texts(kind) for kind in KINDS for _ in range(5)] + [texts.value_for("Remarks on")]

    first = draw(one)
    assert first != draw(other)
    other.reseed(5)
    assert draw(other) == first
    assert isinstance(one.rng.random(), float)


def test_frequent_words_are_drawn_more_often():
    texts = Texts.builtin(0)
    drawn = [texts("word") for _ in range(5000)]
    assert drawn.count("the") > 5 * drawn.count("wheat")
    assert drawn.count("the") > drawn.count("of") > 0


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("Date", "date"), ("TOTAL DUE", "price"), ("Fax No.", "fax"), ("Invoice Date", "date"), ("Invoice No.", "code"),
        ("Approved by", "name"), ("Attn", "name"), ("Updated by", "name"), ("Telephone Number", "phone"),
        ("City", "city"), ("Ship to", "company"), ("Sample Size", "quantity"), ("Number of pages", "number"),
        ("BRAND NAME", "product"),
    ],
)  # fmt: skip
def test_labels_get_values_of_their_kind(label, kind):
    assert kind in kinds_for(label)


def test_values_fit_their_labels():
    texts = Texts.builtin(1)
    assert all(any(map(str.isdigit, texts.value_for("Date"))) for _ in range(200))
    assert all(any(map(str.isdigit, texts.value_for("Total amount"))) for _ in range(200))
    assert {len(texts.value_for("Zymurgy").split()) for _ in range(300)} >= {1, 2, 3, 4, 5}


def test_labels_are_many():
    assert len(own_pools(Random(0))["key"]) >= 600


def test_an_unknown_kind_and_an_empty_pool_are_refused():
    with pytest.raises(InputError, match="no texts of kind 'poem'"):
        Texts.builtin(0)("poem")
    with pytest.raises(InputError, match="the pools lack"):
        Texts({"word": ["a"]}, 0)


def test_accents_fall_off_and_other_scripts_fall_out():
    assert plain("Caf\u00e9  \u201cStra\u00dfe\u201d") == 'Cafe "Strasse"'
    assert plain("\u5f20\u4f1f") == ""


def words_file(path):
    words = [("ACME", 0, 0), ("TRADING SDN BHD", 40, 0), ("Date:", 0, 40), ("Zorblatt", 300, 40)]
    words += [("we have received the order and will send the goods", 0, 80)]
    boxed = [{"text": text, "box": [x, y, x + 8 * len(text), y + 20]} for text, x, y in words]
    path.write_text(json.dumps({"image": "a.png", "words": boxed}) + "\n")
    return path


def test_the_command_builds_from_a_corpus(tmp_path, capsys):
    corpus, out = words_file(tmp_path / "words.jsonl"), tmp_path / "texts.json.gz"
    assert corpus_module.main(["--plain", "--out", str(out), "--corpus", str(corpus)]) == 0
    assert "1 corpus company" in capsys.readouterr().out
    pools = json.loads(gzip.decompress(out.read_bytes()))
    assert pools[CORPUS + "company"] == ["ACME TRADING SDN BHD"]
    assert pools[CORPUS + "key"] == ["Date"]
    assert "Zorblatt" in pools[CORPUS + "rare"]
    assert Texts.load(out, 2)("sentence") == Texts.load(out, 2)("sentence")


def test_a_corpus_has_its_share_and_no_more():
    pools = own_pools(Random(0)) | {CORPUS + "key": [f"found {i}" for i in range(500)]}
    texts = Texts(pools, 0)
    found = sum(texts("key").startswith("found") for _ in range(4000)) / 4000
    assert found == pytest.approx(SHARE, abs=0.04) and found <= 0.4


def test_the_command_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    assert corpus_module.main(["--out", str(tmp_path / "texts.json.gz")]) == 2
    assert "pip install wordfreq Faker" in capsys.readouterr().err
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n")
    assert corpus_module.main(["--plain", "--out", str(tmp_path / "t.json.gz"), "--corpus", str(bad)]) == 2


def test_what_is_no_pool_file_is_refused(tmp_path):
    (tmp_path / "bad.json.gz").write_bytes(b"no gzip")
    with pytest.raises(InputError, match="pools of texts"):
        Texts.load(tmp_path / "bad.json.gz")
