"""Columns that a statement qualifies by the database of their table: `db.table.column`. A frame has one name alone."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from hoodie.expressions.parser import exp
from hoodie.expressions.text import tick
from hoodie.spark.catalog import SESSION_CATALOG
from hoodie.spark.names import qualified
from hoodie.statements.cutting import Name, Span, Text
from hoodie.statements.dml_text import Dml, Insert, Merge, dml


def databases_of_columns(tree: exp.Expr, shown: Mapping[tuple[str, ...], str]) -> Iterator[Span]:
    """The places of `db.table.` in `db.table.column`, with what names the table there.

    tree   of the statement; its places are those of the spans
    shown  tables that stand in it without an alias, as database and name in lower case, and the names of their frames
    """
    names = {
        (*before, *table): frame
        for table, frame in shown.items()
        if len(table) > 1
        for before in ((), (SESSION_CATALOG,))
    }
    for column in tree.find_all(exp.Column):
        parts = column.parts
        lower = tuple(part.name.lower() for part in parts)
        for name, frame in names.items():
            if len(name) < len(lower) and lower[: len(name)] == name:
                yield parts[0].meta["start"], parts[len(name)].meta["start"], f"{tick(frame)}."


def without_databases(session: SparkSession, statement: Text, tree: exp.Expr, change: Dml) -> Dml:
    """The change, its columns named by table alone; the two tables of a merge that differ in their databases only, by
    names of their own.

    tree  of the statement's text
    """
    if isinstance(change, Insert):
        return change
    tables = [change.table]
    if isinstance(change, Merge) and (source := _source_table(change)) is not None:
        tables.append(source)
    shown = {_key(session, table): table.parts[-1] for table in tables if table.alias == table.parts[-1]}
    if alike := len({name.lower() for name in shown.values()}) < len(shown):
        shown = {key: "_".join(key) for key in shown}
    spans = list(databases_of_columns(tree, shown))
    if not spans:
        return change
    named = dml(Text.of(Text.of(str(statement)).with_spans(spans)))
    assert named is not None
    assert not isinstance(named, Insert)
    if alike and isinstance(named, Merge):
        target, source_name = (shown[_key(session, table)] for table in tables)
        return replace(named, table=Name(named.table.parts, target), source_name=source_name)
    return named


def _source_table(merge: Merge) -> Name | None:
    """None: the source is a query."""
    source = Text.of(merge.source)
    return None if source.word(0) == "(" else source.table()


def _key(session: SparkSession, table: Name) -> tuple[str, ...]:
    return tuple(part.lower() for part in qualified(session, table.parts))
