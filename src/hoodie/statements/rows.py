"""Results of statements as frames, and what a statement sees of the session: names, views of tables."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from hoodie.api.datasource_read import read_of
from hoodie.api.table import HoodieTable, open_table
from hoodie.config.datasource import check_options, overridden, version_options, write_options
from hoodie.config.hudi_options import Purpose
from hoodie.config.options import Options
from hoodie.config.read import QueryOptions
from hoodie.errors import InvalidOption, StatementError, TableNotFound
from hoodie.expressions.parser import SqlglotError, exp, parse
from hoodie.expressions.text import tick
from hoodie.reading.scan import ScanKind
from hoodie.spark.names import PREFIX, NamedTable, qualified
from hoodie.spark.own_sql import spark_sql
from hoodie.spark.table_views import TableView, view_named
from hoodie.statements.cached_tables import snapshot_of
from hoodie.statements.cutting import Name, Text
from hoodie.statements.functions import PREFIX as FUNCTION_PREFIX
from hoodie.statements.functions import function_calls, function_rows, function_table
from hoodie.statements.moments import moment_behind
from hoodie.statements.names import databases_of_columns, table_if_ours
from hoodie.table.settings import Settings
from hoodie.writing.result import WriteResult

COUNTS = (
    "num_affected_rows long, num_updated_rows long, num_deleted_rows long, num_inserted_rows long, "
    "num_copied_rows long, instant string"
)


#: Statements whose first table is not read.
_WRITES = (exp.Insert, exp.Create, exp.Merge, exp.Update, exp.Delete)
_BEFORE_QUERY = frozenset({"(", "UNION", "ALL", "DISTINCT", "EXCEPT", "MINUS", "INTERSECT", "AS"})
_OPTIONS_OF_TABLE = frozenset({"(", "IF"})


def counts_frame(session: SparkSession, result: WriteResult) -> DataFrame:
    """One row: what a write did."""
    changed = result.updated + result.deleted + result.inserted
    row = (changed, result.updated, result.deleted, result.inserted, result.copied, result.instant)
    return session.createDataFrame([row], COUNTS)


def empty_result(session: SparkSession) -> DataFrame:
    """What a statement without a result gives, as Spark's own do."""
    return session.createDataFrame([], "result string").select()


def require_grammar(session: SparkSession, text: Text) -> None:
    """Raises StatementError on a statement that Spark's grammar does not have, such as one with words behind its end:
    nothing that changes or drops a table is done by what could be read of a statement."""
    try:
        spark_sql(session, f"EXPLAIN\n{text.whole}")  # which tells what it finds of names, and fails on grammar alone
    except ParseException as problem:
        message, _, rest = str(problem).strip().split("\n")[0].partition(" SQLSTATE")
        line, column = map(int, (re.findall(r"line (\d+), pos (\d+)", rest) or [(2, 0)])[0])
        at = sum(len(before) + 1 for before in text.whole.split("\n")[: line - 2]) + column
        index = next((i for i, token in enumerate(text.tokens) if token.start >= at), len(text.tokens))
        raise text.unreadable(message.partition("] ")[2] or message, index) from problem


def table_rows(session: SparkSession, rows: Sequence[Sequence[Any]], schema: str) -> DataFrame:
    return session.createDataFrame([tuple(row) for row in rows], schema)


def session_options(session: SparkSession, purpose: Purpose = Purpose.WRITE, *, creating: bool = False) -> Options:
    """What `SET hoodie.… = …` has told the session: options of its statements; what a table is, its properties say.
    Below them those that spark-defaults.conf can hold, `spark.hoodie.…`.

    creating  with the version of the format that a new table gets
    Raises InvalidOption as `check_options`
    """
    everything = session.conf.getAll
    names = [key for key in everything if key.startswith("spark.hoodie.") and not key.startswith(PREFIX)]
    settings = {key.removeprefix("spark."): everything[key] for key in names}
    settings |= {key: value for key, value in everything.items() if key.startswith("hoodie.")}
    try:
        checked = check_options(settings, purpose)
        return overridden(write_options(checked), version_options(checked) if creating else {})
    except InvalidOption as problem:
        raise InvalidOption(f"{problem} (A setting of the session: RESET removes it.)") from problem


