"""The command line: `look`, `view`, `ask`, `read`, `allocators`, `eval`, `report`, `bench`, `serve`, `train`.

Colours and progress on a terminal, plain text when piped; exit code 0 only when all went well, 2 for wrong input.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import track

from homunculus import __version__
from homunculus.allocators import ALLOCATORS, check_options, get_allocator
from homunculus.bench import bench
from homunculus.errors import ImageError, InputError
from homunculus.eval.cli import evaluate, report
from homunculus.eye import Eye, Glance
from homunculus.image import MAX_PIXELS, load
from homunculus.reader.cli import read
from homunculus.relevance import list_relevances
from homunculus.runtime.files import replacing
from homunculus.train.cli import app as train_app

if TYPE_CHECKING:
    from homunculus.adapters.vlm import Reply
    from homunculus.reader.model import Answer

app = typer.Typer(
    help="A fixed budget of visual tokens, spent where the question looks.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(train_app, name="train")
out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


# what several commands ask for
Rule = Annotated[str, typer.Option("--allocator", "-a", help="Rule; see [b]homunculus allocators[/b].")]
Matters = Annotated[str, typer.Option("--relevance", "-r", help=f"What matters: {', '.join(list_relevances())}.")]
Budget = Annotated[int, typer.Option("--budget", "-k", help="How many tokens.")]
Place = Annotated[
    str | None, typer.Option(help="Where to look: X,Y in pixels, 'centre' or 'words'; else where relevance peaks.")
]
Dpi = Annotated[float, typer.Option(min=1, help="Resolution at which a PDF page is drawn.")]
Page = Annotated[int, typer.Option(min=0, help="Page of a PDF or TIFF, from 0.")]
Pixels = Annotated[int, typer.Option(min=1, help="Largest image to decode.")]

# Typer's own word for a wrong command line; it has no public name in all versions that we allow
UsageError: Any = typer.BadParameter.__mro__[1]


def main() -> None:
    """Run the command line; wrong input ends in one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names that the terminal cannot show
    try:
        code = app(standalone_mode=False)  # the exit code, or None
        sys.stdout.flush()
        sys.exit(code)
    except UsageError as error:
        _complain(f"{error.format_message().rstrip('.')}; see homunculus --help")
    except (InputError, ImageError) as error:
        _complain(error)
    except OSError as error:  # of standard output: a full disk, or a reader that has seen enough
        if not isinstance(error, BrokenPipeError):
            _complain(f"cannot write{f' {error.filename}' if error.filename else ''}: {error.strerror or error}")
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - Python would try once more at the end
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    sys.exit(2)


@app.callback(invoke_without_command=True)
def _first(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        out.print(__version__)
    elif context.invoked_subcommand is None:
        out.print(context.get_help(), markup=False)


@app.command()
def look(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="IMAGE... QUESTION", help='PNG, JPEG, WebP, TIFF or PDF; then what to look for, "" for a free look.'
        ),
    ],
    allocator: Rule = "foveated",
    relevance: Matters = "opponent",
    budget: Budget = 273,
    fixation: Place = None,
    fixations: Annotated[int, typer.Option(min=1, help="How many places to look at.")] = 1,
    option: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="NAME=VALUE for the allocator; may be repeated.")
    ] = None,
    cell: Annotated[int, typer.Option(help="Side of a cell in pixels.")] = 32,
    levels: Annotated[
        int | None, typer.Option(min=1, help="Levels of the tree; else as many as leave 16 roots.")
    ] = None,
    segmenter: Annotated[str, typer.Option(help="Where atlas takes its segments from.")] = "felzenszwalb",
    dpi: Dpi = 144,
    page: Page = 0,
    max_pixels: Pixels = MAX_PIXELS,
    png: Annotated[Path | None, typer.Option(help="Write the picture of what was looked at.")] = None,
    json_: Annotated[
        Path | None, typer.Option("--json", help="Write the tokens as JSON; - for standard output, a line an image.")
    ] = None,
) -> None:
    """Choose the tokens for a question about an image, and show which.

    [dim]homunculus look page.png "What is the total?" --png look.png --json look.json[/dim]

    With several images, each gets its own files: look.png becomes look-NAME.png. One that cannot be read is named at
    the end and keeps none of the others from being looked at.
    """
    *images, question = what
    if not images or (len(question) < 255 and Path(question).is_file()):
        given = " ".join(what)
        raise InputError(f'a question is missing: homunculus look {given} "QUESTION", with "" for a free look')
    options = _options(option or [])
    check_options(allocator, options)
    eye = Eye(allocator, relevance, budget, cell=cell, levels=levels, segmenter=segmenter, **options)
    where = _point(fixation)
    failed = 0
    many = len(images) > 1 and err.is_terminal
    listed = track(images, "looking", console=err, transient=True) if many else images
    for i, image in enumerate(listed):
        try:
            glance = eye.look(
                image, question, fixation=where, fixations=fixations, page=page, dpi=dpi, max_pixels=max_pixels
            )
            _report(glance, image, _own(png, i, images), _own(json_, i, images))
        except (ImageError, InputError) as error:
            failed += 1
            _complain(error if image in str(error) or len(images) == 1 else f"{image}: {error}")
    if failed:
        raise typer.Exit(2)


