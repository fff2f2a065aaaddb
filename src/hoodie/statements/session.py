"""Statements on the session rather than on a table: EXPLAIN, CACHE, UNCACHE, REFRESH, SHOW TABLES."""

import fnmatch
from collections.abc import Mapping

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from hoodie.expressions.text import tick
from hoodie.spark.names import qualified, registered_names
from hoodie.spark.own_sql import spark_sql
from hoodie.statements import cached_tables
from hoodie.statements.cutting import Name, Text, rest_of
from hoodie.statements.dml_text import dml
from hoodie.statements.rows import empty_result, opened, require_grammar, table_rows, with_tables

COMMANDS = ("CACHE", "UNCACHE", "CLEAR", "REFRESH", "SHOW")
_EXPLAINS = ("EXTENDED", "CODEGEN", "COST", "FORMATTED")
_LEVEL = "storageLevel"


def explain_statement(session: SparkSession, text: Text, named: Mapping[str, DataFrame]) -> DataFrame | None:
    """EXPLAIN of a statement that reads tables of ours; None: it does not.

    Raises StatementError on a statement that writes to one
    """
    rest = rest_of(text)
    how = rest.word(0) if rest.word(0) in _EXPLAINS else ""
    statement = rest.after(0) if how else rest
    change = dml(statement) if statement.word(0) in ("MERGE", "UPDATE", "DELETE", "INSERT") else None
    if change is not None and opened(session, change.table) is not None:
        raise text.unreadable("Spark has no plan of a write to a table of Hudi: table.explain_upsert(df) shows one")
    return with_tables(session, str(statement), named, before=f"EXPLAIN {how} ")


def run_command(session: SparkSession, text: Text, named: Mapping[str, DataFrame]) -> DataFrame | None:
    """Carry one of COMMANDS out, if it is about tables of ours; None: it is Spark's."""
    match text.word(0):
        case "SHOW":
            rest = rest_of(text)
            return _show_tables(session, text, rest) if rest.word(0) == "TABLES" else None
        case "CLEAR":
            cached_tables.drop_all(session)
            return None
        case "CACHE":
            return _cache(session, text, named)
        case "UNCACHE" | "REFRESH":
            at = 1 + (text.word(1) == "TABLE")
            at += 2 * (text.words(at + 2)[at:] == ("IF", "EXISTS"))
            if at >= len(text.tokens):
                return None
            parts, _ = text.name(at)
            table = opened(session, Name(parts, parts[-1]))
            if table is None:
                return None
            require_grammar(session, text)
            if text.word(0) == "UNCACHE":
                cached_tables.drop(session, table)
            return empty_result(session)
    return None


def _cache(session: SparkSession, text: Text, named: Mapping[str, DataFrame]) -> DataFrame | None:
    lazy = text.word(1) == "LAZY"
    if text.word(1 + lazy) != "TABLE":
        return None
    parts, at = text.name(2 + lazy)
    level = StorageLevel.MEMORY_AND_DISK_DESER
    if text.words(at + 2)[at:] == ("OPTIONS", "("):
        inner, closes = text.inside(at + 1)
        level, at = _level(inner), closes + 1
    if at >= len(text.tokens):
        table = opened(session, Name(parts, parts[-1]))
        if table is None:
            return None
        frame = cached_tables.keep(session, table, level)
    else:
        query = text.after(at) if text.word(at) == "AS" else text.part(text.tokens[at].start, text.end)
        rows = with_tables(session, str(query), named)
        if rows is None:
            return None
        rows.createTempView(tick(parts[-1]))
        session.catalog.cacheTable(tick(parts[-1]), level)
        frame = rows
    if not lazy:
        frame.count()
    return empty_result(session)


def _level(options: Text) -> StorageLevel:
    words = [token.text for token in options.tokens if token.text != "="]
    if len(words) != 2 or words[0].lower() != _LEVEL.lower() or not hasattr(StorageLevel, words[1].upper()):
        raise options.unreadable(f"expected OPTIONS ('{_LEVEL}' 'MEMORY_ONLY'), or another of Spark's storage levels")
    level: StorageLevel = getattr(StorageLevel, words[1].upper())
    return level


def _show_tables(session: SparkSession, text: Text, rest: Text) -> DataFrame | None:
    """The tables that Spark has, and the names of the registry; None: that has none of the database."""
    at, database = 1, ""
    if rest.word(at) in ("IN", "FROM"):
        parts, at = rest.name(at + 1)
        database = parts[-1]
    else:
        database = (qualified(session, ("",)) or ("",))[0]
    at += rest.word(at) == "LIKE"
    pattern = rest.tokens[at].text if at < len(rest.tokens) else "*"
    names = [name for name in registered_names(session, database) if fits(name, pattern)]
    if not names:
        return None
    of_spark = spark_sql(session, str(text)).collect()
    rows = [(row["namespace"], row["tableName"], row["isTemporary"]) for row in of_spark]
    spark_names = {name.lower() for _, name, temporary in rows if not temporary}
    rows += [(database, name, False) for name in names if name not in spark_names]
    return table_rows(session, rows, "namespace string, tableName string, isTemporary boolean")


def fits(name: str, pattern: str) -> bool:
    """Whether a name is one of Spark's pattern: `*` for any text, `|` for or."""
    return any(fnmatch.fnmatchcase(name, part.strip().lower()) for part in pattern.split("|"))
