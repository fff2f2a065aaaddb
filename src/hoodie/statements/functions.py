"""Hudi's table functions in a query: `hudi_query`, `hudi_table_changes`, `hudi_query_timeline`, `hudi_filesystem_view`
and `hudi_metadata`.

Source: docs/format/cdc.md 6; of the last three Hudi 1.1, whose columns they have (tests/vectors/sql_statements.json).
"""

import fnmatch
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from hoodie.api.table import HoodieTable
from hoodie.config.read import IncrementalFormat
from hoodie.errors import StatementError
from hoodie.expressions.parser import TokenType
from hoodie.model.commit import CommitMetadata
from hoodie.model.instant import Instant
from hoodie.spark.names import NamedTable, named_table
from hoodie.spark.types import local_frame, to_spark
from hoodie.statements.cutting import Name, Text
from hoodie.statements.metadata_records import metadata_records
from hoodie.statements.procedures.history import counts_of
from hoodie.table.state import load_state

#: The words that a statement has which calls one.
PREFIX = "hudi_"
_TIMELINE = (
    "Timestamp string, Action string, State string, Completion_Time string, File_Name string, "
    "Total_Bytes_Written long, Total_Files_Updated long, Total_Partitions_Written long, Total_Records_Written long, "
    "Total_Updated_Records_Written long, Total_Write_Errors long"
)
_SLICES = (
    "File_ID string, Partition_Path string, Base_Instant_Time string, Base_File_Path string, Base_File_Size long, "
    "Log_File_Count long, Log_File_Size long"
)


@dataclass(frozen=True, slots=True)
class _Function:
    """form   of a call, for errors
    least  arguments behind the table
    words  that the first of them may be; (): any
    """

    form: str
    least: int
    most: int
    words: tuple[str, ...]
    rows: Callable[[SparkSession, HoodieTable[DataFrame], list[str]], DataFrame]


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function, and where it stands in the statement.

    table      a name, or the path of a table
    arguments  behind the table
    """

    start: int
    stop: int
    name: str
    table: str
    arguments: list[str]


def function_calls(text: Text) -> Iterator[FunctionCall]:
    """The calls in a query. Raises StatementError, with the position, on arguments that are no such literals"""
    for at in range(len(text.tokens) - 1):
        name = text.word(at).lower()
        if name not in FUNCTIONS or text.word(at + 1) != "(":
            continue
        inner, closes = text.inside(at + 1)
        function = FUNCTIONS[name]
        literals = [_literal(item, function.form) for item in inner.split()]
        if not function.least <= len(literals) - 1 <= function.most:
            raise text.unreadable(f"expected {function.form}", at)
        table, *arguments = literals
        if arguments and function.words:
            word, *others = arguments
            if word.lower() not in function.words:
                raise text.unreadable(f"expected {function.form}, not {word!r}", at)
            arguments = [word.lower(), *others]
        start, stop = text.tokens[at].start, text.tokens[closes].end + 1
        yield FunctionCall(start, stop, name, table, arguments)


def _literal(item: Text, form: str) -> str:
    if len(item.tokens) != 1 or item.tokens[0].token_type not in (
        TokenType.STRING,
        TokenType.NUMBER,
        TokenType.TRUE,
        TokenType.FALSE,
    ):
        raise item.unreadable(f"expected {form}")
    return item.tokens[0].text


def function_table(session: SparkSession, call: FunctionCall) -> tuple[Name, NamedTable]:
    """The table that a call names. Raises StatementError when no table of ours has the name"""
    parts = ("hudi", call.table) if "/" in call.table else tuple(call.table.replace("`", "").split("."))
    table = named_table(session, parts)
    if table is None:
        raise StatementError(f"{call.name}: no table of Hudi has the name {call.table!r}")
    return Name(parts, parts[-1]), table


def function_rows(session: SparkSession, call: FunctionCall, table: HoodieTable[DataFrame]) -> DataFrame:
    """The rows of a call, of its table. Raises as `HoodieTable.changes`"""
    return FUNCTIONS[call.name].rows(session, table, call.arguments)


def _changes(session: SparkSession, table: HoodieTable[DataFrame], arguments: list[str]) -> DataFrame:
    form, begin, *end = arguments
    return table.changes(begin, end[0] if end else None, cdc=form == IncrementalFormat.CDC)


def _query(session: SparkSession, table: HoodieTable[DataFrame], arguments: list[str]) -> DataFrame:
    return table.snapshot(optimized=arguments[0] == "read_optimized")


def _timeline(session: SparkSession, table: HoodieTable[DataFrame], arguments: list[str]) -> DataFrame:
    archived = [word.lower() for word in arguments] == ["true"]
    rows = [_instant(instant, commit) for instant, commit in table.history(archived=archived)]
    return session.createDataFrame(sorted(rows), _TIMELINE)


def _instant(instant: Instant, commit: CommitMetadata) -> tuple[object, ...]:
    written, _, *counts = counts_of(commit)  # Hudi's function does not say how many files are new
    return (
        instant.requested,
        instant.action.value,
        instant.state.name,
        instant.completed or None,
        f"{'_'.join(filter(None, (instant.requested, instant.completed)))}.{instant.action.value}",
        written,
        *counts,
    )


def _slices(session: SparkSession, table: HoodieTable[DataFrame], arguments: list[str]) -> DataFrame:
    pattern = arguments[0] if arguments else "*"
    rows = [
        (
            part.group.file_id,
            part.group.partition,
            part.base_instant,
            None if part.base is None else f"{table.path.rstrip('/')}/{part.base.path}",
            0 if part.base is None else part.base.size,
            len(part.logs),
            part.log_bytes,
        )
        for part in table.file_slices()
        if fnmatch.fnmatchcase(part.group.partition, pattern)
    ]
    return session.createDataFrame(rows, _SLICES)


def _metadata(session: SparkSession, table: HoodieTable[DataFrame], arguments: list[str]) -> DataFrame:
    rows = metadata_records(load_state(table.storage))
    return local_frame(session, rows, to_spark(rows.schema))


FUNCTIONS: Mapping[str, _Function] = {
    "hudi_metadata": _Function("hudi_metadata('table or path')", 0, 0, (), _metadata),
    "hudi_query": _Function(
        "hudi_query('table or path', 'snapshot' or 'read_optimized')", 1, 1, ("snapshot", "read_optimized"), _query
    ),
    "hudi_table_changes": _Function(
        "hudi_table_changes('table or path', 'cdc' or 'latest_state', begin[, end])",
        2,
        3,
        tuple(IncrementalFormat),
        _changes,
    ),
    "hudi_query_timeline": _Function(
        "hudi_query_timeline('table or path'[, 'true' to have archived commits, too])",
        0,
        1,
        ("true", "false"),
        _timeline,
    ),
    "hudi_filesystem_view": _Function(
        "hudi_filesystem_view('table or path'[, 'pattern of partition paths'])", 0, 1, (), _slices
    ),
}
