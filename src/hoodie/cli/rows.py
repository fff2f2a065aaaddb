"""Rows of a table for people and programs: which are asked for, read file slice by file slice, and in which form."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from hoodie.cli.output import Block, Grid, json_value
from hoodie.cli.output_file import output_file
from hoodie.config.options import Options
from hoodie.config.read import ReadSettings
from hoodie.errors import InvalidInput, PartitionsNotThere, sentence
from hoodie.model.meta import META_COLUMNS
from hoodie.reading.changes.data import change_data_batches, select_changes
from hoodie.reading.changes.data_plan import plan_change_data
from hoodie.reading.filters.selection import Filters, check_columns, read_filter
from hoodie.reading.scan import ScanKind, ScanPlan
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.reading.snapshot import read_scan
from hoodie.schema.python_values import python_values
from hoodie.schema.schema import with_meta_fields
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState, declared_schema, load_state

_CONDITION = re.compile(
    r"\s*(?P<column>`[^`]+`|[^\s=!<>]+)\s*(?P<how>==|!=|<>|<=|>=|=|<|>|\sin\s)\s*(?P<value>.*?)\s*", re.S
)
#: What can only be a column's name; anything else that no column is called is an expression.
_NAME = re.compile(r"`[^`]+`|[^\W\d]\w*")
#: A value as a word: in quotes, or without them a time or what has no spaces, quotes and brackets.
_WORD = re.compile(r"""'[^'\\]*'|"[^"\\]*"|\d{4}-\d\d-\d\d \d\d:\S+|[^\s'"()`<>=!][^\s'"()`]*""")
#: File slices that are read at once, by threads.
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Question:
    """Which rows of a table are asked for.

    columns     in the order wanted; None: all, without meta columns unless `meta`
    filters     conditions, as text; of all of them
    partitions  None: all
    begin, end  of changes; begin None: a snapshot
    cdc         each change of each row is, with the row before and after; columns and filters are over its own columns
    limit       None: all rows
    """

    columns: tuple[str, ...] | None = None
    filters: tuple[str, ...] = ()
    meta: bool = False
    limit: int | None = None
    partitions: tuple[str, ...] | None = None
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None
    cdc: bool = False

    @classmethod
    def of(cls, option_values: Mapping[str, Any], **more: Any) -> Question:
        """option_values  of a command: columns as one text. Raises InvalidInput on one that names none"""
        columns = option_values.get("columns")
        names = None if columns is None else tuple(name.strip() for name in columns.split(",") if name.strip())
        if names == ():
            raise InvalidInput(f"--columns {columns!r} names no column; without it all are read")
        return cls(**{**option_values, "columns": names, **more})


def plan_question(state: TableState, question: Question, settings: ReadSettings) -> ScanPlan:
    """The read that answers a question. Raises InvalidInput; as `plan_read`"""
    declared = declared_schema(state, question.as_of)
    schema = plan_read(state, Read(), settings).schema if declared is None else with_meta_fields(declared)
    columns = question.columns
    if columns is None and not question.meta:
        columns = tuple(name for name in schema.names if name not in META_COLUMNS)
    read = Read(
        kind=ScanKind.SNAPSHOT if question.begin is None else ScanKind.CHANGES,
        columns=columns,
        partitions=question.partitions,
        filters=filters_of(question.filters, schema),
        as_of=question.as_of,
        begin=question.begin,
        end=question.end,
    )
    scan = plan_read(state, read, settings)
    paths = {path.strip("/") for path in question.partitions or ()}.difference(scan.partitions)
    if missing := sorted(path for path in paths if not state.storage.list(path)):
        warnings.warn(PartitionsNotThere(state.config.name, tuple(missing), "read"), stacklevel=2)
    return scan


def filters_of(texts: Sequence[str], schema: pa.Schema) -> Filters | None:
    """What `--filter` asks for, all of it: conditions in SQL, as in Python. A word without quotes is a text where it
    stands alone beside one column, `city = oslo` or `city in oslo,rome`, and is no column itself.

    returns  tuples where all are such comparisons, which need no parser of SQL; not of floating columns, as NaN is the
             greatest number in SQL and no number in tuples
    Raises   InvalidInput
    """
    if not texts:
        return None
    comparisons = [_comparison(text, schema) for text in texts]
    if all(test is not None and not pa.types.is_floating(schema.field(test[0]).type) for test in comparisons):
        return comparisons
    for text, test in zip(texts, comparisons, strict=True):
        if test is None:
            _check_sql(text, schema)
    return " and ".join(  # a comment of a condition ends with the line
        f"({text if test is None else _as_sql(*test)}\n)" for text, test in zip(texts, comparisons, strict=True)
    )


def _check_sql(text: str, schema: pa.Schema) -> None:
    try:
        read_filter(text, schema)
    except InvalidInput as problem:
        raise InvalidInput(
            f"--filter {text!r}: {sentence(problem)} Texts stand in quotes, as in \"city = 'New York' and fare > 5\""
        ) from problem


def _comparison(text: str, schema: pa.Schema) -> tuple[str, str, Any] | None:
    """A condition such as "fare >= 20", with the value in the column's type; None: it says something else."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        return None
    column, how = str(match["column"]), match["how"].strip()
    words = [part.strip() for part in match["value"].split(",")] if how == "in" else [match["value"]]
    columns = {name.lower(): name for name in schema.names}
    if any(not _WORD.fullmatch(word) or word.lower() in {*columns, "null"} for word in words):
        return None
    is_name = _NAME.fullmatch(column) is not None
    column = column.strip("`")
    column = columns.get(column.lower(), column)
    if column not in schema.names and not is_name:
        return None  # a field of a struct, a function, an operator
    check_columns([column], schema)
    kind = schema.field(column).type
    try:
        values = [_typed(word, kind) for word in words]
    except (pa.ArrowException, UnicodeEncodeError) as problem:
        with suppress(InvalidInput):
            read_filter(text, schema)
            return None  # SQL reads it, such as 1L or ' 7 '
        raise InvalidInput(f"--filter {text!r}: {column} is {kind}: {problem}") from problem
    return column, "!=" if how == "<>" else how, values if how == "in" else values[0]


