"""What came of a command for each table, and how it is printed: text for people, or one JSON document."""

import base64
import contextvars
import dataclasses
import datetime as dt
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Generic, TypeVar

import click

from hoodie.cli import secrets
from hoodie.display.render import aligned

#: The name and version of the JSON document. Fields may be added; a change of another kind is a new version.
SCHEMA = "hoodie.cli/1"


R = TypeVar("R")


class Status(IntEnum):
    """The exit status of a command; of several tables the greatest."""

    FINE = 0
    FOUND = 1  # what was looked for was found: a finding of the doctor, a plan that cannot run
    USAGE = 2
    FAILED = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a table, or the command, failed.

    type     the class of docs/errors.md, or of Python
    message  one line, with advice
    """

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """What came of one table."""

    path: str
    status: Status
    result: R | None = None
    error: Problem | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows under a header. Numbers stand to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]


Block = str | Grid


def show(blocks: Sequence[Block], *, err: bool = False) -> None:
    """Print lines and tables; tables are drawn by rich at a terminal only."""
    for block in blocks:
        if isinstance(block, str):
            click.echo(secrets.masked_path(block), err=err)
        elif (sys.stderr if err else sys.stdout).isatty() and not os.environ.get("NO_COLOR"):
            _draw(block, err)
        else:
            cells = [[_cell(value) for value in row] for row in block.rows]
            right = [_is_number(block.rows, column) for column in range(len(block.header))]
            click.echo("\n".join(aligned([block.header, *cells], right)), err=err)


def complain(line: str) -> None:
    """One line of an error, on standard error."""
    click.echo(f"hoodie: {secrets.masked(line)}", err=True)


def traceback(error: BaseException) -> None:
    """The traceback of an error, on standard error."""
    import traceback as lines

    click.echo(secrets.masked("".join(lines.format_exception(error))), err=True)


def with_path(path: str, message: str) -> str:
    """The message with the table's path before it, unless it begins with that."""
    return message if message.startswith(f"{path}: ") else f"{path}: {message}"


def show_outcomes(
    outcomes: Sequence[Outcome[Any]], text: Callable[[Any], Sequence[Block]], seconds: float, *, err: bool = False
) -> None:
    """Results below the path of their table where there are several, and a summary of these; errors one line each."""
    several = len(outcomes) > 1
    for outcome in outcomes:
        if several:
            show([f"== {outcome.path}"], err=err)
        for line in outcome.warnings:
            click.echo(f"warning: {line}", err=True)
        if outcome.error is not None:
            complain(with_path(outcome.path, outcome.error.message) if several else outcome.error.message)
        else:
            show(text(outcome.result), err=err)
    if several:
        show([*outcome_paths(outcomes), summary_line(outcomes, seconds)], err=err)


def show_lines(
    outcomes: Sequence[Outcome[Any]],
    grid: Grid,
    text: Callable[[Any], Sequence[Block]],
    in_full: Callable[[Any], bool],
    seconds: float,
    total: int,
) -> None:
    """A line for each table, then errors, warnings, and in full what was found, and a summary.

    in_full  whether a result is printed as a whole, too, although nothing was found
    total    tables that were looked at; those of `outcomes` are shown
    """
    show([grid] if grid.rows else [])
    for outcome in outcomes:
        for line in outcome.warnings:
            click.echo(f"warning: {secrets.masked_path(outcome.path)}: {line}", err=True)
        if outcome.error is not None:
            complain(with_path(outcome.path, outcome.error.message))
        elif outcome.status is Status.FOUND or in_full(outcome.result):
            show([f"== {outcome.path}", *text(outcome.result)])
    show([*outcome_paths(outcomes), summary_line(outcomes, seconds, total)])


#: Paths that a line names.
_MOST_PATHS = 20


def outcome_paths(outcomes: Sequence[Outcome[Any]]) -> list[str]:
    """Lines with the paths of the tables with findings, and of those that failed."""
    words = {"with findings": (Status.FOUND,), "failed": (Status.USAGE, Status.FAILED)}
    lines = []
    for word, statuses in words.items():
        paths = [outcome.path for outcome in outcomes if outcome.status in statuses]
        more = f" and {len(paths) - _MOST_PATHS} more" if len(paths) > _MOST_PATHS else ""
        lines += [f"== {word}: {', '.join(paths[:_MOST_PATHS])}{more}"] if paths else []
    return lines


