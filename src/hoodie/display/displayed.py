"""Values that a console and a notebook show by a summary."""

from __future__ import annotations

from typing import TypeVar

from hoodie.display.render import as_html, console_text
from hoodie.display.summary import ResultSummary

T = TypeVar("T")


class Displayed:
    """Gives a value that has `_summary` its `repr` and what notebooks show. A dataclass needs `repr=False` for it."""

    __slots__ = ()

    def _summary(self) -> ResultSummary:
        raise NotImplementedError

    def __repr__(self) -> str:
        return console_text(self._summary())

    def _repr_html_(self) -> str:
        return as_html(self._summary())


class DisplayedList(Displayed, list[T]):
    """A list that is shown as a table."""

    __slots__ = ()
    __repr__ = Displayed.__repr__


class DisplayedTuple(Displayed, tuple[T, ...]):
    """A tuple that is shown as a table."""

    __slots__ = ()
    __repr__ = Displayed.__repr__
