"""The bounded cache."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LRUCache(MutableMapping[K, V]):
    """A dict that holds values up to a total size, and drops the least recently used first; the newest always stays.

    Reading and writing an entry are uses of it, `in` and iteration are not. Twenty lines, so not a dependency on
    cachetools, which refuses a value larger than the whole cache.
    """

    def __init__(self, max_size: float, size_of: Callable[[V], float] = lambda value: 1) -> None:
        self.max_size, self.size_of = max_size, size_of
        self._values: OrderedDict[K, V] = OrderedDict()
        self._size = 0.0

    def __getitem__(self, key: K) -> V:
        self._values.move_to_end(key)
        return self._values[key]

    def __setitem__(self, key: K, value: V) -> None:
        if key in self._values:
            del self[key]
        self._values[key] = value
        self._size += self.size_of(value)
        while self._size > self.max_size and len(self._values) > 1:
            del self[next(iter(self._values))]

    def __delitem__(self, key: K) -> None:
        self._size -= self.size_of(self._values.pop(key))

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[K]:
        return iter(tuple(self._values))  # reading changes the order

    def __len__(self) -> int:
        return len(self._values)