@app.command()
def view(
    image: Annotated[str, typer.Argument(help="PNG, JPEG, WebP, TIFF or PDF.")],
    question: Annotated[str, typer.Argument(help="What will be asked.")],
    folder: Annotated[Path, typer.Option("--out", help="Folder for the images.")],
    relevance: Matters = "query",
    budget: Budget = 273,
    cell: Annotated[int, typer.Option(help="Side of a token in pixels.")] = 32,
    dpi: Dpi = 144,
    page: Page = 0,
    max_pixels: Pixels = MAX_PIXELS,
) -> None:
    """Make a view for any model: a small copy of the image, and pieces in full resolution where the question looks.

    [dim]homunculus view page.png "What is the total?" --budget 273 --out view/[/dim]

    Send the images in the order of their names with the question. Told is what they cost with common models.
    """
    from PIL import Image

    from homunculus.adapters.crops import COSTS, cost, crops

    pixels = load(image, page=page, dpi=dpi, max_pixels=max_pixels)
    found = crops(
        Image.fromarray(pixels.permute(1, 2, 0).numpy()), question, budget, Eye(relevance=relevance, cell=cell)
    )
    folder.mkdir(parents=True, exist_ok=True)
    for n, crop in enumerate(found):
        file = folder / (f"{n}-piece.png" if n else "0-whole.png")
        with replacing(file) as unfinished:
            crop.image.save(unfinished, format="PNG")
        out.print(f"{file}: {crop.image.width} x {crop.image.height}, {crop.tokens} tokens, of {list(crop.box)}")
    for old in folder.glob("*-piece.png"):  # of a view that had more of them
        if old.name.split("-")[0].isdecimal() and int(old.name.split("-")[0]) >= len(found):
            old.unlink()
    sizes, whole = [crop.image.size for crop in found], (pixels.shape[2], pixels.shape[1])
    for name in COSTS:
        out.print(f"{name}: {cost(name, sizes)} tokens; the image itself {cost(name, [whole])}")