def summary_line(outcomes: Sequence[Outcome[Any]], seconds: float, total: int | None = None) -> str:
    """total  tables that were looked at, where not all of them are shown"""
    count = outcome_counts(outcomes, seconds)
    parts = [f"{count['fine']} fine"]
    parts += [f"{count['found']} with findings"] if count["found"] else []
    parts += [f"{count['failed']} failed"] if count["failed"] else []
    many = f"{count['tables']} of {total}" if total not in (None, count["tables"]) else f"{count['tables']}"
    return f"== {many} tables: {', '.join(parts)} ({seconds:.1f} s)"


def outcome_counts(outcomes: Sequence[Outcome[Any]], seconds: float) -> dict[str, Any]:
    statuses = [int(outcome.status) for outcome in outcomes]
    return {
        "tables": len(statuses),
        "fine": statuses.count(0),
        "found": statuses.count(1),
        "failed": statuses.count(2) + statuses.count(3),
        "seconds": round(seconds, 3),
    }


def document(command: str, outcomes: Sequence[Outcome[Any]], seconds: float) -> dict[str, Any]:
    """The JSON document of a command: docs/cli.md."""
    tables = [
        {
            "path": json_value(secrets.masked_path(outcome.path)),
            "status": int(outcome.status),
            "result": json_value(outcome.result),
            "error": json_value(outcome.error),
            "warnings": json_value(outcome.warnings),
        }
        for outcome in outcomes
    ]
    status = max((int(outcome.status) for outcome in outcomes), default=0)
    whole = outcome_counts(outcomes, seconds)
    return {"schema": SCHEMA, "command": command, "status": status, "tables": tables, "error": None, "summary": whole}


def emit(command: str, outcomes: Sequence[Outcome[Any]], seconds: float) -> None:
    """Print the JSON document, on one line."""
    _print_json(document(command, outcomes, seconds))


def emit_error(command: str, status: int, problem: Any) -> None:
    """The JSON document of a command that came to no table."""
    whole = {**document(command, [], 0.0), "status": status, "error": json_value(problem)}
    _print_json(whole)


def _print_json(document: Mapping[str, Any]) -> None:
    """On one line; letters that the output has no code for, as on a terminal of Latin-1, are escaped."""
    text = json.dumps(document, ensure_ascii=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(document)
    click.echo(text)


def json_value(value: Any) -> Any:
    """A result as JSON has it: times as ISO text, decimals as text, bytes as base64."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_value(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {json_value(str(key)): json_value(item) for key, item in value.items()}
    if isinstance(value, Enum):
        return value.name if isinstance(value, int) else value.value
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()  # a file name may be no Unicode, and JSON is
    if value is None or isinstance(value, int | bool):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal | dt.timedelta):
        return str(value)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, Collection):
        return [json_value(item) for item in value]
    return str(value)


# --- warnings ---

_said: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("hoodie_cli_warnings", default=None)


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """The warnings of a table: those of its own thread."""
    lines: list[str] = []
    token = _said.set(lines)
    try:
        yield lines
    finally:
        _said.reset(token)


@contextmanager
def collecting_warnings() -> Iterator[None]:
    """Hoodie's warnings go to the table that they are about; those of threads below it are printed. No others show."""
    from hoodie.errors import HoodieWarning

    warnings.simplefilter("ignore")
    warnings.simplefilter("always", HoodieWarning)

    def collect(message: Warning | str, *more: Any, **others: Any) -> None:
        line, lines = secrets.masked(" ".join(str(message).split())), _said.get()
        if lines is None:
            click.echo(f"warning: {line}", err=True)
        elif line not in lines:
            lines.append(line)

    before, warnings.showwarning = warnings.showwarning, collect
    try:
        yield
    finally:
        warnings.showwarning = before


@contextmanager
def warnings_printed() -> Iterator[None]:
    """Print warnings at once: of a command that has no document to put them in."""
    with warnings.catch_warnings(), collecting_warnings():
        yield


# --- tables ---


def _draw(grid: Grid, err: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column, name in enumerate(grid.header):
        table.add_column(name, justify="right" if _is_number(grid.rows, column) else "left", overflow="fold")
    for row in grid.rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    Console(stderr=err, highlight=False).print(table)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return "" if value is None else " ".join(str(value).split("\n"))


#: A size or a share as text: it stands to the right, too.
_QUANTITY = re.compile(r"\d[\d.]* (%|[kMGTP]?B)")


def _is_number(rows: Sequence[Sequence[object]], column: int) -> bool:
    values = [row[column] for row in rows if row[column] not in (None, "")]
    return bool(values) and all(isinstance(v, int | float) or _QUANTITY.fullmatch(str(v)) for v in values)
