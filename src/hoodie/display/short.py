"""The `repr` of values that hold much: what they hold is cut."""

import reprlib
from dataclasses import fields
from typing import Any

_CUT = reprlib.Repr()
_CUT.maxlevel, _CUT.maxtuple, _CUT.maxlist, _CUT.maxdict, _CUT.maxset, _CUT.maxfrozenset = 2, 2, 2, 2, 2, 2
_CUT.maxstring = _CUT.maxother = 60


class Short:
    """Gives a dataclass a `repr` that cuts each field. The dataclass needs `repr=False` for it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return short_repr(self)


def short_repr(value: Any) -> str:
    """The `repr` of a dataclass, each of its fields cut."""
    shown = (f"{field.name}={_CUT.repr(getattr(value, field.name))}" for field in fields(value) if field.repr)
    return f"{type(value).__name__}({', '.join(shown)})"
