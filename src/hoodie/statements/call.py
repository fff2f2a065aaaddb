"""CALL: arguments by name or by place, and which procedure is meant."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import sqlglot
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hoodie.api.table import open_table
from hoodie.errors import StatementError
from hoodie.expressions.text import DIALECT
from hoodie.spark.names import named_table
from hoodie.statements.cutting import Text
from hoodie.statements.procedures import PROCEDURES, Procedure
from hoodie.statements.rows import settings_of, table_rows


def call(session: SparkSession, text: Text) -> DataFrame:
    """Carry a CALL out. Raises StatementError on an unknown procedure or argument; as the procedure"""
    tree = _read(text)
    name = tree.name.lower()
    if name == "help":
        return table_rows(session, [(_help(name),) for name in sorted(PROCEDURES)], "result string")
    procedure = PROCEDURES.get(name)
    if procedure is None:
        near = difflib.get_close_matches(name, PROCEDURES, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(sorted(PROCEDURES))}."
        raise StatementError(f"there is no procedure {name!r}. {hint}")
    arguments = _arguments(name, procedure, tree.expressions)
    path = arguments.get("path") or _path(session, name, arguments)
    rows = procedure.run(open_table(path, spark=session, options=settings_of(session)), arguments)
    limit = arguments.get("limit") if "limit" in procedure.parameters else None
    if limit is not None and limit < 0:
        raise StatementError(f"{name}: limit => {limit}: expected 0 or more")
    return table_rows(session, list(rows)[:limit], procedure.columns)


def is_another_catalogs(text: Text) -> bool:
    """Whether a CALL is of a procedure that a catalog of another format has: `CALL lake.system.expire_snapshots(…)`."""
    parts, _ = Text.of(str(text.after(0))).name()
    return len(parts) > 1 and parts[0].lower() != "system" and parts[-1].lower() not in (*PROCEDURES, "help")


def _help(name: str) -> str:
    procedure = PROCEDURES[name]
    parameters = ", ".join(f"{key} {kind.__name__}" for key, kind in procedure.parameters.items())
    return f"{name}({parameters}): {procedure.columns}"


def _read(text: Text) -> exp.Anonymous:
    """The call as a tree: sqlglot reads it as the selection of a function."""
    call_ = text.after(0)
    try:
        selected = sqlglot.parse_one(f"SELECT {call_}", read=DIALECT).expressions[0]
    except SqlglotError as problem:
        raise call_.unreadable("expected CALL procedure(argument => value, …)") from problem
    found = selected.expression if isinstance(selected, exp.Dot) else selected
    if not isinstance(found, exp.Anonymous):
        raise call_.unreadable("expected CALL procedure(argument => value, …)")
    return found


def _arguments(name: str, procedure: Procedure, given: list[exp.Expr]) -> Mapping[str, Any]:
    arguments: dict[str, Any] = {}
    names = list(procedure.parameters)
    for place, item in enumerate(given):
        if isinstance(item, (exp.Kwarg, exp.PropertyEQ)):
            key, value = item.this.name.lower(), item.expression
        elif place < len(names):
            key, value = names[place], item
        else:
            raise StatementError(f"{name} takes {len(names)} arguments: {', '.join(names)}")
        if key not in procedure.parameters:
            raise StatementError(f"{name} has no argument {key!r}: it takes {', '.join(names)}")
        if key in arguments:
            raise StatementError(f"{name}: argument {key} is given twice")
        arguments[key] = _value(name, key, value, procedure.parameters[key])
    defaults = {"limit": 10} if "limit" in procedure.parameters else {}
    return {**defaults, **arguments}


def _value(name: str, key: str, value: exp.Expr, kind: type) -> Any:
    """A literal as Python has it."""
    negative = isinstance(value, exp.Neg)
    literal = value.this if negative else value
    if isinstance(literal, exp.Boolean) and kind is bool:
        return bool(literal.this)
    if isinstance(literal, exp.Literal):
        text = f"-{literal.name}" if negative else literal.name
        try:
            return kind(text) if kind is not bool else {"true": True, "false": False}[text.lower()]
        except (ValueError, KeyError):
            pass
    raise StatementError(f"{name}: {key} = {value.sql(dialect=DIALECT)}: expected a literal, {kind.__name__}")


def _path(session: SparkSession, name: str, arguments: Mapping[str, Any]) -> str:
    table = arguments.get("table")
    if not table:
        raise StatementError(f"{name} needs a table: table => 'name', or path => '/path/of/the/table'")
    found = named_table(session, table.replace("`", "").split(".") if "/" not in table else ("hudi", table.strip("`")))
    if found is None:
        raise StatementError(
            f"no table of Hudi has the name {table!r}: hoodie.spark.register_table gives one, or say path =>"
        )
    return found.path
