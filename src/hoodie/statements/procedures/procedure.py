"""What a procedure is: its parameters, the columns of its rows, and the function that CALL runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hoodie.api.table import HoodieTable, open_table
from hoodie.config.options import Options
from hoodie.errors import StatementError
from hoodie.spark.names import NamedTable, named_table
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state

Rows = Iterable[Sequence[Any]]

_KINDS: Mapping[str, type] = {"string": str, "int": int, "long": int, "boolean": bool}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a procedure. `default` None: the function decides what its absence means."""

    kind: type
    required: bool = False
    default: Any = None


@dataclass(frozen=True)
class Called:
    """A procedure that is being run.

    path       of the table; "" where it takes none
    arguments  by name, defaults included
    options    `hoodie.*` of the session
    """

    session: SparkSession
    name: str
    path: str
    arguments: Mapping[str, Any]
    options: Options

    @cached_property
    def table(self) -> HoodieTable[DataFrame]:
        """Raises as `open_table`"""
        return open_table(self.path, spark=self.session, options=self.options)

    @cached_property
    def write_settings(self) -> Settings:
        """Raises InvalidOption"""
        return Settings.read(self.options)

    @cached_property
    def state(self) -> TableState:
        """The table when it was first looked at."""
        return load_state(self.table.storage)

    def get(self, name: str, default: Any = None) -> Any:
        value = self.arguments.get(name)
        return default if value is None else value

    def settings(self, names: Mapping[str, str]) -> dict[str, Any]:
        """Options out of arguments, and out of `options => 'key=value,…'`, which go first. Raises StatementError

        names  argument -> option
        """
        from_arguments = {option: self.arguments[name] for name, option in names.items() if self.get(name) is not None}
        pairs = [pair.partition("=") for pair in str(self.get("options", "")).split(",") if pair.strip()]
        if any(not equals for _, equals, _ in pairs):
            raise StatementError(f"{self.name}: options => {self.get('options')!r}: expected 'key=value,key=value'")
        return {**from_arguments, **{key.strip(): value.strip() for key, _, value in pairs}}

    def problem(self, text: str) -> StatementError:
        return StatementError(f"{self.name}: {text}")


@dataclass(frozen=True, slots=True)
class Procedure:
    """parameters   in the order in which they are given by place
    columns      of the rows, as DDL
    destructive  takes something away that does not come back: never proposed for a misspelt name
    of_table     works on a table, which `table` or `path` names
    """

    parameters: Mapping[str, Parameter]
    columns: str
    run: Callable[[Called], Rows]
    destructive: bool = False
    of_table: bool = True


def procedure(
    parameters: str, columns: str, run: Callable[[Called], Rows], *, destructive: bool = False, of_table: bool = True
) -> Procedure:
    """A procedure whose parameters are written as `op! string, limit int = 10`; the mark says that it is required.

    A comma within a default is written as a semicolon. One of a table takes `path` as well, last where Hudi's has none.
    """
    read = dict(map(_parameter, parameters.split(","))) if parameters else {}
    if of_table and "path" not in read:
        read["path"] = Parameter(str)
    return Procedure(read, columns, run, destructive, of_table)


def _parameter(text: str) -> tuple[str, Parameter]:
    declared, _, default = map(str.strip, text.partition("="))
    name, kind = declared.split()
    required = name.endswith("!")
    value = None if not default else default == "true" if kind == "boolean" else _KINDS[kind](default)
    return name.removesuffix("!"), Parameter(_KINDS[kind], required, value)


def table_named(session: SparkSession, table: str) -> NamedTable:
    """The table of a name of the session, or of a path. Raises StatementError on a name that none has"""
    entry = named_table(session, table.replace("`", "").split(".") if "/" not in table else ("hudi", table.strip("`")))
    if entry is None:
        raise StatementError(
            f"no table of Hudi has the name {table!r}: hoodie.spark.register_table gives one, or say path =>"
        )
    return entry
