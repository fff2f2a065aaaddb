"""What a table holds after a history of writes, told by a dict of rows: the rules of the format, row by row.

Knows nothing of files and Arrow kernels. Source: records-and-keys of the format: key text (1), payloads (3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from hoodie.config.write import WriteOperation
from hoodie.testing.strategies import Row, Shape, Step

OVERWRITE = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
BY_ORDERING = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"

Identity = tuple[str, str]  # partition path, record key

_ESCAPED = {chr(code) for code in (*range(0x20), 0x7F)} | set("\"#%'*/:=?\\{[]^")


@dataclass(frozen=True)
class Version:
    """A stored row, and the instant of the write that its values come from."""

    values: Row
    written: str


@dataclass(frozen=True)
class Counts:
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class TableModel:
    """A table. A key has several versions where inserts, which look nothing up, brought it in again."""

    shape: Shape
    payload: str
    schema: pa.Schema | None = None
    rows: Mapping[Identity, tuple[Version, ...]] = field(default_factory=dict)

    def after(self, step: Step, instant: str) -> tuple[TableModel, Counts]:
        """The table once the step is published, and what its statistics say."""
        grown = self.schema if step.operation in _WITHOUT_COLUMNS else _widest(self.schema, step.schema)
        rows, counts = _ACT[step.operation](self, step, instant)
        return replace(self, schema=grown, rows={key: found for key, found in rows.items() if found}), counts

    def table(self) -> pa.Table:
        """The rows with commit time, record key and partition path, in no order."""
        found = [
            {**{name: row.values.get(name) for name in self.schema.names}, **_meta(key, row)}
            for key, rows in self.rows.items()
            for row in rows
        ]
        return pa.Table.from_pylist(found, pa.schema([*((name, pa.string()) for name in META), *self.schema]))

    @property
    def duplicates(self) -> bool:
        return any(len(found) > 1 for found in self.rows.values())

    # --- one batch ---

    def batch(self, step: Step) -> list[tuple[Identity, Row]]:
        return [((self.path(row), self.key(row)), row) for row in step.rows]

    def key(self, row: Row) -> str:
        parts = [row[name] for name in self.shape.keys]
        if len(parts) == 1:
            return str(parts[0])
        shown = ["__null__" if part is None else "__empty__" if part == "" else str(part) for part in parts]
        return ",".join(f"{name}:{text}" for name, text in zip(self.shape.keys, shown, strict=True))

    def path(self, row: Row) -> str:
        return self.path_of(row[self.shape.partition]) if self.shape.partition else ""

    def path_of(self, value: str | None) -> str:
        if not self.shape.partition:
            return ""
        text = value or "__HIVE_DEFAULT_PARTITION__"
        if value and self.shape.url_encode:
            text = "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in value)
        return f"{self.shape.partition}={text}" if self.shape.hive_style else text

    # --- which version wins ---

    def ordering(self, row: Row) -> Any:
        return java_order(row[self.shape.ordering]) if self.shape.ordering else 0

    def combined(self, batch: Sequence[tuple[Identity, Row]]) -> list[tuple[Identity, Row]]:
        """Each key once: the greatest ordering value, of equals the later."""
        left: dict[Identity, Row] = {}
        for key, row in batch:
            if key not in left or self.ordering(left[key]) <= self.ordering(row):
                left[key] = row
        return list(left.items())

    def outcome(self, stored: Version, row: Row, instant: str) -> Version | None:
        """What becomes of a stored row that meets an incoming one; None: it goes."""
        if self.payload == BY_ORDERING and self.shape.ordering:
            has = stored.values.get(self.shape.ordering)
            if has is not None and java_order(has) > self.ordering(row):
                return stored
        return None if deleted(row) else Version(row, instant)


META = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path")


def _meta(key: Identity, row: Version) -> Row:
    return dict(zip(META, (row.written, key[1], key[0]), strict=True))


def deleted(row: Row) -> bool:
    return row.get("_hoodie_is_deleted") is True


def java_order(value: Any) -> Any:
    """Something that compares as Java's compareTo of the value does."""
    if isinstance(value, str):
        return value.encode("utf-16-be")
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return value