def _as_sql(column: str, how: str, value: Any) -> str:
    """The comparison as text of SQL."""
    if how == "in":
        return f"`{column}` in ({', '.join(map(_literal, value))})"
    return f"`{column}` {how} {_literal(value)}"


def _literal(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, (bool, int)):
        return str(value).lower()
    if isinstance(value, float):
        return f"cast('{value!r}' as double)"
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def _typed(text: str, kind: pa.DataType) -> Any:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    if pa.types.is_timestamp(kind) and re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        text += " 00:00:00"  # with a zone behind it Arrow reads no date
    if pa.types.is_timestamp(kind) and kind.tz and not re.search(r"(Z|[+-]\d\d:?\d\d)$", text):
        text += "Z"
    try:
        return pa.scalar(text).cast(kind).as_py()
    except pa.ArrowException:
        if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            with suppress(InvalidOperation):
                if (number := Decimal(text)).is_finite():
                    return number  # one that the column cannot hold, such as 1.5 beside whole ones
        raise


def row_batches(scan: ScanPlan, limit: int | None = None) -> Iterator[pa.Table]:
    """The rows of a scan, some file slices at a time; at least one table, possibly without rows."""
    remaining_limit, step = limit, _AT_ONCE if limit is None else 1  # of a few rows the first slice has enough, mostly
    yield read_scan(replace(scan, slices=()))
    for begin in range(0, len(scan.slices), step):
        if remaining_limit == 0:
            return
        part = scan.slices[begin : begin + step]
        rows = read_scan(replace(scan, slices=part))
        if remaining_limit is not None:
            rows = rows.slice(0, remaining_limit)
            remaining_limit -= len(rows)
        yield rows


