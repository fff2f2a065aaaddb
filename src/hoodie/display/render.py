"""A summary as text for a console, and as HTML for a notebook; and values that are shown by one."""

from collections.abc import Sequence
from html import escape
from typing import TypeVar

from hoodie.display.summary import ColumnKind, ResultSummary, ShownColumn, cell_text

_STYLE = (
    "<style>.hoodie table{border-collapse:collapse;font-size:90%}"
    ".hoodie th{border-bottom:1px solid currentColor;text-align:left}"
    ".hoodie th,.hoodie td{padding:.15em .8em .15em 0}"
    ".hoodie .n{text-align:right;font-variant-numeric:tabular-nums}</style>"
)


def console_text(shown: ResultSummary) -> str:
    """The title, then the rows in columns unless the summary is a compact one."""
    if shown.compact or not shown.columns or not shown.rows:
        return shown.title
    kinds = [column.kind for column in shown.columns]
    body = [[cell_text(cell, kind) for cell, kind in zip(row, kinds, strict=True)] for row in shown.rows]
    lines = aligned([[column.name for column in shown.columns], *body], [kind is not ColumnKind.TEXT for kind in kinds])
    text = [shown.title, *(f"  {line}" for line in lines)]
    if shown.left_out:
        text.append(f"  and {shown.left_out:,} more")
    return "\n".join(text)


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Lines of cells in columns; those of which `right` says so stand to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.rjust if to_right else str.ljust for to_right in right]
    return [
        "  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)).rstrip()
        for row in rows
    ]


def as_html(shown: ResultSummary) -> str:
    """The same as an HTML fragment: everything that came from a table is escaped."""
    parts = ['<div class="hoodie">', f"<div>{escape(shown.title)}</div>"]
    if shown.columns and shown.rows:
        parts += [_STYLE, html_table(shown)]
    if shown.left_out:
        parts.append(f"<div>and {shown.left_out:,} more</div>")
    return "".join([*parts, "</div>"])


def html_table(shown: ResultSummary) -> str:
    """The rows of a summary as an HTML table; numbers have the class "n"."""
    head = "".join(f"<th{_number(column)}>{escape(column.name)}</th>" for column in shown.columns)
    rows = []
    for row in shown.rows:
        cells = zip(row, shown.columns, strict=True)
        rows.append("".join(f"<td{_number(c)}>{escape(cell_text(cell, c.kind))}</td>" for cell, c in cells))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _number(column: ShownColumn) -> str:
    return "" if column.kind is ColumnKind.TEXT else ' class="n"'


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
