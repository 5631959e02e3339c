"""Homunculus: a fixed budget of visual tokens, spent where the question looks.

    import homunculus as hm

    glance = hm.Eye(allocator="foveated", budget=273).look("page.png", "What is the total?")
    glance.save("look.png")
    hm.load_reader().ask("page.png", "What is the total?").text

Axis legend: B images, N cells of the tree, K chosen cells, L levels.
"""

from homunculus.allocators import allocate, allocate_forest, list_allocators
from homunculus.cells import CellTree, Selection
from homunculus.errors import BatchError, ImageError, InputError
from homunculus.eye import Eye, Glance
from homunculus.image import load as load_image
from homunculus.reader import load_reader
from homunculus.relevance import list_relevances

__version__ = "0.2.0.dev0"


def __getattr__(name: str) -> object:
    """`homunculus.adapters` is loaded when first named."""
    if name == "adapters":
        import importlib

        return importlib.import_module("homunculus.adapters")
    raise AttributeError(f"module 'homunculus' has no attribute {name!r}")


__all__ = [
    "BatchError",
    "CellTree",
    "Eye",
    "Glance",
    "ImageError",
    "InputError",
    "Selection",
    "allocate",
    "allocate_forest",
    "list_allocators",
    "list_relevances",
    "load_image",
    "load_reader",
]
