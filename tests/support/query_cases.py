"""The cases of `engine_cases` as entries of a metastore, and rows as query engines show them."""

import datetime
import decimal
import json
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import hoodie
from support.engine_cases import Case, write

DATABASE = "h"
#: Table options of the key generator by timestamps: entries have its partition column as the text of the path.
_BY_TIME = "TimestampBasedKeyGenerator"


@dataclass(frozen=True, slots=True)
class Synced:
    """A table in the metastore.

    snapshot, read_optimized  its rows by the library; a partition column that comes from the path is the path's text
    """

    case: Case
    path: Path
    snapshot: pa.Table
    read_optimized: pa.Table

    @property
    def entry(self) -> str:
        return self.case.name

    @property
    def columns(self) -> list[str]:
        return [name for name in self.snapshot.column_names if not name.startswith("_hoodie_")]

    def entries(self) -> dict[str, pa.Table]:
        """Entry -> the rows it stands for."""
        if not self.case.merge_on_read:
            return {self.entry: self.snapshot}
        return {
            f"{self.entry}_ro": self.read_optimized,
            f"{self.entry}_rt": self.snapshot,
            self.entry: self.snapshot,
        }


def synced(case: Case, folder: Path, metastore: str, **options: str) -> Synced:
    """Write a case by the library and sync it.

    options  of the sync, over the usual ones: `support_timestamp="true"`
    """
    path = folder / case.name
    write(case, path)
    return sync(case, path, metastore, **options)


def sync(case: Case, path: Path, metastore: str, **options: str) -> Synced:
    """As `synced`, of a table that is there."""
    table = hoodie.open_table(str(path))
    named = {"metastore.uris": metastore, "database": DATABASE, "table": case.name, **options}
    table.sync(options={f"hoodie.datasource.hive_sync.{key}": value for key, value in named.items()})
    snapshot, optimized = table.snapshot(meta=True).to_arrow(), table.snapshot(optimized=True, meta=True).to_arrow()
    return Synced(case, path, _by_path(case, snapshot), _by_path(case, optimized))


def _by_path(case: Case, rows: pa.Table) -> pa.Table:
    if _BY_TIME not in case.options.get("hoodie.datasource.write.keygenerator.class", ""):
        return rows
    number = rows.column_names.index(case.options["hoodie.datasource.write.partitionpath.field"])
    return rows.set_column(number, rows.column_names[number], rows["_hoodie_partition_path"])


# --- comparing ---


def expected(rows: pa.Table, columns: Sequence[str]) -> list[str]:
    """Rows as sorted JSON, with the values of an engine: an instant in time is a number of microseconds."""
    return sorted(json.dumps([_ours(row[name]) for name in columns]) for row in rows.to_pylist())


def shown(rows: Iterable[Sequence[Any]], types: Sequence[pa.DataType]) -> list[str]:
    """Rows of an engine, by the types of the library's columns, to be compared with `expected`."""
    return sorted(json.dumps([_theirs(v, kind) for v, kind in zip(row, types, strict=True)]) for row in rows)


def query_all(entry: str, columns: Sequence[str]) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    return f"select {names} from {entry}"


def differing(
    table: Synced,
    rows_of: Callable[[str], Iterable[Sequence[Any]]],
    want: Callable[[str], pa.Table],
    besides: Collection[str] = (),
) -> list[str]:
    """Entries whose rows are not those of `want`, with both. besides: columns that are left out"""
    problems = []
    columns = [name for name in table.columns if name not in besides]
    types = [table.snapshot.schema.field(name).type for name in columns]
    for entry in table.entries():
        theirs = shown(rows_of(query_all(entry, columns)), types)
        ours = expected(want(entry), columns)
        if theirs != ours:
            problems.append(f"{entry}: {theirs} for {ours}")
    return problems


def _ours(value: Any) -> Any:
    if isinstance(value, dict):
        return [_ours(item) for item in value.values()]
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return sorted(([_ours(key), _ours(item)] for key, item in value), key=repr)
    if isinstance(value, list):
        return [_ours(item) for item in value]
    if isinstance(value, decimal.Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1_000_000)
    if isinstance(value, datetime.date):
        return value.isoformat()
    return b64encode(value).decode() if isinstance(value, bytes) else value


def _theirs(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_nested(kind) and isinstance(value, str):  # Presto's protocol has JSON within JSON
        value = json.loads(value)
    if pa.types.is_decimal(kind):
        return format(decimal.Decimal(value).normalize(), "f")
    if pa.types.is_map(kind):
        pairs = value.items() if isinstance(value, dict) else value
        return sorted(([key, item] for key, item in pairs), key=repr)
    if pa.types.is_struct(kind):
        return list(value.values()) if isinstance(value, dict) else list(value)
    if pa.types.is_timestamp(kind) and isinstance(value, str):
        moment = datetime.datetime.fromisoformat(value.removesuffix(" UTC")).replace(tzinfo=datetime.UTC)
        return round(moment.timestamp() * 1_000_000)
    return value
