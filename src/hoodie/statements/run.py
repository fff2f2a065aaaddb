"""`hoodie.spark.sql`, and `spark.sql` once registered: statements on our tables are carried out, others are Spark's."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from hoodie.api.table import HoodieTable
from hoodie.errors import InvalidInput, StatementError, UnsupportedTable
from hoodie.expressions.parser import exp
from hoodie.expressions.text import parsed, tick
from hoodie.spark.names import PROVIDERS
from hoodie.spark.own_sql import forget_foreign, spark_sql
from hoodie.spark.session import require_session
from hoodie.spark.table_views import TableView, note_view, view_named
from hoodie.statements.call import is_another_catalogs, run_call
from hoodie.statements.create_text import like_what, makes_ours
from hoodie.statements.cutting import (
    Text,
    check_grammar,
    rest_of,
    says_identifier,
    single_statement,
    with_plain_names,
    with_whole_comments,
)
from hoodie.statements.ddl import ddl, repair_statement
from hoodie.statements.describe import describe_from_statement
from hoodie.statements.dml import run_dml
from hoodie.statements.dml_text import Dml, Insert, dml
from hoodie.statements.entry import require_entries
from hoodie.statements.names import may_be_ours, table_if_ours, table_names, without_databases
from hoodie.statements.parameters import Arguments, with_frames, with_literals
from hoodie.statements.rows import counts_frame, opened, opened_view, require_grammar, with_tables
from hoodie.statements.session import COMMANDS, explain_statement, run_command
from hoodie.statements.views import refuse_changes_of_views
from hoodie.storage.faults import typed_errors
from hoodie.writing.result import WriteResult

_DML = ("MERGE", "UPDATE", "DELETE", "INSERT", "WITH")
_DDL = ("CREATE", "REPLACE", "DROP", "ALTER", "TRUNCATE", "SHOW", "COMMENT")
_OURS = (*_DML, *_DDL, "CALL")
_UPKEEP = ("MSCK REPAIR", "ANALYZE")
#: What Spark carries out, and may read tables of ours.
_READS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "(", "INSERT", "CREATE", "MERGE", "UPDATE", "DELETE"})


@typed_errors()
def sql(session: SparkSession, text: str) -> DataFrame:
    """Run one SQL statement, on tables of Hudi or any others.

    text     names a table of Hudi by hudi.`path`, or by a name of `register_table` or `CREATE TABLE … USING hudi`
    returns  the rows of a query; of INSERT, UPDATE, DELETE and MERGE one row of counts; of CALL what Hudi's procedure
             of that name gives
    Raises   StatementError, with line and column, on a statement on such a table that cannot be read; as the calls of
             `HoodieTable` that it stands for; what Spark raises on all other statements, which it gets unchanged

    Spark evaluates all expressions. A query sees the table as it is when `sql` is called.
    """
    require_session(session, "sql")
    if not isinstance(text, str):
        raise InvalidInput(f"sql takes a statement as text, and not a {type(text).__name__}")
    if not text.strip("; \t\r\n"):
        raise InvalidInput(f"sql takes a statement, and there is none: {text!r}")
    forget_foreign(session)
    try:
        statement = with_plain_names(single_statement(text))
    except StatementError:
        if text.lstrip().upper().startswith(_OURS):
            raise
        return spark_sql(session, text)
    frame = _run(session, statement)
    return spark_sql(session, text) if frame is None else frame


@typed_errors()
def answer(
    session: SparkSession, text: str, args: Arguments = None, frames: Mapping[str, Any] = MappingProxyType({})
) -> DataFrame | None:
    """What comes of a statement on tables of ours, with the arguments of `spark.sql`; None: it is Spark's.

    Raises as `sql`
    """
    try:
        statement = single_statement(text)
    except StatementError:  # several statements, or a text that Spark alone can read, or nobody
        if _says_ours(text):
            raise
        return None
    if says_identifier(statement):  # which table is meant, a parameter may say
        try:
            statement, args = with_plain_names(with_literals(statement, args)), None
        except StatementError:
            return None
        text = str(statement)
    if not _concerns(session, statement):
        refuse_changes_of_views(session, statement)
        return None
    if not args and not frames:
        return _run(session, statement)
    with with_frames(session, text, frames) as (statement_text, named):
        return _run(session, with_literals(single_statement(statement_text), args), named)


def makes_table_of_ours(text: str) -> bool:
    """Whether a statement is `CREATE TABLE … USING hudi`."""
    if not _says_ours(text):
        return False
    try:
        return makes_ours(single_statement(text))
    except StatementError:
        return False


def _says_ours(text: str) -> bool:
    lower = text.lower()
    return "using" in lower and "create" in lower and any(provider in lower for provider in PROVIDERS)


def _concerns(session: SparkSession, statement: Text) -> bool:
    """Whether a statement may be about tables of ours. Raises as `named_table`"""
    word = statement.word(0)
    if word == "CALL":
        return not is_another_catalogs(statement)
    if word == "CREATE" and (makes_ours(statement) or like_what(statement)):
        return True
    if statement.words(2) in (("DROP", "DATABASE"), ("DROP", "SCHEMA"), ("CLEAR", "CACHE")):
        return True
    if word in ("SHOW", "EXPLAIN", *_UPKEEP):
        statement = rest_of(statement)
        if (word, statement.word(0)) == ("SHOW", "TABLES"):
            return True
    if statement.is_about_index() and (at := statement.find("ON")) > 0:
        statement = Text.of(f"TABLE {statement.after(at)}")
    if word in _DML and any(view_named(session, parts) for parts in table_names(statement)):
        return True
    try:
        return may_be_ours(session, statement)
    except UnsupportedTable:
        if word in ("DROP", "SHOW", "DESCRIBE", "DESC"):  # Spark can drop or describe an entry that cannot be used
            return False
        raise


def _run(
    session: SparkSession, statement: Text, named: Mapping[str, DataFrame] = MappingProxyType({})
) -> DataFrame | None:
    """What comes of a statement on tables of ours; None: it is not one.

    named  frames that stand in the text by these names, as temporary views
    """
    word = statement.word(0)
    if word == "CALL":
        return None if is_another_catalogs(statement) else run_call(session, statement)
    if word == "EXPLAIN":
        return explain_statement(session, statement, named)
    if word in ("DESCRIBE", "DESC"):
        return describe_from_statement(session, statement)
    if word in _UPKEEP:
        return repair_statement(session, statement)
    if statement.is_about_index():
        return ddl(session, statement)
    if word in COMMANDS and (frame := run_command(session, statement, named)) is not None:
        return frame
    if word in _DDL:
        frame = ddl(session, with_whole_comments(statement))
        if frame is not None:
            return frame
        if makes_ours(statement):
            raise statement.unreadable("expected CREATE TABLE [IF NOT EXISTS] name … USING hudi", 1)
        if word == "CREATE" and "VIEW" in statement.words(5):
            return _view(session, statement, named)
        return _read_by_spark(session, statement, named) if word == "CREATE" else None
    _refuse_insert_behind_from(session, statement)
    change = _change(session, statement) if word in _DML else None
    if change is not None:
        table = opened(session, change.table)
        if table is not None:
            change = without_databases(session, statement, check_grammar(statement), change)
            return counts_frame(session, _run_change(session, statement, table, change))
        if (shown := opened_view(session, change.table)) is not None and not (
            shown[0].live and isinstance(change, Insert)
        ):
            check_grammar(statement)
            return _change_view(session, statement, change, *shown)
        if shown is None:
            refuse_changes_of_views(session, statement)
    return _read_by_spark(session, statement, named)


def _refuse_insert_behind_from(session: SparkSession, statement: Text) -> None:
    """Raises StatementError on `FROM … INSERT INTO table of ours …`"""
    if statement.word(0) != "FROM":
        return
    for at in statement.every("INSERT"):
        target = next(table_names(statement.part(statement.tokens[at].start, statement.end)), None)
        if target is not None and table_if_ours(session, target) is not None:
            raise statement.unreadable("an INSERT behind FROM is not supported: INSERT INTO table SELECT … FROM …", at)


def _run_change(session: SparkSession, statement: Text, table: HoodieTable[DataFrame], change: Dml) -> WriteResult:
    """`run_dml`. Raises as that, and StatementError where Spark cannot read an expression"""
    try:
        return run_dml(session, table, change)
    except AnalysisException:
        require_grammar(session, statement)  # which names the place in the whole statement
        raise


def _change_view(
    session: SparkSession, statement: Text, change: Dml, view: TableView, table: HoodieTable[DataFrame]
) -> DataFrame:
    """Change the table that a temporary view shows; the view shows what the statement left."""
    result = _run_change(session, statement, table, change)
    if not view.live:
        name = change.table.parts[0]
        rows = table.snapshot()
        rows.createOrReplaceTempView(tick(name))
        note_view(session, name, TableView(rows, view.path))
    return counts_frame(session, result)


def _change(session: SparkSession, statement: Text) -> Dml | None:
    """The statement taken apart, if it is a change of rows; None: it is another one, or a form that this library does
    not read on a table that is not ours. Raises StatementError on such a form on a table of ours"""
    try:
        return dml(statement)
    except StatementError:
        target = next(table_names(statement), None)
        if statement.word(0) == "WITH" or target is None or table_if_ours(session, target) is not None:
            raise
        return None


def _read_by_spark(session: SparkSession, statement: Text, named: Mapping[str, DataFrame]) -> DataFrame | None:
    """What comes of a statement of Spark's that reads tables of ours: a query, or one that writes elsewhere."""
    if statement.word(0) not in _READS:
        return None
    frame = with_tables(session, str(statement), named)
    if frame is not None or statement.word(0) not in ("INSERT", "CREATE"):
        return frame
    at = statement.find("SELECT", "WITH", "FROM", "VALUES", start=2)
    if at < 0:
        return None
    before, query = (
        statement.part(statement.start, statement.tokens[at].start),
        statement.part(statement.tokens[at].start, statement.end),
    )
    return with_tables(session, str(query), named, before=f"{before} ")


