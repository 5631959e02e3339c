"""`homunculus allocators`: the rules that choose the tokens."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from homunculus.allocators import list_allocators, options_of, rule
from homunculus.cli.console import out


def allocators(name: Annotated[str | None, typer.Argument(help="One allocator, to see its options.")] = None) -> None:
    """List the rules that choose the tokens, or describe one and its options."""
    if name is None:
        for each in list_allocators():
            out.print(f"[bold]{each:20}[/bold] {(inspect.getdoc(rule(each)) or '').splitlines()[0]}")
        out.print(
            "\nhomunculus allocators NAME shows the options of one; give them as --option NAME=VALUE.", style="dim"
        )
        return
    options = options_of(name)
    out.print(inspect.getdoc(rule(name)), markup=False)
    out.print("\noptions:" if options else "\nno options")
    for key, parameter in options.items():
        out.print(f"  {key} = {parameter.default!r}", markup=False)
