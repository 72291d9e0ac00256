"""Read a pickle without importing or calling anything that it names.

A pickle is a program for a stack machine, and Python's machine imports and calls whatever the
program says. This one builds numbers, text and containers; a class or function is only ever a
`Name`, an object of a class a `StandIn` that holds the state it was given. A call is answered from
a table of constructors that the caller gives, looked up by name; every other name is refused as
soon as it appears.
"""

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from robustbench_elliptical.core.errors import UsageError

__all__ = ["Constructors", "DamagedPickleError", "Name", "StandIn", "read_inert"]

Constructors = Mapping[str, Callable[..., Any]]

_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
    "EMPTY_SET": set,
}
_LITERALS = frozenset(
    [
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
        *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    ]
)
_IGNORED = frozenset(["PROTO", "FRAME"])
_STORE = frozenset(["PUT", "BINPUT", "LONG_BINPUT"])
_FETCH = frozenset(["GET", "BINGET", "LONG_BINGET"])
_LONGEST = 200
"""Longest name and message, in characters."""


class DamagedPickleError(ValueError):
    """Not a pickle from start to end, or one that no pickler writes."""


@dataclass(frozen=True)
class Name:
    """A class or function that a pickle names; nothing is looked up."""

    text: str
    """Module and qualified name, joined by a dot."""


@dataclass(eq=False)
class StandIn:
    """An object of a named class: the state it was given, and no behaviour."""

    name: str
    state: dict[str, Any] = field(default_factory=dict)


def read_inert(
    data: bytes,
    *,
    subject: str,
    allowed: Callable[[str], bool],
    constructors: Constructors,
    persistent: Callable[[Any], Any],
) -> Any:
    """Return what a pickle describes.

    Parameters
    ----------
    data
        The pickle.
    subject
        What is read, for messages ("model.pt").
    allowed
        Whether a name may appear: as a class to stand in for, or as a value.
    constructors
        What to do instead of the few calls that are answered, by name; these names may appear too.
    persistent
        Called with each persistent id.

    Raises
    ------
    UsageError
        If the pickle names, calls or does anything else.
    DamagedPickleError
        If it can't be read.
    """
    machine = _Machine(subject, allowed, constructors, persistent)
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                return machine.pop()
            machine.run(opcode.name, argument)
    except UsageError:
        raise
    except Exception as error:  # a damaged pickle may raise anything
        raise DamagedPickleError(f"{type(error).__name__}: {error}"[:_LONGEST]) from None
    raise DamagedPickleError("it has no end")


class _Machine:
    """The stack, the memo and one method for each kind of opcode."""

    def __init__(
        self,
        subject: str,
        allowed: Callable[[str], bool],
        constructors: Constructors,
        persistent: Callable[[Any], Any],
    ) -> None:
        self._subject = subject
        self._allowed = allowed
        self._constructors = constructors
        self._persistent = persistent
        self._stack: list[Any] = []
        self._outer: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def pop(self) -> Any:
        return self._stack.pop()

    def run(self, opcode: str, argument: Any) -> None:
        if opcode in _LITERALS:
            self._stack.append(argument)
        elif opcode in _CONSTANTS:
            self._stack.append(_CONSTANTS[opcode]())
        elif opcode in _STORE:
            self._memo[argument] = self._stack[-1]
        elif opcode in _FETCH:
            self._stack.append(self._memo[argument])
        elif opcode not in _IGNORED:
            method = getattr(self, f"_op_{opcode.lower()}", None)
            if method is None:
                self._refuse(f"uses the pickle instruction {opcode}")
            method() if argument is None else method(argument)

    def _refuse(self, what: str) -> NoReturn:
        raise UsageError(
            f"{self._subject} is refused because it {what}, and it is read without running code; "
            "only tensors and the modules of the released language model are read"
        )

    def _op_memoize(self) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def _op_mark(self) -> None:
        self._outer.append(self._stack)
        self._stack = []

    def _to_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._outer.pop()
        return items

    def _op_pop(self) -> None:
        self._stack.pop()

    def _op_pop_mark(self) -> None:
        self._to_mark()

    def _op_tuple(self) -> None:
        items = self._to_mark()
        self._stack.append(tuple(items))

    def _op_tuple1(self) -> None:
        self._stack[-1:] = [(self._stack[-1],)]

    def _op_tuple2(self) -> None:
        self._stack[-2:] = [(self._stack[-2], self._stack[-1])]

    def _op_tuple3(self) -> None:
        self._stack[-3:] = [(self._stack[-3], self._stack[-2], self._stack[-1])]

    def _op_list(self) -> None:
        items = self._to_mark()
        self._stack.append(items)

    def _op_dict(self) -> None:
        items = self._to_mark()
        self._stack.append(dict(zip(self._keys(items[::2]), items[1::2], strict=True)))

    def _op_append(self) -> None:
        item = self.pop()
        self._top(list).append(item)

    def _op_appends(self) -> None:
        items = self._to_mark()
        self._top(list).extend(items)

    def _op_setitem(self) -> None:
        value, key = self.pop(), self.pop()
        self._top(dict).update(zip(self._keys([key]), [value], strict=True))

    def _op_setitems(self) -> None:
        items = self._to_mark()
        self._top(dict).update(zip(self._keys(items[::2]), items[1::2], strict=True))

    def _op_additems(self) -> None:
        items = self._to_mark()
        self._top(set).update(self._keys(items))

    def _keys(self, items: list[Any]) -> list[Any]:
        """Return keys that hash at once; tuples within tuples may take for ever."""
        for item in items:
            if not isinstance(item, str | int):
                self._refuse(f"has a {_kind(item)} as a key")
        return items

    def _op_global(self, argument: str) -> None:
        module, _, name = argument.partition(" ")
        self._name(module, name)

    def _op_stack_global(self) -> None:
        name, module = self.pop(), self.pop()
        self._name(module, name)

    def _name(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            self._refuse(f"names a class by a {_kind(module)} and a {_kind(name)}")
        text = f"{module}.{name}"
        if len(text) > _LONGEST:
            self._refuse(f"asks for a name of {len(text)} characters")
        if text not in self._constructors and not self._allowed(text):
            self._refuse(f"asks for {text}")
        self._stack.append(Name(text))

    def _op_newobj(self) -> None:
        self.pop()  # arguments of __new__, which is not called
        self._stack.append(StandIn(self._called().text))

    def _op_reduce(self) -> None:
        arguments = self.pop()
        text = self._called().text
        if text not in self._constructors:
            self._refuse(f"calls {text}")
        self._stack.append(self._constructors[text](*arguments))

    def _called(self) -> Name:
        name = self.pop()
        if not isinstance(name, Name):
            self._refuse(f"calls a {type(name).__name__}")
        return name

    def _op_build(self) -> None:
        state = self.pop()
        target = self._stack[-1]
        if not isinstance(target, StandIn) or not isinstance(state, dict):
            self._refuse(f"sets the state of a {_kind(target)} from a {_kind(state)}")
        target.state.update(state)

    def _op_binpersid(self) -> None:
        self._stack.append(self._persistent(self.pop()))

    def _top(self, kind: type[Any]) -> Any:
        if not isinstance(self._stack[-1], kind):
            self._refuse(f"fills a {_kind(self._stack[-1])} as a {kind.__name__}")
        return self._stack[-1]


def _kind(value: object) -> str:
    return value.text if isinstance(value, Name) else type(value).__name__
