"""What a result shows of itself: a line, and a table of some rows at most."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice

Cell = str | int | float | None

#: Rows that a table shows at most.
MOST_ROWS = 20
#: Characters of a cell, and of a title.
_MOST_CELL, _MOST_TITLE = 60, 300


class ColumnKind(Enum):
    """What the cells of a column are, and so how they are written."""

    TEXT = "text"
    COUNT = "count"
    BYTES = "bytes"
    SECONDS = "seconds"
    RATIO = "ratio"


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of a table that is shown."""

    name: str
    kind: ColumnKind = ColumnKind.TEXT


@dataclass(frozen=True, slots=True)
class ResultSummary:
    """What is shown of a result.

    title    one line
    columns  of the table; none: the title is all
    rows     the cells of each row that is shown, one a column; None is an empty cell
    total    how many rows there are, those included that are not shown
    compact  a console shows the title only
    """

    title: str
    columns: tuple[ShownColumn, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    total: int = 0
    compact: bool = False

    @property
    def left_out(self) -> int:
        """How many rows are not shown."""
        return max(0, self.total - len(self.rows))


def summary(
    title: str,
    columns: Sequence[ShownColumn | str] = (),
    rows: Iterable[Sequence[Cell]] = (),
    total: int | None = None,
    *,
    compact: bool = False,
) -> ResultSummary:
    """A summary of the first rows.

    columns  a name alone is a column of text
    rows     as many as there are; only the first `MOST_ROWS` are taken
    total    None: there are no more rows than are given
    compact  a console is to show the title only
    """
    shown = tuple(tuple(row) for row in islice(rows, MOST_ROWS))
    named = tuple(ShownColumn(column) if isinstance(column, str) else column for column in columns)
    return ResultSummary(cut(title, _MOST_TITLE), named, shown, len(shown) if total is None else total, compact)


def cut(text: str, most: int = _MOST_CELL) -> str:
    """The text on one line, its end replaced by "…" where it is longer than `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def cell_text(cell: Cell, kind: ColumnKind) -> str:
    """A cell as people read it."""
    return "" if cell is None else _FORMS[kind](cell)


def bytes_text(count: float) -> str:
    """A size in bytes as people read it: 999 B, 1.5 kB, 12 MB. A kB is 1000 bytes."""
    size = float(count)
    units = ["B", "kB", "MB", "GB", "TB", "PB"]
    while abs(size) >= 999.5 and len(units) > 1:
        size /= 1000
        del units[0]
    return f"{size:.0f} {units[0]}" if units[0] == "B" or abs(size) >= 9.95 else f"{size:.1f} {units[0]}"


def percent_text(share: float) -> str:
    """A share as people read it: 12 %."""
    return f"{share:.0%}".replace("%", " %")


def seconds_text(seconds: float) -> str:
    """A duration as people read it: 0.4 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 9.95:
        return f"{seconds:.1f} s" if seconds >= 0.095 else f"{seconds * 1000:.0f} ms"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count_text(number: int, noun: str) -> str:
    """1 file; 1,200 files."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_FORMS: dict[ColumnKind, Callable[[str | int | float], str]] = {
    ColumnKind.TEXT: lambda cell: cut(str(cell)),
    ColumnKind.COUNT: lambda cell: f"{cell:,}",
    ColumnKind.BYTES: lambda cell: bytes_text(float(cell)),
    ColumnKind.SECONDS: lambda cell: seconds_text(float(cell)),
    ColumnKind.RATIO: lambda cell: f"{float(cell):.2f}",
}
