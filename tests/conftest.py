"""Shared by all tests: one thread, a skip without a GPU, a page to look at, a run of the harness."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import settings
from PIL import Image, ImageDraw, ImageFont

from homunculus import cli

if TYPE_CHECKING:
    from homunculus.eval.backends import Backend
    from homunculus.eval.runner import ModelSpec

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # kernels are tried out by Triton's interpreter

# pytest --hypothesis-profile=thorough searches for minutes
settings.register_profile("default", deadline=None, max_examples=60)
settings.register_profile("thorough", deadline=None, max_examples=3000)
settings.load_profile("default")


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    """On tensors this small, threads mostly wait for each other: 40 s instead of 4 on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _cuda_or_skip(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("no CUDA device")


@pytest.fixture
def kernels(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton, on a GPU or in its interpreter."""
    pytest.importorskip("triton")
    if device == "cpu":
        if os.environ.get("TRITON_INTERPRET", "0") == "0":
            pytest.skip("the interpreter is off")
        from triton.runtime import interpreter

        usual = interpreter._patch_lang_tensor

        def patch(tensor, scope):  # Triton 3.6 makes numbers of arrays of one as NumPy 2.4 no longer allows
            usual(tensor, scope)
            scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

        monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch)


@pytest.fixture
def quiet() -> Iterator[None]:
    """No warning may reach a user, Pillow's about large images least of all."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def homunculus(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line in this process: exit code, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["homunculus", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def page() -> Image.Image:
    """A page with a heading at the top, two columns of lines and a stamp at the bottom right."""
    image = Image.new("RGB", (700, 960), "white")
    draw = ImageDraw.Draw(image)
    draw.text((60, 40), "Quarterly statement", "black", ImageFont.load_default(36))
    for line in range(22):
        draw.text((60, 130 + 30 * line), f"entry {line} of the ledger", "black", ImageFont.load_default(18))
        draw.text(
            (400, 130 + 30 * line), f"{line * 37 % 90}.{line * 13 % 90:02} EUR", "black", ImageFont.load_default(18)
        )
    draw.ellipse((560, 840, 660, 930), outline="crimson", width=6)
    return image


@pytest.fixture(scope="session")
def stripes() -> torch.Tensor:
    """Horizontal stripes on the left, vertical ones of the same strength on the right: uint8 [3, 512, 1024]."""
    wave = np.where(np.arange(512) % 8 < 4, 40, 215).astype(np.uint8)
    image = np.concatenate((np.tile(wave[:, None], (1, 512)), np.tile(wave[None], (512, 1))), 1)
    return torch.from_numpy(np.stack([image] * 3))


# Of the harness; what they import would load Triton before it is told to interpret.


@pytest.fixture(scope="session")
def eval_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder of three pages with four questions each."""
    from readers import pages

    return pages(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def eval_spec(tmp_path_factory: pytest.TempPathFactory) -> "ModelSpec":
    """A tiny reader for the harness."""
    from homunculus.eval.runner import ModelSpec
    from readers import tiny_reader

    weights, language = tiny_reader(tmp_path_factory.mktemp("reader"))
    return ModelSpec(weights=str(weights), language=str(language), max_new_tokens=4)


@pytest.fixture(scope="session")
def eval_backend(eval_spec: "ModelSpec") -> "Backend":
    """The tiny reader, loaded."""
    return eval_spec.load()


@pytest.fixture(scope="session")
def eval_run(
    eval_data: Path, eval_spec: "ModelSpec", eval_backend: "Backend", tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of a finished run."""
    from harness import batches
    from homunculus.eval.runner import run

    folder = tmp_path_factory.mktemp("run")
    config = {"data": [str(eval_data)], "split": "val"}
    run(batches(eval_data), eval_spec, folder, config=config, load=lambda: eval_backend)
    return folder
