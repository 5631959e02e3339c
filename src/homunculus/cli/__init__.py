"""The command line: `look`, `view`, `ask`, `read`, `allocators`, `eval`, `report`, `bench`, `serve`, `train`.

Colours and progress on a terminal, plain text when piped; exit code 0 only when all went well, 2 for wrong input.
Each command imports what it needs when it runs, so that `homunculus --help` stays quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from homunculus import __version__
from homunculus.cli.allocators import allocators
from homunculus.cli.ask import ask, read
from homunculus.cli.bench import bench
from homunculus.cli.console import out, print_error
from homunculus.cli.eval import evaluate, report
from homunculus.cli.look import look, view
from homunculus.cli.serve import serve
from homunculus.cli.train import app as train
from homunculus.errors import ImageError, InputError

__all__ = ["app", "main"]

# Typer's own word for a wrong command line; it has no public name in all versions that we allow
UsageError: Any = typer.BadParameter.__mro__[1]

COMMANDS: dict[str, Callable[..., None]] = {
    "look": look,
    "view": view,
    "ask": ask,
    "read": read,
    "allocators": allocators,
    "eval": evaluate,
    "report": report,
    "bench": bench,
    "serve": serve,
}
app = typer.Typer(
    help="A fixed budget of visual tokens, spent where the question looks.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for name, command in COMMANDS.items():
    app.command(name=name)(command)
app.add_typer(train, name="train")


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
        print_error(f"{error.format_message().rstrip('.')}; see homunculus --help")
    except (InputError, ImageError) as error:
        print_error(error)
    except OSError as error:  # of standard output: a full disk, or a reader that has seen enough
        if not isinstance(error, BrokenPipeError):
            print_error(f"cannot write{f' {error.filename}' if error.filename else ''}: {error.strerror or error}")
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - Python would try once more at the end
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    sys.exit(2)


@app.callback(invoke_without_command=True)
def _no_command(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        out.print(__version__)
    elif context.invoked_subcommand is None:
        out.print(context.get_help(), markup=False)