def opened(session: SparkSession, name: Name) -> HoodieTable[DataFrame] | None:
    """The table of ours that a statement names, with the session's settings; None: it is Spark's, or nobody's.

    Raises TableNotFound when the name is registered, or a path, and no table is there; StatementError on an entry of
           the newest base files alone, which is not written by
    """
    table = table_if_ours(session, name.parts)
    if table is None:
        return None
    if table.read_optimized:
        raise StatementError(
            f"{name} is an entry for queries of the newest base files alone: the statement takes the table's other name"
        )
    return open_named(session, name, table, session_options(session))


def opened_view(session: SparkSession, name: Name) -> tuple[TableView, HoodieTable[DataFrame]] | None:
    """The temporary view that a statement names, and the table of which it shows all rows; None: it shows no table.

    Raises TableNotFound when the table is gone
    """
    view = view_named(session, name.parts)
    if view is None:
        return None
    return view, open_table(view.path, spark=session, storage_options=view.driver, options=session_options(session))


def open_named(session: SparkSession, name: Name, table: NamedTable, options: Options) -> HoodieTable[DataFrame]:
    """The table that a name stands for. What its entry says as `hoodie.*` lies below the options.

    Raises as `open_table`; StatementError when the name's entry has none
    """
    try:
        return open_table(table.path, spark=session, options=with_entrys(name, table, options))
    except TableNotFound as missing:
        if not table.entry:
            raise
        raise without_table(name, table.path) from missing


def with_entrys(name: Name | str, table: NamedTable, options: Options) -> Options:
    """The options, and those of the table's entry that they do not have. Raises InvalidOption as `check_options`"""
    entry_options = {key: value for key, value in table.options.items() if key not in options}
    if not entry_options:
        return options
    try:
        own = write_options(check_options(entry_options))
        Settings.read(own)
        return overridden(own, options)
    except InvalidOption as problem:
        advice = f"(A property of the entry of {name}: ALTER TABLE … UNSET TBLPROPERTIES removes it.)"
        raise InvalidOption(f"{problem} {advice}") from problem


def without_table(name: Name, path: str) -> StatementError:
    """The error of an entry whose table is not there."""
    return StatementError(
        f"{name} is an entry of the session's catalog for a table of Hudi at {path}, where there is none. A CREATE "
        f"TABLE … USING hudi that Spark itself carried out leaves such an entry: DROP TABLE {name} removes it, then "
        "create the table again; one that has moved gets its entry by CREATE TABLE … LOCATION"
    )


def with_tables(
    session: SparkSession, text: str, named: Mapping[str, DataFrame] | None = None, *, before: str = ""
) -> DataFrame | None:
    """The rows of a query on tables of ours, or what comes of another statement of Spark's that reads them; None: it
    has none, or cannot be read.

    named   frames that stand in the text by these names
    before  text to put before the statement
    """
    bound = _bound(session, text, named or {})
    if bound is None:
        return None
    rewritten, frames = bound
    return spark_sql(session, _escaped(before) + rewritten, **frames)


@contextmanager
def views_of(session: SparkSession, *texts: str | None) -> Iterator[tuple[str | None, ...]]:
    """Expressions, with the tables of ours in their subqueries as temporary views that are there in the block only."""
    views: list[str] = []
    expressions: list[str | None] = []
    try:
        for text in texts:
            bound = None if text is None or "select" not in text.lower() else _bound(session, f"SELECT {text}")
            if bound is None:
                expressions.append(text)
                continue
            rewritten, frames = bound
            names = {key: f"_hoodie_{uuid4().hex}" for key in frames}
            for key, frame in frames.items():
                frame.createOrReplaceTempView(names[key])
                views.append(names[key])
            expressions.append(rewritten.format(**names).removeprefix("SELECT "))
        yield tuple(expressions)
    finally:
        for view in views:
            session.catalog.dropTempView(view)


