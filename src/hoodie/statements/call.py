"""CALL: arguments by name or by place, and which procedure is meant."""

import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice, starmap
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hoodie.errors import StatementError
from hoodie.expressions.parser import DIALECT, SqlglotError, exp, parse
from hoodie.spark.names import NamedTable
from hoodie.statements.cutting import Text, rest_of
from hoodie.statements.procedures.procedure import Called, Parameter, Procedure, table_named
from hoodie.statements.procedures.registry import PROCEDURES
from hoodie.statements.rows import session_options, table_rows, with_entrys


def run_call(session: SparkSession, text: Text) -> DataFrame:
    """Carry a CALL out. Raises StatementError on an unknown procedure or argument; as the procedure"""
    name, procedure, arguments = parse_call(text)
    if name == _HELP:
        return table_rows(session, [(line,) for line in _help(arguments)], procedure.columns)
    path, options = "", session_options(session)
    if procedure.of_table:
        table = _table(session, name, arguments)
        path, options = table.path, with_entrys(str(arguments.get("table")), table, options)
    called = Called(session, name, path, arguments, options)
    rows = table_rows(session, called_rows(procedure, called), procedure.columns)
    condition, limit = called.get("filter"), called.get("limit")
    return rows.filter(condition).limit(limit) if condition else rows


def parse_call(text: Text) -> tuple[str, Procedure, Mapping[str, Any]]:
    """The procedure that a CALL names, and its arguments, defaults included. Raises StatementError"""
    tree = _read(text)
    name = tree.name.lower()
    procedure = _HELPS if name == _HELP else PROCEDURES.get(name)
    if procedure is None:
        raise unknown(name)
    return name, procedure, _arguments(name, procedure, tree.expressions)


def called_rows(procedure: Procedure, called: Called) -> list[Sequence[Any]]:
    """The rows of a procedure, up to its limit; all where a `filter` is to choose among them."""
    limit = called.get("limit")
    if limit is not None and limit < 0:
        if procedure.parameters["limit"].default >= 0:
            raise StatementError(f"{called.name}: limit => {limit}: expected 0 or more")
        limit = None
    return list(islice(procedure.run(called), None if called.get("filter") else limit))


def unknown(name: str) -> StatementError:
    """The error of a procedure that there is not. It proposes one with nearly the name, unless that takes data away."""
    near = difflib.get_close_matches(name, PROCEDURES, n=1)
    hint = f"Did you mean {near[0]}?" if near and not PROCEDURES[near[0]].destructive else "CALL help() lists them."
    return StatementError(f"there is no procedure {name!r}. {hint}")


def is_another_catalogs(text: Text) -> bool:
    """Whether a CALL is of a procedure that a catalog of another format has: `CALL lake.system.expire_snapshots(…)`."""
    parts, _ = rest_of(text).name()
    return len(parts) > 1 and parts[0].lower() != "system" and parts[-1].lower() not in (*PROCEDURES, "help")


_HELP = "help"
_HELPS = Procedure({"cmd": Parameter(str)}, "result string", lambda called: (), of_table=False)


def _help(arguments: Mapping[str, Any]) -> list[str]:
    """A line for each procedure, or for one. Raises StatementError when there is none of the name"""
    name = str(arguments.get("cmd") or "").lower()
    if name and name not in PROCEDURES:
        raise unknown(name)
    return [_line(procedure_name) for procedure_name in ([name] if name else sorted(PROCEDURES))]


def _line(name: str) -> str:
    procedure = PROCEDURES[name]
    return f"{name}({', '.join(starmap(_declared, procedure.parameters.items()))}): {procedure.columns}"


def _declared(name: str, parameter: Parameter) -> str:
    default = "" if parameter.default is None else f" = {parameter.default}"
    return f"{name}{'!' if parameter.required else ''} {parameter.kind.__name__}{default}"


def _read(text: Text) -> exp.Anonymous:
    """The call as a tree: sqlglot reads it as the selection of a function."""
    call_ = text.after(0)
    try:
        selected = parse(f"SELECT {call_}").expressions[0]
    except SqlglotError as problem:
        raise call_.unreadable("expected CALL procedure(argument => value, …)") from problem
    expression = selected.expression if isinstance(selected, exp.Dot) else selected
    if not isinstance(expression, exp.Anonymous):
        raise call_.unreadable("expected CALL procedure(argument => value, …)")
    return expression


def _arguments(name: str, procedure: Procedure, items: list[exp.Expr]) -> Mapping[str, Any]:
    """The arguments by name, with defaults. Raises StatementError on an unknown, repeated or missing one"""
    arguments: dict[str, Any] = {}
    names = {key.lower(): key for key in procedure.parameters}
    for place, item in enumerate(items):
        if isinstance(item, (exp.Kwarg, exp.PropertyEQ)):
            word, value = item.this.name, item.expression
        elif place < len(names):
            word, value = list(names)[place], item
        else:
            raise StatementError(f"{name} takes {len(names)} arguments: {', '.join(names.values())}")
        key = names.get(word.lower())
        if key is None:
            raise StatementError(f"{name} has no argument {word!r}: it takes {', '.join(names.values())}")
        if key in arguments:
            raise StatementError(f"{name}: argument {key} is given twice")
        arguments[key] = _value(name, key, value, procedure.parameters[key].kind)
    missing = [key for key, parameter in procedure.parameters.items() if parameter.required and not arguments.get(key)]
    if missing:
        raise StatementError(f"{name} needs {', '.join(f'{key} => …' for key in missing)}")
    defaults = {
        key: parameter.default for key, parameter in procedure.parameters.items() if parameter.default is not None
    }
    return {**defaults, **arguments}


def _value(name: str, key: str, value: exp.Expr, kind: type) -> Any:
    """A literal as Python has it."""
    negative = isinstance(value, exp.Neg)
    literal = value.this if negative else value
    if isinstance(literal, exp.Null):
        return None
    if isinstance(literal, exp.Boolean):
        text = str(literal.this)
    elif isinstance(literal, exp.Literal):
        text = f"-{literal.name}" if negative else literal.name
    else:
        text = None
    with suppress(ValueError, KeyError):
        if text is not None:
            return kind(text) if kind is not bool else {"true": True, "false": False}[text.lower()]
    raise StatementError(f"{name}: {key} = {value.sql(dialect=DIALECT)}: expected a literal, {kind.__name__}")


def _table(session: SparkSession, name: str, arguments: Mapping[str, Any]) -> NamedTable:
    """The table. Raises StatementError without one, or on a name that no table has"""
    table = arguments.get("table")
    if not table and arguments.get("path"):
        return NamedTable(str(arguments["path"]))
    if not table:
        raise StatementError(f"{name} needs a table: table => 'name', or path => '/path/of/the/table'")
    return table_named(session, table)
