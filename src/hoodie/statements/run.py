"""`hoodie.spark.sql`: statements on tables of ours are carried out, all others go to Spark as they are."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from hoodie.errors import StatementError
from hoodie.spark.columns import tick
from hoodie.spark.merge.expressions import parsed
from hoodie.statements.call import call
from hoodie.statements.cutting import Text, check_grammar, single
from hoodie.statements.ddl import ddl
from hoodie.statements.dml import run_dml
from hoodie.statements.dml_text import dml
from hoodie.statements.rows import counts_frame, opened, with_tables
from hoodie.storage.faults import typed_errors

_OURS = ("MERGE", "UPDATE", "DELETE", "INSERT", "WITH", "CREATE", "DROP", "ALTER", "TRUNCATE", "SHOW", "CALL")


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
    try:
        statement = single(text)
    except StatementError:
        if text.lstrip().upper().startswith(_OURS):
            raise
        return session.sql(text)
    done = _ours(session, statement)
    return session.sql(text) if done is None else done


def _ours(session: SparkSession, statement: Text) -> DataFrame | None:
    """What comes of a statement on tables of ours; None: it is not one."""
    word = statement.word(0)
    if word == "CALL":
        return call(session, statement)
    if word in ("CREATE", "DROP", "ALTER", "TRUNCATE", "SHOW"):
        done = ddl(session, statement)
        return _view(session, statement) if done is None and word == "CREATE" else done
    found = dml(statement) if word in _OURS else None
    if found is not None:
        table = opened(session, found.table)
        if table is not None:
            check_grammar(statement)
            return counts_frame(session, run_dml(session, table, found))
        if word in ("MERGE", "UPDATE", "DELETE"):
            return None
    return with_tables(session, str(statement)) if _is_query(statement) else None


def _is_query(statement: Text) -> bool:
    return isinstance(parsed(str(statement)), exp.Query)


def _view(session: SparkSession, statement: Text) -> DataFrame | None:
    """CREATE TEMPORARY VIEW of a query on tables of ours: a view of the rows that they have now."""
    tree = parsed(str(statement))
    at = statement.find("AS")
    if not isinstance(tree, exp.Create) or tree.kind != "VIEW" or at < 0:
        return None
    rows = with_tables(session, str(statement.after(at)))
    if rows is None:
        return None
    view = statement.find("VIEW")
    words = statement.words(view)
    if not {"TEMPORARY", "TEMP"} & set(words):
        raise statement.unreadable("a view on a table of Hudi is temporary: CREATE TEMPORARY VIEW")
    if statement.word(view + 1) == "IF":
        raise statement.unreadable(
            "a temporary view takes no IF NOT EXISTS: CREATE OR REPLACE TEMPORARY VIEW", view + 1
        )
    (name, *more), behind = statement.name(view + 1)
    if more:
        raise statement.unreadable("a temporary view has no database", view + 1)
    if statement.word(behind) == "(":
        named = [item.name()[0][-1] for item in statement.inside(behind)[0].split()]
        if len(named) != len(rows.columns):
            raise statement.unreadable(f"{len(named)} columns and a query of {len(rows.columns)}", behind)
        rows = rows.toDF(*named)
    shared = "Global" if "GLOBAL" in words else ""
    make = f"createOrReplace{shared}TempView" if "REPLACE" in words else f"create{shared}TempView"
    getattr(rows, make)(tick(name))
    return rows.limit(0).select()