@app.command()
def ask(
    image: Annotated[str, typer.Argument(help="PNG, JPEG, WebP, TIFF or PDF.")],
    questions: Annotated[list[str], typer.Argument(metavar="QUESTION...", help="What to answer; one or several.")],
    allocator: Annotated[
        str,
        typer.Option("--allocator", "-a", help="Rule; unless told, foveated, or grid for a model that shows tiles."),
    ] = "",
    relevance: Matters = "query",
    budget: Budget = 273,
    fixation: Place = None,
    model: Annotated[
        str | None,
        typer.Option(help="Folder or hub id of a VLM to ask, such as Qwen/Qwen3-VL-2B-Instruct; else the reader."),
    ] = None,
    where: Annotated[
        str, typer.Option(help="With --model: before its tower, after it, or crops; unless told, the first it can.")
    ] = "",
    language: Annotated[
        str | None, typer.Option(help="Folder or hub id of the reader's language model; else the one on this machine.")
    ] = None,
    weights: Annotated[Path | None, typer.Option(help="Folder of the reader's weights; else the shipped ones.")] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    reading: Annotated[
        str, typer.Option(help="own, or ppocr for other scripts than Latin (pip install 'homunculus[ocr]').")
    ] = "",
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Tokens of an answer at most.")] = 64,
    temperature: Annotated[float, typer.Option(min=0, help="Above 0, sample the answer.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the sampling.")] = 0,
    dpi: Dpi = 144,
    page: Page = 0,
    max_pixels: Pixels = MAX_PIXELS,
    png: Annotated[Path | None, typer.Option(help="Write the picture of what was looked at, answer on top.")] = None,
    json_: Annotated[
        Path | None, typer.Option("--json", help="Write answer and tokens as JSON; - for standard output.")
    ] = None,
) -> None:
    """Answer questions about an image or a page of a PDF, and tell how sure the answer is.

    [dim]homunculus ask page.png "What is the total?" --png look.png[/dim]
    [dim]homunculus ask page.png "What is the total?" --model Qwen/Qwen3-VL-2B-Instruct --device cuda[/dim]

    The page is taken in once; each question looks at it anew. With several questions each gets its own picture:
    look.png becomes look-1.png, look-2.png; the JSON has a line for each.
    """
    if any(not question.strip() for question in questions):
        raise InputError("a question is missing: ask something about the image")
    if model:
        given = {"--fixation": fixation, "--weights": weights, "--language": language, "--reading": reading}
        _refuse("with --model", given)
        _refuse("with --where crops", {"--allocator": allocator if where == "crops" else None})
    else:
        _refuse("without --model", {"--where": where})
        allocator = allocator or "foveated"
    talk: dict[str, Any] = {"max_new_tokens": max_new_tokens, "temperature": temperature, "seed": seed}
    look: dict[str, Any] = {"allocator": allocator, "relevance": relevance, "budget": budget}
    loading: dict[str, Any] = {"page": page, "dpi": dpi, "max_pixels": max_pixels}
    with err.status(f"loading {model or 'the reader'}") if err.is_terminal else nullcontext():
        asked = (
            _vlm(model, where, device)
            if model
            else _reader(weights, language, device, reading or "own", _point(fixation))
        )
    answers = asked(image, questions, look, loading, talk)
    if json_:
        lines = "".join(answer.to_json() for answer in answers)
        if json_ == Path("-"):
            sys.stdout.write(lines)
        else:
            with replacing(json_) as unfinished:
                unfinished.write_text(lines)
    says = err if json_ == Path("-") else out
    for i, answer in enumerate(answers):
        if len(answers) > 1:
            says.print(escape(questions[i]), style="dim")
        says.print(f"[bold]{escape(answer.text)}[/bold]  [dim]{answer.how_sure}[/dim]")
        if png:
            own = png if len(answers) == 1 else png.with_name(f"{png.stem}-{i + 1}{png.suffix}")
            answer.save(own)
            says.print(f"  wrote {escape(str(own))}")


@app.command()
def allocators(name: Annotated[str | None, typer.Argument(help="One allocator, to see its options.")] = None) -> None:
    """List the rules that choose the tokens, or describe one and its options."""
    if name is None:
        for each, entry in ALLOCATORS.items():
            out.print(f"[bold]{each:20}[/bold] {entry.description.splitlines()[0]}")
        out.print(
            "\nhomunculus allocators NAME tells the options of one; give them as --option NAME=VALUE.", style="dim"
        )
        return
    entry = get_allocator(name)
    out.print(entry.description, markup=False)
    out.print("\noptions:" if entry.options else "\nno options")
    for key, parameter in entry.options.items():
        out.print(f"  {key} = {parameter.default!r}", markup=False)


app.command()(read)
app.command(name="eval")(evaluate)
app.command()(report)
app.command()(bench)


