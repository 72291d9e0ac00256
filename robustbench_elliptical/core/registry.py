"""A dictionary with manners: names are unique, and an unknown one gets suggestions."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from robustbench_elliptical.core.errors import UnknownNameError

__all__ = ["Registry"]

Entry = TypeVar("Entry")
Registered = TypeVar("Registered")


class Registry(Generic[Entry]):
    """Entries by name, in order of registration.

    Parameters
    ----------
    kind
        What the entries are, for messages ("attack", "attention mechanism").
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = {}

    def add(self, name: str, entry: Entry) -> Entry:
        """Register `entry` under `name`; raises `KeyError` if the name is taken."""
        if name in self._entries:
            taken = self._entries[name]
            raise KeyError(f"{self.kind} {name!r} is registered twice: {taken!r} and {entry!r}")
        self._entries[name] = entry
        return entry

    def decorate(
        self, name: str, make: Callable[[Registered], Entry]
    ) -> Callable[[Registered], Registered]:
        """Return a decorator that registers `make(object)` and hands the object back unchanged."""

        def register(target: Registered) -> Registered:
            self.add(name, make(target))
            return target

        return register

    def __getitem__(self, name: str) -> Entry:
        if name not in self._entries:
            raise UnknownNameError(self.kind, name, self._entries)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def names(self) -> list[str]:
        """Return every registered name, in order of registration."""
        return list(self._entries)
