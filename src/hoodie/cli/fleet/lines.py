"""Many tables, a line each: which are shown (`--where`), in which order (`--sort`), and what a line says."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, get_type_hints

import click

from hoodie.cli.output import Grid, Outcome
from hoodie.cli.secrets import masked_path
from hoodie.display.summary import bytes_text, percent_text

R = TypeVar("R")

#: The field of every line that says which table it is about.
_TABLE = "table"


@dataclass(frozen=True, slots=True)
class Lines(Generic[R]):
    """How the results of a command become lines.

    kind     a dataclass; `--sort` and `--where` take its fields that are a number, a text or a truth value
    line     the result of one table as such a value
    shown    the fields that a line shows, in order
    in_full  whether a result is printed as a whole, too, although nothing was found
    """

    kind: type
    line: Callable[[R], Any]
    shown: tuple[str, ...]
    in_full: Callable[[R], bool] = lambda result: False

    @property
    def fields(self) -> dict[str, type]:
        """The fields of a line with their types, the path of the table first."""
        hints = get_type_hints(self.kind)
        plain = (int, float, str, bool)
        return {_TABLE: str} | {f.name: hints[f.name] for f in dataclasses.fields(self.kind) if hints[f.name] in plain}

    def values(self, outcome: Outcome[R]) -> dict[str, Any]:
        """The fields of a table that was looked at."""
        assert outcome.result is not None
        line = self.line(outcome.result)
        return {_TABLE: masked_path(outcome.path)} | {
            name: getattr(line, name) for name in self.fields if name != _TABLE
        }

    def grid(self, outcomes: Sequence[Outcome[R]]) -> Grid:
        """A line a table; one that failed has its path and that word."""
        rows: list[list[object]] = []
        for outcome in outcomes:
            if outcome.error is not None:
                rows.append([masked_path(outcome.path), *[None] * len(self.shown), "failed"])
                continue
            values = self.values(outcome)
            rows.append([values[_TABLE], *(_cell_text(name, values[name]) for name in self.shown), ""])
        return Grid((_TABLE, *self.shown, ""), rows)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which lines are shown, and in which order.

    sort   a field: numbers from the greatest, texts from A; with "-" before it the other way round; "": as given
    where  a condition in SQL over the fields; "": all
    """

    sort: str = ""
    where: str = ""

    def check(self, lines: Lines[Any]) -> None:
        """Raises UsageError on a field that the lines lack, and on what is no condition: before any table is read"""
        fields = lines.fields
        name = self.sort.removeprefix("-")
        if name and name not in fields:
            raise click.UsageError(f"--sort {name}: no such field. There are {', '.join(fields)}")
        if self.where:
            _filter(self.where, fields)

    def of(self, outcomes: Sequence[Outcome[R]], lines: Lines[R]) -> list[Outcome[R]]:
        """The outcomes that are shown. Tables that failed always are, after the others."""
        if not self.sort and not self.where:
            return list(outcomes)
        failed = [outcome for outcome in outcomes if outcome.result is None]
        rest = [outcome for outcome in outcomes if outcome.result is not None]
        values = {id(outcome): lines.values(outcome) for outcome in rest}
        if self.where and rest:
            import pyarrow as pa

            from hoodie.reading.filters.selection import kept_rows

            fields = lines.fields
            rows = pa.Table.from_pylist([values[id(outcome)] for outcome in rest], schema=_schema(fields))
            numbered = rows.append_column("", pa.array(range(len(rest)), pa.int64()))
            matching_rows = kept_rows(numbered, _filter(self.where, fields).expression)
            rest = [rest[at] for at in matching_rows.column("").to_pylist()]
        if name := self.sort.removeprefix("-"):
            falling = lines.fields[name] is not str
            rest = sorted(
                rest, key=lambda outcome: values[id(outcome)][name], reverse=falling is not self.sort.startswith("-")
            )
        return [*rest, *failed]


def _cell_text(name: str, value: Any) -> object:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("bytes"):
        return bytes_text(value)
    return percent_text(value) if name.endswith("share") else value


def _schema(fields: dict[str, type]) -> Any:
    import pyarrow as pa

    kinds = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
    return pa.schema([(name, kinds[kind]) for name, kind in fields.items()])


def _filter(text: str, fields: dict[str, type]) -> Any:
    """The condition as a filter of rows that have the fields. Raises UsageError on what is none"""
    from hoodie.errors import InvalidInput, sentence
    from hoodie.reading.filters.selection import read_filter

    try:
        return read_filter(text, _schema(fields))
    except InvalidInput as problem:
        names = ", ".join(fields)
        reason = str(problem).removesuffix(f" There are {names}")  # the message about a missing one lists them, too
        raise click.UsageError(f"--where {text!r}: {sentence(reason)} The fields are {names}") from problem
