"""The names in a statement: tables, and columns that are qualified by the database of their table.

Tables are read from the tokens alone: what a foreign statement costs. More names than tables are told, such as those of
a WITH; none that stands where a table does is left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hoodie.errors import StatementError
from hoodie.expressions.parser import exp
from hoodie.expressions.text import tick
from hoodie.spark.catalog import SESSION_CATALOG
from hoodie.spark.names import NamedTable, named_table, qualified
from hoodie.spark.own_sql import note_foreign, seen_as_foreign
from hoodie.statements.cutting import Name, Span, Text
from hoodie.statements.dml_text import Dml, Insert, Merge, dml
from hoodie.statements.functions import FUNCTIONS, PREFIX

#: A table's name follows these.
_BEFORE_TABLE = frozenset(
    {"FROM", "JOIN", "INTO", "OVERWRITE", "TABLE", "UPDATE", "USING", "DESCRIBE", "DESC", "COLUMNS", "IN", "PARTITIONS"}
    | {"TBLPROPERTIES", "VIEW", "EXTENDED", "FORMATTED", "REFRESH"}
)
#: These may stand between such a word and the name.
_SKIPPED = frozenset({"IF", "NOT", "EXISTS", "TABLE", "ONLY", "LATERAL", "EXTENDED", "FORMATTED"})
#: Where a list of tables in FROM ends.
_ENDS_FROM = frozenset(
    {"WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "EXCEPT", "MINUS", "INTERSECT", "SELECT", "WINDOW", "SET"}
    | {"CLUSTER", "DISTRIBUTE", "SORT", "WHEN", "VALUES", "QUALIFY", "OFFSET"}
)
_NO_NAMES = frozenset({"SELECT", "WITH", "VALUES", "DIRECTORY", "LOCAL"})


def table_names(text: Text) -> Iterator[tuple[str, ...]]:
    """The names, in their order."""
    if text.words(3) == ("COMMENT", "ON", "COLUMN"):
        yield from tables_of_column(text.name(3)[0])
        return
    in_from: set[int] = set()
    for at in range(len(text.tokens)):
        word, depth = text.word(at), text.depths[at]
        if word.partition(" ")[0] in _ENDS_FROM:  # ORDER BY is one token
            in_from.discard(depth)
        if word == "FROM":
            in_from.add(depth)
        if word in _BEFORE_TABLE or (word == "," and depth in in_from):
            start = at + 1
            while text.word(start) in _SKIPPED:
                start += 1
            if text.word(start) in _NO_NAMES or text.word(start)[:1].isdigit():
                continue
            try:
                parts, _ = text.name(start)
            except StatementError:  # a bracket, or a literal
                continue
            yield parts


def tables_of_column(parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The names of a table that a column's name may begin with, longest first: of a.b.c a.b and a."""
    return (parts[:end] for end in range(len(parts) - 1, 0, -1))


def may_be_ours(session: SparkSession, text: Text) -> bool:
    """Whether a statement may be about tables of ours. Names that are not are looked up in the catalog once a minute.

    Raises as `named_table`
    """
    lower = text.whole.lower()
    if PREFIX in lower and any(function in lower for function in FUNCTIONS):
        return True
    return any(table_if_ours(session, parts) is not None for parts in dict.fromkeys(table_names(text)))


def table_if_ours(session: SparkSession, parts: tuple[str, ...]) -> NamedTable | None:
    """`named_table`, which is not asked anew for a name that was another format's a moment ago."""
    if seen_as_foreign(session, parts):
        return None
    try:
        table = named_table(session, parts)
    except PySparkException:  # a catalog that does not let itself be asked: what is wrong, Spark says on the statement
        table = None
    if table is None:
        note_foreign(session, parts)
    return table


def databases_of_columns(tree: exp.Expr, shown: Mapping[tuple[str, ...], str]) -> Iterator[Span]:
    """The places of `db.table.` in `db.table.column`, with what names the table there: a frame has one name alone.

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