# --- operations ---

Outcome = tuple[Mapping[Identity, tuple[Version, ...]], Counts]


def _upsert(model: TableModel, step: Step, instant: str) -> Outcome:
    batch = model.batch(step)
    unique = dict(batch).items() if step.options.get("hoodie.combine.before.upsert") == "false" else None
    rows = dict(model.rows)
    inserted = updated = gone = 0
    for key, row in model.combined(batch) if unique is None else unique:
        stored = rows.get(key, ())
        if not stored and not deleted(row):
            rows[key] = (Version(row, instant),)
            inserted += 1
            continue
        found = [(version, model.outcome(version, row, instant)) for version in stored]
        rows[key] = tuple(after for _, after in found if after is not None)
        updated += sum(after is not None and after is not before for before, after in found)
        gone += sum(after is None for _, after in found)
    return rows, Counts(inserted, updated, gone)


def _insert(model: TableModel, step: Step, instant: str) -> Outcome:
    return _added(model, step, instant, model.rows)


def _insert_overwrite(model: TableModel, step: Step, instant: str) -> Outcome:
    paths = {path for (path, _), _ in model.batch(step)}
    return _added(model, step, instant, {key: rows for key, rows in model.rows.items() if key[0] not in paths})


def _insert_overwrite_table(model: TableModel, step: Step, instant: str) -> Outcome:
    return _added(model, step, instant, {})


def _added(model: TableModel, step: Step, instant: str, before: Mapping[Identity, tuple[Version, ...]]) -> Outcome:
    batch = model.batch(step)
    if step.options.get("hoodie.combine.before.insert") == "true":
        batch = model.combined(batch)
    rows = dict(before)
    live = [(key, row) for key, row in batch if not deleted(row)]
    for key, row in live:
        rows[key] = (*rows.get(key, ()), Version(row, instant))
    return rows, Counts(inserted=len(live))


def _delete(model: TableModel, step: Step, instant: str) -> Outcome:
    rows = dict(model.rows)
    gone = [version for key in dict(model.batch(step)) for version in rows.pop(key, ())]
    return rows, Counts(deleted=len(gone))


def _delete_partition(model: TableModel, step: Step, instant: str) -> Outcome:
    paths = {model.path_of(value) for value in step.partitions}
    return {key: rows for key, rows in model.rows.items() if key[0] not in paths}, Counts()


_WITHOUT_COLUMNS = {WriteOperation.DELETE, WriteOperation.DELETE_PARTITION}
_ACT: Mapping[WriteOperation, Callable[[TableModel, Step, str], Outcome]] = {
    WriteOperation.UPSERT: _upsert,
    WriteOperation.INSERT: _insert,
    WriteOperation.BULK_INSERT: _insert,
    WriteOperation.INSERT_OVERWRITE: _insert_overwrite,
    WriteOperation.INSERT_OVERWRITE_TABLE: _insert_overwrite_table,
    WriteOperation.DELETE: _delete,
    WriteOperation.DELETE_PARTITION: _delete_partition,
}


# --- columns ---

_WIDTH = {pa.int32(): 0, pa.float32(): 0, pa.int64(): 1, pa.float64(): 2}


def _widest(table: pa.Schema | None, batch: pa.Schema) -> pa.Schema:
    """The table's columns, each of the wider of two types, then those that are new."""
    if table is None:
        return batch
    for found in batch:
        at = table.get_field_index(found.name)
        if at < 0:
            table = table.append(found)
        elif _WIDTH.get(found.type, 0) > _WIDTH.get(table.field(at).type, 0):
            table = table.set(at, found)
    return table


# --- comparing ---


def shown(rows: pa.Table) -> list[str]:
    """The rows as sorted texts: columns by name, -0.0 apart from 0.0, NaN equal to NaN."""
    names = sorted(rows.column_names)
    return sorted(repr([(name, row[name]) for name in names]) for row in rows.select(names).to_pylist())
