"""What a question is answered with: a method, a relevance and a number of tokens, as METHOD/RELEVANCE/BUDGET.

Methods are the allocators, with options if need be ("foveated:fovea=0.3"), and the peers. Two things are for tests of a
method alone: the relevance "oracle" knows where the answer stands, and the option "off" looks that many degrees beside
the place where it would have looked.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from homunculus.allocators import check_options, list_allocators
from homunculus.errors import InputError
from homunculus.peers import list_peers
from homunculus.relevance import list_relevances

ORACLE = "oracle"


@dataclass(frozen=True)
class Setting:
    """How to look; peers have no relevance of their own."""

    method: str
    relevance: str
    budget: int

    @classmethod
    def parse(cls, text: str) -> Setting:
        """From METHOD/RELEVANCE/BUDGET, or METHOD/BUDGET."""
        parts = text.split("/")
        if len(parts) not in (2, 3) or not parts[-1].isdecimal():
            raise InputError(f"a setting is METHOD/RELEVANCE/BUDGET, such as foveated/query/273, got {text!r}")
        is_peer = parts[0].split(":")[0] in list_peers()
        relevance = "" if is_peer else (*parts[1:-1], "query")[0]
        return cls(parts[0], relevance, int(parts[-1])).checked()

    @property
    def name(self) -> str:
        """Method and relevance, without the budget."""
        return f"{self.method}/{self.relevance}" if self.relevance else self.method

    def __str__(self) -> str:
        return f"{self.name}/{self.budget}"

    @cached_property
    def rule(self) -> str:
        """The method without its options."""
        return self.method.split(":")[0]

    @cached_property
    def options(self) -> dict[str, Any]:
        """Options of the allocator; numbers, or text."""
        return {key: value for key, value in self._options.items() if key != "off"}

    @property
    def degrees_off(self) -> float:
        """Degrees by which the look is off."""
        return float(self._options.get("off", 0))

    @property
    def is_peer(self) -> bool:
        """Whether it is a published method rather than an allocator."""
        return self.rule in list_peers()

    def checked(self) -> Setting:
        """Itself, if there is such a setting."""
        if self.budget < 1:
            raise InputError(f"a budget must be at least 1, got {self}")
        if self.is_peer:
            if self._options:
                raise InputError(f"{self.rule} takes no options, got {self.method!r}")
            return self
        if self.rule not in list_allocators():
            known = ", ".join((*list_allocators(), *list_peers()))
            raise InputError(f"there is no method {self.rule!r}; choose of {known}")
        if self.relevance not in (*list_relevances(), ORACLE):
            raise InputError(f"there is no relevance {self.relevance!r}; choose of {', '.join(list_relevances())}")
        if not isinstance(self._options.get("off", 0), (int, float)):
            raise InputError(f"off must be a number of degrees, got {self.method!r}")
        check_options(self.rule, self.options)
        return self

    @cached_property
    def _options(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for part in self.method.split(":")[1:]:
            key, _, value = part.partition("=")
            try:
                found[key] = ast.literal_eval(value)
            except (ValueError, SyntaxError):
                found[key] = value
        return found


def settings_of(methods: Sequence[str], relevances: Sequence[str], budgets: Sequence[int]) -> list[Setting]:
    """All combinations; peers once for each budget, without a relevance."""
    found = [Setting.parse(f"{m}/{given}/{budget}") for budget in budgets for given in relevances for m in methods]
    return list(dict.fromkeys(found))