def _bound(
    session: SparkSession, text: str, named: Mapping[str, DataFrame] = MappingProxyType({})
) -> tuple[str, dict[str, Any]] | None:
    """A statement with `{name}` in place of each table of ours that it reads, and of each call for its changes, and
    their frames. None: it has none of ours."""
    text = _as_selects(text)
    try:
        tree = parse(text)
    except SqlglotError:
        return None
    targets = {id(table) for node in tree.find_all(*_WRITES) if node.this for table in node.this.find_all(exp.Table)}
    frames: dict[str, DataFrame] = {}
    has_ours = False
    spans: list[tuple[int, int, str]] = []
    shown: dict[tuple[str, ...], str] = {}
    whole = Text.of(text)
    for call in function_calls(whole) if FUNCTION_PREFIX in text.lower() else ():
        key = f"hoodie_{len(frames)}"
        opened_table = open_named(session, *function_table(session, call), session_options(session, Purpose.READ))
        frames[key], has_ours = function_rows(session, call, opened_table), True
        spans.append((call.start, call.stop, f"{{{key}}}"))
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or id(table) in targets:
            continue
        parts = tuple(part.name for part in table.parts)
        if not all(parts) or (len(parts) == 1 and _names_cte(table)):
            continue
        start, end = table.parts[0].meta["start"], table.parts[-1].meta["end"] + 1
        key = f"hoodie_{len(frames)}"
        if parts[-1] in named:
            frames[key] = named[parts[-1]]
            spans.append((start, end, f"{{{key}}}"))
            continue
        own_table = table_if_ours(session, parts)
        if own_table is None:
            continue
        has_ours = True
        moment, end = moment_behind(session, whole, end)
        options = session_options(session, Purpose.READ)
        opened_table = open_named(session, Name(parts, parts[-1]), own_table, options)
        query = read_of(options.read(QueryOptions))
        if own_table.read_optimized or query.kind is ScanKind.READ_OPTIMIZED:
            frames[key] = opened_table.snapshot(optimized=True, as_of=moment)
        elif query.begin is not None and moment is None:
            frames[key] = opened_table.changes(query.begin, query.end, cdc=query.cdc)
        else:
            frames[key] = snapshot_of(session, opened_table) if moment is None else opened_table.as_of(moment)
        spans.append((start, end, f"{{{key}}}"))
        if not table.alias and "/" not in parts[-1]:
            behind = _behind_sample(whole, end)
            qualified_name = tuple(part.lower() for part in qualified(session, parts))
            shown[qualified_name] = "_".join(qualified_name) if _has_namesake(table) else parts[-1]
            spans.append((behind, behind, f" AS {tick(shown[qualified_name])}"))
    if not has_ours:
        return None
    spans += databases_of_columns(tree, shown)
    pieces, at = [], 0
    for start, end, put in sorted(spans):
        pieces += [_escaped(text[at:start]), put]
        at = end
    return "".join([*pieces, _escaped(text[at:])]), frames


def _as_selects(text: str) -> str:
    """The statement with `TABLE name`, where that is a query, as `SELECT * FROM name`, which sqlglot reads."""
    if "TABLE" not in text.upper():
        return text
    whole = Text.of(text)
    spans = []
    for at, token in enumerate(whole.tokens[:-1]):
        before = whole.word(at - 1) if at else ""
        if whole.word(at) != "TABLE" or whole.word(at + 1) in _OPTIONS_OF_TABLE:
            continue
        inserts = whole.word(0) == "INSERT" and at > 2 and before not in ("INTO", "OVERWRITE", "TABLE")
        if at == 0 or before in _BEFORE_QUERY or inserts:
            spans.append((token.start, token.end + 1, "SELECT * FROM"))
    return whole.with_spans(spans)


def _names_cte(table: exp.Table) -> bool:
    """Whether a plain name is that of a query in a WITH around it. A query of a WITH sees those before it, and itself
    where they are recursive."""
    inside: exp.Expr = table
    node = table.parent
    while node is not None:
        if isinstance(node, exp.With):
            queries = node.expressions
            place = next(place for place, query in enumerate(queries) if query is inside)
            seen, outer = queries[: place + bool(node.recursive)], node.parent
        else:
            seen, outer = node.ctes if isinstance(node, exp.Query) else [], node
        if table.name.lower() in {query.alias.lower() for query in seen}:
            return True
        inside, node = node, outer.parent if outer is not None else None
    return False


def _has_namesake(table: exp.Table) -> bool:
    """Whether a table without an alias stands beside one of its name in another database: a name without the database
    means neither."""
    query = table.find_ancestor(exp.Select)
    if query is None or not table.db:
        return False
    beside = (other for other in query.find_all(exp.Table) if other.find_ancestor(exp.Select) is query)
    return any(
        not other.alias and other.name.lower() == table.name.lower() and other.db.lower() != table.db.lower()
        for other in beside
    )


def _behind_sample(whole: Text, end: int) -> int:
    """The place behind `TABLESAMPLE (…) REPEATABLE (…)`, where that stands behind a name: aliases follow it."""
    for word in ("TABLESAMPLE", "REPEATABLE"):
        rest = whole.part(end, whole.end)
        if rest.words(2) == (word, "("):
            end = rest.tokens[rest.inside(1)[1]].end + 1
    return end


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
