"""The names in a statement that may be tables, read from its tokens alone: what a foreign statement costs.

More names than tables are told, such as those of a WITH; none that stands where a table does is left out.
"""

from collections.abc import Iterator

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hoodie.errors import StatementError
from hoodie.spark.names import NamedTable, named_table
from hoodie.spark.own_sql import note_foreign, seen_as_foreign
from hoodie.statements.cutting import Text
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
