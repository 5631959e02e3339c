"""What README and docs show runs, and the picture in the README is the one that `make demo` makes."""

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

import homunculus as hm

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
WRITTEN = [page for page in sorted(DOCS.rglob("*.md")) if page.parent.name != "report" and page.name != "api.md"]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *WRITTEN]
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


@pytest.mark.parametrize("name", ["eye", "performance"])
def test_a_generated_page_is_what_its_generator_writes(name, tmp_path):
    import_module(f"{name}_page").main(tmp_path)
    assert (tmp_path / f"{name}.md").read_text() == (DOCS / f"{name}.md").read_text()


def test_the_readme_states_the_scores_that_were_measured():
    rows = json.loads((ROOT / "results" / "reader.json").read_text())["rows"]
    scores = {row["dataset"]: f"{row['score']['value']:.2f}" for row in rows if row["way"] == "foveated/query/273"}
    readme = (ROOT / "README.md").read_text()
    stated = {name.lower(): score for score, name in re.findall(r"(0\.\d\d)\s+on\s+[^()]*\((\w+)\)", readme)}
    assert stated and stated.items() <= scores.items()


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def listed(nav: Any) -> Iterator[str]:
    """The pages of a navigation, whatever sections they stand in."""
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav:
            yield from listed(entry)


def test_every_page_is_in_the_navigation_of_the_site_once():
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert sorted(listed(nav)) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_pages_of_the_site_link_to_pages_of_the_site():
    for page in WRITTEN:
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)\)", page.read_text()):
            assert (page.parent / link).resolve().is_relative_to(DOCS), f"{page.name}: {link}"


def test_the_api_page_names_what_there_is_and_all_that_is_public():
    named = re.findall(r"^::: (\S+)$", (DOCS / "api.md").read_text(), re.M)
    for name in named:
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute), name
    assert {f"homunculus.{name}" for name in hm.__all__} <= set(named)
    assert {f"homunculus.reader.{name}" for name in hm.reader.__all__ if name.startswith("load_")} <= {
        name.replace("homunculus.load_reader", "homunculus.reader.load_reader") for name in named
    }


def test_every_step_of_the_walks_is_there():
    text = (DOCS / "architecture.md").read_text()
    walks = text[text.index("## Three walks") : text.index("## The tree")]
    names = [
        name for step in re.findall(r"^\d+\. (.*)$", walks, re.M) for name in re.findall(r"`([a-z_]+\.[\w.]+)`", step)
    ]
    steps = re.findall(r"^(\d+)\.", walks, re.M)
    assert steps.count("1") == 3 and max(map(int, steps)) <= 12 and len(names) > 36
    for name in names:
        parts = name.split(".")
        upto = next(n for n in range(len(parts), 0, -1) if find_spec_of(parts[:n]))
        found: Any = import_module(".".join(["homunculus", *parts[:upto]]))
        for part in parts[upto:]:
            found = getattr(found, part)
        assert callable(found), name


def find_spec_of(parts: list[str]) -> bool:
    """Whether this is a module of the package."""
    place = Path(hm.__file__).parent.joinpath(*parts)
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def test_every_allocator_has_its_row():
    table = (ROOT / "docs" / "allocators.md").read_text()
    assert all(f"| `{name}` |" in table for name in hm.list_allocators())


def test_no_page_speaks_of_machines():
    for page in [*PAGES, ROOT / "CHANGELOG.md", ROOT / "Makefile"]:
        assert not re.search(r"(?<![\w.])/(work|root|home|opt)/", page.read_text()), page.name