def _view(session: SparkSession, statement: Text, named: Mapping[str, DataFrame]) -> DataFrame | None:
    """CREATE TEMPORARY VIEW of a query on tables of ours: a view of the rows that they have now. Another view is
    Spark's: it reads the tables by their entries, as they are then."""
    tree = parsed(str(statement))
    at = statement.find("AS")
    if not isinstance(tree, exp.Create) or tree.kind != "VIEW" or at < 0:
        return None
    view = statement.find("VIEW")
    words = statement.words(view)
    if not {"TEMPORARY", "TEMP"} & set(words):
        require_entries(session, statement, statement.after(at))
        return None
    rows = with_tables(session, str(statement.after(at)), named)
    if rows is None:
        return None
    if statement.word(view + 1) == "IF":
        raise statement.unreadable(
            "a temporary view takes no IF NOT EXISTS: CREATE OR REPLACE TEMPORARY VIEW", view + 1
        )
    (name, *more), behind = statement.name(view + 1)
    if more:
        raise statement.unreadable("a temporary view has no database", view + 1)
    if statement.word(behind) == "(":
        columns = [item.name()[0][-1] for item in statement.inside(behind)[0].split()]
        if len(columns) != len(rows.columns):
            raise statement.unreadable(f"{len(columns)} columns and a query of {len(rows.columns)}", behind)
        rows = rows.toDF(*columns)
    shared = "Global" if "GLOBAL" in words else ""
    make = f"createOrReplace{shared}TempView" if "REPLACE" in words else f"create{shared}TempView"
    getattr(rows, make)(tick(name))
    if not shared:
        path = _whole_table(session, statement.after(at)) if statement.word(behind) != "(" else None
        note_view(session, name, None if path is None else TableView(rows, path))
    return rows.limit(0).select()


def _whole_table(session: SparkSession, query: Text) -> str | None:
    """The path of the table that `SELECT * FROM table` reads whole; None: it is another query."""
    if query.words(3) != ("SELECT", "*", "FROM"):
        return None
    parts, behind = query.name(3)
    table = table_if_ours(session, parts) if behind == len(query.tokens) else None
    return None if table is None or table.read_optimized else table.path
