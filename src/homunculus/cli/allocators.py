"""`homunculus allocators`: the rules that choose the tokens."""

from __future__ import annotations

from typing import Annotated

import typer

from homunculus.allocators import ALLOCATORS, get_allocator
from homunculus.cli.console import out


def allocators(name: Annotated[str | None, typer.Argument(help="One allocator, to see its options.")] = None) -> None:
    """List the rules that choose the tokens, or describe one and its options."""
    if name is None:
        for each, entry in ALLOCATORS.items():
            out.print(f"[bold]{each:20}[/bold] {entry.description.splitlines()[0]}")
        out.print(
            "\nhomunculus allocators NAME shows the options of one; give them as --option NAME=VALUE.", style="dim"
        )
        return
    entry = get_allocator(name)
    out.print(entry.description, markup=False)
    out.print("\noptions:" if entry.options else "\nno options")
    for key, parameter in entry.options.items():
        out.print(f"  {key} = {parameter.default!r}", markup=False)
