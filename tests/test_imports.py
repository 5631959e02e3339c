"""The core stands on torch and numpy alone, and nothing flows backwards."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import homunculus

ROOT = Path(homunculus.__file__).parent
CORE = ["errors", "kernels", "pyramid", "cells", "relevance", "fixation", "allocators", "tokens", "positions"]


def files_of(part: str) -> list[Path]:
    return sorted((ROOT / part).rglob("*.py")) if (ROOT / part).is_dir() else [ROOT / f"{part}.py"]


def imports_of(file: Path) -> set[str]:
    """What a file imports, inside of functions too."""
    found = set()
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file.name} imports relatively"
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


@pytest.mark.parametrize("part", CORE)
def test_the_core_imports_torch_and_numpy_only(part):
    assert files_of(part)
    for file in files_of(part):
        for name in imports_of(file):
            package = name.split(".")[0]
            known = {"torch", "numpy", "homunculus"} | ({"triton"} if part == "kernels" else set())
            assert package in known or package in sys.stdlib_module_names, (file.name, name)
            if package == "homunculus" and name.count("."):
                assert name.split(".")[1] in CORE, f"{file.name} reaches out of the core: {name}"


LATER = ["image", "runtime", "segment", "glance", "giga", "eye", "reader", "adapters", "peers", "eval", "train"]
ORDER = [*CORE, *LATER, "studio", "cli"]


@pytest.mark.parametrize("part", ORDER)
def test_nothing_flows_backwards(part):
    later = set(ORDER[ORDER.index(part) + 1 :])
    for file in files_of(part):
        for name in imports_of(file):
            if name.startswith("homunculus."):
                assert name.split(".")[1] not in later, f"{file.name} imports {name}"


def test_every_folder_has_its_place_in_the_order():
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} <= set(ORDER)


def test_the_whole_package_has_no_star_imports_and_no_file_that_does_not_fit_in_the_head():
    for file in ROOT.rglob("*.py"):
        text = file.read_text()
        assert "import *" not in text and text.count("\n") <= 450, file.name


def test_only_the_command_line_knows_typer_and_nothing_imports_it():
    for file in ROOT.rglob("*.py"):
        if file.parent.name != "cli" and file.name != "__main__.py":
            names = imports_of(file)
            assert not any(name.split(".")[0] == "typer" or name.startswith("homunculus.cli") for name in names), file


@pytest.mark.parametrize("words", [["--help"], ["look", "examples/invoice.png", "What is the total?"]])
def test_heavy_libraries_are_loaded_when_needed(words):
    heavy = ("pyvips", "transformers", "fastapi", "uvicorn", "matplotlib", "datasets", "scipy")
    code = (
        "import sys; from homunculus.cli import main\n"
        f"sys.argv = ['homunculus', *{words}]\n"
        "try: main()\n"
        f"finally: print([name for name in {heavy} if name in sys.modules])"
    )
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.endswith("\n[]\n"), done.stdout + done.stderr
