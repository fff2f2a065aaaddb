"""Commands that read rows: query, changes, export. None of them needs Spark."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from hoodie.cli.arguments import COUNT, TIME, Decorator, cli_option, command, flag
from hoodie.cli.calls import Call, Target
from hoodie.cli.look import AS_OF, PARTITION
from hoodie.cli.output import warnings_printed
from hoodie.display.progress import wants_progress, working
from hoodie.storage.faults import typed_errors

if TYPE_CHECKING:
    from hoodie.cli.rows import Question

#: Rows that a table at a terminal shows, unless --limit says otherwise.
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a table.

    columns  names, in the order of the values
    rows     values: times as ISO text, decimals as text, bytes as base64
    more     there are rows that --limit left out
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool


_COLUMNS = cli_option(
    "--columns",
    metavar="NAME,...",
    example="--columns id,city",
    help="Columns, in the order wanted. Without it all, with those that begin with _hoodie_ only if --meta is given.",
)
FILTER = cli_option(
    "--filter",
    "filters",
    multiple=True,
    metavar="CONDITION",
    example="--filter \"fare >= 20 or city = 'oslo'\" --filter 'city in oslo,rome'",
    help="Rows to keep: a condition in SQL, as in Python. Beside one column a text needs no quotes. All must hold.",
)
META = flag("--meta", "The columns that begin with _hoodie_, too.")
LIMIT = cli_option(
    "--limit",
    type=COUNT,
    metavar="N",
    example="--limit 20",
    help="So many rows at most. Files are read until there are so many.",
)
FORMAT = cli_option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    default="table",
    example="--format csv",
    help="How rows are printed: a table of 100 rows unless --limit is given, CSV, JSON lines, or (with --output) "
    "Parquet.",
)
_OUTPUT = cli_option(
    "--output",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    example="--output trips.parquet",
    help="Write to this file, which appears when all rows are in it.",
)
BEGIN = cli_option(
    "--begin",
    type=TIME,
    default="earliest",
    example="--begin 20260131120000000",
    help="Changes after this instant of the table, or this time.",
)
END = cli_option("--end", type=TIME, example="--end 2026-02-01", help="Changes up to this instant, included; else all.")
_CDC = flag(
    "--cdc",
    "Each change of each row, deletes included: op (i, u or d), ts_ms (the commit), before and after as JSON. For "
    "tables that log change data; of others with --option hoodie.read.cdc.infer=true.",
)


def rows_options(*first: Decorator) -> tuple[Decorator, ...]:
    return (*first, _COLUMNS, FILTER, META, LIMIT, FORMAT, _OUTPUT)


@command(
    "query",
    *rows_options(PARTITION, AS_OF),
    examples=[
        "hoodie query /data/trips --columns id,fare --filter 'city = oslo' --limit 10",
        "hoodie query /data/trips --as-of 2026-01-31 --format csv > trips.csv",
        "hoodie query /data/trips --format parquet --output trips.parquet",
    ],
    hoodie=True,
)
def query(
    call: Call, partitions: tuple[str, ...], as_of: str | None, form: str, output: str | None, **option_values: Any
) -> int:
    """Print rows, as they are now or were at a time."""
    from hoodie.cli.rows import Question

    return _answer(call, Question.of(option_values, partitions=partitions or None, as_of=as_of), form, output)


@command(
    "changes",
    *rows_options(BEGIN, END, _CDC),
    examples=[
        "hoodie changes /data/trips --begin 20260131120000000",
        "hoodie changes /data/trips --begin 2026-01-31 --end 2026-02-01 --format json",
        "hoodie changes /data/trips --cdc --filter 'op = d' --columns ts_ms,before",
    ],
    hoodie=True,
)
def changes_command(
    call: Call, begin: str, end: str | None, cdc: bool, form: str, output: str | None, **option_values: Any
) -> int:
    """Print the rows that commits of a range wrote.

    Each once and as it was at the end; deleted rows are not among them. With --cdc each change of each row.
    """
    from hoodie.cli.rows import Question

    if cdc and option_values["meta"]:
        raise click.UsageError("--meta does not go with --cdc: change data has no columns that begin with _hoodie_")
    return _answer(call, Question.of(option_values, begin=begin, end=end, cdc=cdc), form, output)


@command(
    "export",
    cli_option(
        "--to",
        "folder",
        required=True,
        metavar="FOLDER",
        example="--to s3://bucket/exports/2026-01-31",
        help="A folder or URI that is new or empty; of several tables each gets a folder of its own in it.",
    ),
    cli_option(
        "--format",
        "form",
        type=click.Choice(["parquet", "csv"]),
        default="parquet",
        example="--format csv",
        help="The format of the files.",
    ),
    PARTITION,
    AS_OF,
    cli_option(
        "--begin",
        type=TIME,
        example="--begin 20260131120000000",
        help="Export the changes after this instant of the table, or this time, instead of all rows.",
    ),
    END,
    _COLUMNS,
    FILTER,
    META,
    flag("--dry-run", "Say what would be read; nothing is written."),
    examples=[
        "hoodie export /data/trips --to /exports/trips",
        "hoodie export '/data/lake/*' --to s3://bucket/exports/2026-01-31 --format csv",
    ],
    hoodie=True,
)
def export_command(
    call: Call,
    folder: str,
    form: str,
    partitions: tuple[str, ...],
    begin: str | None,
    end: str | None,
    as_of: str | None,
    **option_values: Any,
) -> int:
    """Write rows as Parquet or CSV files elsewhere.

    All or nothing: the file _SUCCESS comes last: a folder without it is not complete.
    """
    from hoodie.cli import exporting
    from hoodie.cli.rows import Question

    question = Question.of(option_values, partitions=partitions or None, as_of=as_of, begin=begin, end=end)
    places = exporting.table_folders([target.path for target in call.targets()], folder)

    def do(target: Target) -> exporting.Exported:
        place, options = places[target.path], target.storage_options
        return exporting.export_table(
            target.storage, question, target.options, place, options, form, dry_run=call.dry_run
        )

    return call.print_each(do, exporting.export_text)


def _answer(call: Call, question: Question, form: str, file: str | None) -> int:
    """Print rows, or write them to a file."""
    from hoodie.cli import rows

    if call.as_json or form == "table":
        if file:
            raise click.UsageError("--output needs --format csv, json or parquet")
        shown = question if call.as_json or question.limit is not None else replace(question, limit=_SHOWN)

        def do(target: Target) -> Rows:
            return Rows(*rows.row_values(target.storage, shown, target.options))

        return call.print_each(do, rows.rows_text)
    if form == "parquet" and not file:
        raise click.UsageError("--format parquet needs --output")
    target = call.only_target()
    with (
        warnings_printed(),
        typed_errors(),
        working(f"{call.command} {target.path}", show=wants_progress(call.options)),
    ):
        count = rows.write_answer(target.storage, question, target.options, form, file, _stdout)
    if file:
        click.echo(f"{count} rows written to {file}")
    return 0


def _stdout() -> Any:
    sys.stdout.flush()
    return sys.stdout.buffer
