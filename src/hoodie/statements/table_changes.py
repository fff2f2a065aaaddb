"""`hudi_table_changes('table or path', 'cdc' | 'latest_state', begin[, end])` in a query: Hudi's function of changes.

Source: docs/format/cdc.md 6
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from sqlglot.tokenizer_core import TokenType

from hoodie.api.table import open_table
from hoodie.config.read import IncrementalFormat
from hoodie.errors import StatementError
from hoodie.spark.names import named_table
from hoodie.statements.cutting import Text

FUNCTION = "hudi_table_changes"

_FORM = f"expected {FUNCTION}('table or path', 'cdc' or 'latest_state', begin[, end])"


@dataclass(frozen=True, slots=True)
class ChangesCall:
    """A call of the function, and where it stands in the statement.

    table       a name, or the path of a table
    begin, end  as of `HoodieTable.changes`
    """

    start: int
    stop: int
    table: str
    cdc: bool
    begin: str
    end: str | None


def changes_calls(text: Text) -> Iterator[ChangesCall]:
    """The calls in a query. Raises StatementError, with the position, on arguments that are no such literals"""
    for at in range(len(text.tokens) - 1):
        if text.word(at).lower() != FUNCTION or text.word(at + 1) != "(":
            continue
        inner, closes = text.inside(at + 1)
        given = [_literal(item) for item in inner.split()]
        if not 3 <= len(given) <= 4:
            raise text.unreadable(_FORM, at)
        table, form, begin, *end = given
        if form not in tuple(IncrementalFormat):
            raise text.unreadable(f"{_FORM}, not {form!r}", at)
        cdc = form == IncrementalFormat.CDC
        start, stop = text.tokens[at].start, text.tokens[closes].end + 1
        yield ChangesCall(start, stop, table, cdc, begin, end[0] if end else None)


def _literal(item: Text) -> str:
    if len(item.tokens) != 1 or item.tokens[0].token_type not in (TokenType.STRING, TokenType.NUMBER):
        raise item.unreadable(_FORM)
    return item.tokens[0].text


def changes_frame(session: SparkSession, call: ChangesCall) -> DataFrame:
    """The rows of a call. Raises StatementError when no table of ours has the name; as `HoodieTable.changes`"""
    parts = ("hudi", call.table) if "/" in call.table else tuple(call.table.replace("`", "").split("."))
    found = named_table(session, parts)
    if found is None:
        raise StatementError(f"{FUNCTION}: no table of Hudi has the name {call.table!r}")
    return open_table(found.path, spark=session).changes(call.begin, call.end, cdc=call.cdc)