def answers(state: TableState, question: Question, settings: ReadSettings, limit: int | None) -> Iterator[pa.Table]:
    """The rows that a question asks for; at least one table, possibly without rows. Raises as `plan`"""
    if question.cdc:
        return _change_data(state, question, settings, limit)
    return row_batches(plan_question(state, question, settings), limit)


def _change_data(
    state: TableState, question: Question, settings: ReadSettings, limit: int | None
) -> Iterator[pa.Table]:
    assert question.begin is not None
    changes = plan_change_data(state, question.begin, question.end, settings)
    filters = filters_of(question.filters, changes.reader.schema)
    selected = select_changes(changes.reader.schema, question.columns, filters)
    yield selected.schema.empty_table()
    remaining_limit = limit
    for batch in selected.of(change_data_batches(changes)):
        rows = pa.Table.from_batches([batch]).slice(0, remaining_limit)
        if remaining_limit is not None:
            remaining_limit -= len(rows)
        yield rows
        if remaining_limit == 0:
            return


def row_values(
    storage: Storage, question: Question, options: Options
) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...], bool]:
    """The names of the columns, the rows as values for JSON, and whether there are more."""
    limit = None if question.limit is None else question.limit + 1
    rows = pa.concat_tables(answers(load_state(storage), question, ReadSettings.read(options), limit))
    more = question.limit is not None and len(rows) > question.limit
    rows = rows.slice(0, question.limit) if more else rows
    columns = [python_values(column) for column in rows.columns]
    return tuple(rows.column_names), tuple(tuple(map(json_value, row)) for row in zip(*columns, strict=True)), more


def rows_text(answer: Any) -> Sequence[Block]:
    """answer  `hoodie.cli.read.Rows`"""
    if not answer.rows:
        return [f"no rows ({', '.join(answer.columns)})"]
    cells = [[json.dumps(value) if isinstance(value, list | dict) else value for value in row] for row in answer.rows]
    more = [f"the first {len(cells)} rows: --limit N shows more"] if answer.more else []
    return [Grid(answer.columns, cells), *more]


def write_answer(
    storage: Storage, question: Question, options: Options, form: str, file: str | None, stdout: Callable[[], BinaryIO]
) -> int:
    """Write rows to a file, or to the standard output. Returns their number. Raises as a read; InvalidInput"""
    rows = answers(load_state(storage), question, ReadSettings.read(options), question.limit)
    first = next(rows)  # what cannot be read leaves no file
    with output_file(file) if file else nullcontext(stdout()) as sink:
        return write_tables(chain([first], rows), form, sink)


def write_tables(tables: Iterator[pa.Table], form: str, sink: Any) -> int:
    """Write tables, at least one, into an open file. form: csv, json or parquet. Returns the number of rows"""
    first = next(tables)
    count = 0
    if form == "json":
        for table in tables:
            count += len(table)
            for values in zip(*map(python_values, table.columns), strict=True):
                row = dict(zip(table.column_names, values, strict=True))
                sink.write(json.dumps(json_value(row), ensure_ascii=False).encode() + b"\n")
        return count
    if form == "csv":
        nested = [field.name for field in first.schema if pa.types.is_nested(field.type)]
        if nested:
            raise InvalidInput(f"CSV has no form for nested columns ({', '.join(nested)}): leave them out by --columns")
        first, tables = _with_text_of_bytes(first), map(_with_text_of_bytes, tables)
        writer = pyarrow.csv.CSVWriter(sink, first.schema)
    else:
        writer = pq.ParquetWriter(sink, first.schema)
    with writer:
        for table in tables:
            count += len(table)
            writer.write_table(table)
    return count


def _with_text_of_bytes(table: pa.Table) -> pa.Table:
    """The table with bytes as base64, as JSON has them: Arrow's CSV takes no bytes but those of UTF-8."""
    for position, field in enumerate(table.schema):
        if pa.types.is_binary(field.type) or pa.types.is_fixed_size_binary(field.type):
            texts = pa.array(map(json_value, table.column(position).to_pylist()), pa.string())
            table = table.set_column(position, field.with_type(pa.string()), texts)
    return table
