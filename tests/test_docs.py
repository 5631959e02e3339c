"""What README and docs show runs, and the picture in the README is the one that `make demo` makes."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import homunculus as hm

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [(p.name, code) for p in PAGES for code in re.findall(r"```python\n(.*?)```", p.read_text(), re.S)]


@pytest.mark.parametrize(("name", "code"), BLOCKS, ids=[f"{name}-{i}" for i, (name, _) in enumerate(BLOCKS)])
def test_the_examples_run(name, code, tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code, name, "exec"), names)
    assert names["hm"] is hm


def test_the_picture_in_the_readme_is_the_one_of_the_demo():
    demo = (ROOT / "Makefile").read_text()
    question = re.findall(r'"([^"]+\?)"', demo[demo.index("homunculus ask") :])[-1]
    assert question in (ROOT / "README.md").read_text()
    fresh = hm.load_reader().ask(ROOT / "examples" / "invoice.png", question).picture()
    shown = Image.open(ROOT / "docs" / "images" / "answer.png")
    assert fresh.size == shown.size
    assert np.abs(np.asarray(fresh, float) - np.asarray(shown.convert("RGB"), float)).mean() < 2


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_allocator_has_its_row():
    table = (ROOT / "docs" / "allocators.md").read_text()
    assert all(f"| `{name}` |" in table for name in hm.list_allocators())


def test_no_page_speaks_of_machines():
    for page in [*PAGES, ROOT / "CHANGELOG.md", ROOT / "Makefile"]:
        assert not re.search(r"(?<![\w.])/(work|root|home|opt)/", page.read_text()), page.name
