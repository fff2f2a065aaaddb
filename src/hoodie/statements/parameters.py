"""What `spark.sql(text, args, **frames)` puts into a statement: literals for `:name` and `?`, frames for `{name}`."""

import datetime
import decimal
import importlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hoodie.errors import StatementError
from hoodie.expressions.parser import TokenType
from hoodie.spark.entries import sql_text
from hoodie.statements.cutting import Span, Text

Arguments = Mapping[str, Any] | list[Any] | None


def with_literals(text: Text, args: Arguments) -> Text:
    """The statement with the values of its parameters in it. What it does not name stays out.

    Raises StatementError on a parameter without a value, and on a value that is no literal
    """
    if not args:
        return text
    spans: list[Span] = []
    place = 0
    for index, token in enumerate(text.tokens):
        if spans and token.start < spans[-1][1]:
            continue
        if isinstance(args, list):
            if token.token_type is not TokenType.PLACEHOLDER:
                continue
            if place >= len(args):
                raise text.unreadable(f"there are {len(args)} values for the parameters", index)
            value, end, place = args[place], token.end + 1, place + 1
        else:
            name = _parameter_name(text, index)
            if name is None or name not in args:
                continue
            value, end = args[name], text.tokens[index + 1].end + 1
        spans.append((token.start, end, sql_literal(value)))
    return Text.of(text.with_spans(spans))


def _parameter_name(text: Text, index: int) -> str | None:
    """The name of the parameter that begins at a token; None: none does. `column:field` is a part of a value."""
    token = text.tokens[index]
    if token.token_type is not TokenType.COLON or index + 1 >= len(text.tokens):
        return None
    before = text.tokens[index - 1] if index else None
    follows_value = (
        before is not None
        and before.end + 1 == token.start
        and (before.text.replace("_", "a").isalnum() or before.text in (")", "]"))
    )
    follows = text.tokens[index + 1]
    return None if follows_value or follows.start != token.end + 1 else follows.text


def sql_literal(value: object) -> str:
    """A value as SQL has it. Raises StatementError on one that has no literal"""
    for kind, written in _WRITTEN.items():
        if isinstance(value, kind):
            return written(value)
    raise StatementError(
        f"a statement on a table of Hudi takes numbers, text, times, lists and dicts as parameters, not "
        f"{type(value).__name__}: write the expression into the statement"
    )


def _moment(value: datetime.datetime) -> str:
    """A time without a zone is one of this process's zone, as PySpark has it."""
    return f"TIMESTAMP '{value.astimezone(datetime.UTC).isoformat(sep=' ')}'"


def _array(value: list[Any] | tuple[Any, ...]) -> str:
    return f"array({', '.join(map(sql_literal, value))})"


#: The first kind that fits counts.
_WRITTEN: Mapping[type, Callable[[Any], str]] = {
    type(None): lambda value: "NULL",
    bool: lambda value: str(value).upper(),
    int: lambda value: str(value) if -(2**31) <= value < 2**31 else f"{value}L",
    float: lambda value: f"{value!r}D" if math.isfinite(value) else f"double('{value}')",
    decimal.Decimal: lambda value: f"{value:f}BD",
    str: sql_text,
    datetime.datetime: _moment,
    datetime.date: lambda value: f"DATE '{value.isoformat()}'",
    datetime.timedelta: lambda value: f"INTERVAL '{value.total_seconds():f}' SECOND",
    bytes: lambda value: f"X'{value.hex()}'",
    bytearray: lambda value: f"X'{value.hex()}'",
    list: _array,
    tuple: _array,
    dict: lambda value: f"map({', '.join(sql_literal(item) for pair in value.items() for item in pair)})",
}


@contextmanager
def with_frames(
    session: SparkSession, text: str, frames: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, DataFrame]]]:
    """The text with a name for each `{frame}` in it, and with other values as PySpark writes them; and the frames by
    these names, which are temporary views in the block."""
    if not frames:
        yield text, {}
        return
    package = type(session).__module__.rpartition(".")[0]
    formatter = importlib.import_module(f"{package}.sql_formatter").SQLStringFormatter(session)
    formatted_text = formatter.format(text, **frames)
    named = {name: frame for frame, name in formatter._temp_views}
    for name, frame in named.items():
        frame.createOrReplaceTempView(name)
    try:
        yield formatted_text, named
    finally:
        for name in named:
            session.catalog.dropTempView(name)