@app.command()
def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on; others can reach it beyond 127.0.0.1.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8765,
    token: Annotated[
        str, typer.Option(envvar="HOMUNCULUS_TOKEN", help="Requests must bring it as a bearer token.")
    ] = "",
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    weights: Annotated[Path | None, typer.Option(help="Folder of the reader's weights; else the shipped ones.")] = None,
    language: Annotated[str | None, typer.Option(help="Folder or hub id of the reader's language model.")] = None,
    waiting: Annotated[int, typer.Option(min=1, help="Requests that may wait; more are told to come back.")] = 64,
    together: Annotated[int, typer.Option(min=1, help="Questions answered at a time.")] = 8,
    max_pixels: Pixels = 50_000_000,
    max_upload: Annotated[int, typer.Option(min=1, help="Megabytes of an image.")] = 32,
) -> None:
    """A web page to see where it looks, and an HTTP API with OpenAI-compatible chat.

    [dim]homunculus serve[/dim], then open http://127.0.0.1:8765
    """
    from homunculus.studio.serving import serve as run

    run(host, port, token, device, weights, language, waiting, together, max_pixels, max_upload << 20)


How = dict[str, Any]
Asked = Callable[[str, list[str], How, How, How], Sequence["Answer | Reply"]]


def _reader(weights: Path | None, language: str | None, device: str, reading: str, fixation: Any) -> Asked:
    from homunculus.reader import load_reader

    reader = load_reader(weights, language, device, reading=reading)
    return lambda image, questions, look, loading, talk: reader.ask(
        image, questions, fixation=fixation, **look, **loading, **talk
    )


def _vlm(model: str, where: str, device: str) -> Asked:
    from homunculus import adapters
    from homunculus.adapters.base import as_picture

    vlm = adapters.load(model, device)

    def ask(image: str, questions: list[str], look: How, loading: How, talk: How) -> list[Reply]:
        talk = {("most" if name == "max_new_tokens" else name): value for name, value in talk.items()}
        return vlm.ask(as_picture(load(image, **loading)), questions, where=where, **look, **talk)

    return ask


def _report(glance: Glance, image: str, png: Path | None, json_: Path | None) -> None:
    if json_ == Path("-"):
        sys.stdout.write(glance.to_json())
    elif json_:
        with replacing(json_) as unfinished:
            unfinished.write_text(glance.to_json())
    if png:
        glance.save(png)
    levels = glance.selection.levels[0].double()
    spent = ", ".join(f"{int((levels == l).sum())} at level {l:.3g}" for l in levels.unique().tolist())
    places = " ".join(f"({x:.0f}, {y:.0f})" for x, y in glance.fixations.tolist())
    says = err if json_ == Path("-") else out  # standard output is the JSON's alone
    tree = glance.tree
    says.print(f"[bold]{escape(image)}[/bold] {tree.width} x {tree.height}: {glance.allocator} looked at {places}")
    tokens = "1 token" if levels.numel() == 1 else f"{levels.numel()} tokens"
    says.print(f"  {tokens}: {spent}; {float(glance.selection.coverage()[0]):.0%} of the image covered")
    for written in (png, json_):
        if written and written != Path("-"):
            says.print(f"  wrote {escape(str(written))}")


def _options(given: list[str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise InputError(f"an option is written NAME=VALUE, got {each!r}")
        try:
            options[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[name] = value  # a bare word
    return options


def _refuse(when: str, given: Mapping[str, object]) -> None:
    """Name options that were given where they would have no effect."""
    names = [name for name, value in given.items() if value not in (None, "")]
    if names:
        it = "it" if len(names) == 1 else "them"
        raise InputError(f"{' and '.join(names)} would have no effect {when}; leave {it} out")


def _point(text: str | None) -> tuple[float, float] | str | None:
    if text in (None, "centre", "words"):
        return text
    try:
        x, y = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"fixation is written X,Y in pixels, or centre, or words; got {text!r}") from None
    return x, y


def _own(path: Path | None, i: int, images: list[str]) -> Path | None:
    """The file that belongs to one of several images: numbered when two have the same name."""
    if path is None or len(images) == 1 or path == Path("-"):
        return path
    stems = [Path(each).stem for each in images]
    own = stems[i] if stems.count(stems[i]) == 1 else f"{i + 1}-{stems[i]}"
    return path.with_name(f"{path.stem}-{own}{path.suffix}")


def _complain(error: Exception | str) -> None:
    err.print(f"[bold red]homunculus:[/bold red] {escape(str(error))}")


if __name__ == "__main__":
    main()
