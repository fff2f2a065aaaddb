"""What a table holds after a history of writes, told by a dict of rows: the rules of the format, row by row.

Knows nothing of files and Arrow kernels, but for the `Placement` of a commit's rows: which file group each new row
went to, and which groups were rewritten, not added to by a log. On a Merge-on-Read table versions then meet in another
order.
Source: records-and-keys of the format, 1 (keys), 3 (payloads), 4 (deletes in logs).
"""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.config.write import WriteOperation
from hoodie.model.commit import CommitMetadata
from hoodie.storage.protocol import Storage
from hoodie.testing.strategies import Row, Shape, Step

OVERWRITE = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
BY_ORDERING = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
META = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path")

Identity = tuple[str, str]  # partition path, record key

_ESCAPED = {chr(code) for code in (*range(0x20), 0x7F)} | set("\"#%'*/:=?\\{[]^")


@dataclass(frozen=True)
class Version:
    """A row as it was written, and the instant that wrote it."""

    values: Row
    written: str


@dataclass(frozen=True)
class Tombstone:
    """A deleted key in a log. ordering None: the delete wins over all before it."""

    ordering: Any


@dataclass(frozen=True)
class Copy:
    """A row of a base file with what the log of its file group says about its key."""

    base: Version
    group: str
    log: Version | Tombstone | None = None


@dataclass(frozen=True)
class Counts:
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class Placement:
    """What a commit did on disk.

    rewritten  ids of file groups that got a base file
    new        the rows with its commit time in these base files, as (group, row)
    """

    rewritten: frozenset[str]
    new: Sequence[tuple[str, Row]]

    def group_of(self, row: Row, taken: Counter[int], schema: pa.Schema) -> str:
        """The group that an inserted row is in. Equal rows are told apart by being taken."""
        wanted = text_of(pa.Table.from_pylist([row], schema))
        for number, (group, found) in enumerate(self.new):
            if not taken[number] and text_of(pa.Table.from_pylist([found], schema)) == wanted:
                taken[number] += 1
                return group
        raise AssertionError(f"no new base file holds {row}")


@dataclass(frozen=True)
class TableModel:
    """A table. A key has several copies where inserts, which look nothing up, brought it in again; on a Merge-on-Read
    table a deleted one stays, as its log may bring it back."""

    shape: Shape
    payload: str
    schema: pa.Schema | None = None
    rows: Mapping[Identity, tuple[Copy, ...]] = field(default_factory=dict)

    def after(self, step: Step, instant: str, placement: Placement) -> tuple[TableModel, Counts]:
        """The table once the step is published, and what its statistics say."""
        grown = self.schema if step.operation in _WITHOUT_COLUMNS else _widest(self.schema, step.schema)
        model = replace(self, schema=grown)
        rows, counts = _ACT[step.operation](model, step, instant, placement)
        return replace(model, rows={key: found for key, found in rows.items() if found}), counts

    def snapshot(self) -> pa.Table:
        """The rows with commit time, record key and partition path, in no order."""
        return self._table(self.visible)

    def read_optimized(self) -> pa.Table:
        """The rows of the base files."""
        return self._table(lambda copy: copy.base)

    def _table(self, of: Callable[[Copy], Version | None]) -> pa.Table:
        assert self.schema is not None
        found = [(key, of(copy)) for key, copies in self.rows.items() for copy in copies]
        rows = [
            {**row.values, **dict(zip(META, (row.written, key, path), strict=True))}
            for (path, key), row in found
            if row is not None
        ]
        return pa.Table.from_pylist(rows, pa.schema([*((name, pa.string()) for name in META), *self.schema]))

    def visible(self, copy: Copy) -> Version | None:
        """Base row and log as a snapshot reader merges them."""
        if copy.log is None:
            return copy.base
        return self.outcome(copy.base, copy.log) if isinstance(copy.log, Version) else None

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

    def outcome(self, stored: Version, new: Version) -> Version | None:
        """What becomes of a stored row that meets another; None: it goes."""
        by_ordering = self.payload == BY_ORDERING and self.shape.ordering
        has = by_ordering and stored.values[self.shape.ordering] is not None  # rows only inserted may have none
        if has and self.ordering(stored.values) > self.ordering(new.values):
            return stored
        return None if deleted(new.values) else new

    def logged(self, log: Version | Tombstone | None, row: Row, instant: str) -> Version | Tombstone:
        """What a log says about a key once a further row has come into it."""
        if deleted(row):
            ordering = self.ordering(row) if self.shape.ordering else None
            if self.shape.ordering and self.shape.schema.field(self.shape.ordering).type == pa.int32() and not ordering:
                ordering = None  # an int 0 is what stands for "no ordering value"
            return self.tombstone(log, ordering)
        if isinstance(log, Version) and self.ordering(log.values) > self.ordering(row):
            return log
        return Version(row, instant)

    def tombstone(self, log: Version | Tombstone | None, ordering: Any) -> Version | Tombstone:
        outranked = ordering is not None and isinstance(log, Version) and self.ordering(log.values) > ordering
        return log if outranked else Tombstone(ordering)  # type: ignore[return-value]


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

Copies = Mapping[Identity, tuple[Copy, ...]]
Outcome = tuple[Copies, Counts]


def _upsert(model: TableModel, step: Step, instant: str, placement: Placement) -> Outcome:
    batch = model.batch(step)
    last = step.options.get("hoodie.combine.before.upsert") == "false"
    rows = dict(model.rows)
    counts: Counter[str] = Counter()
    new = []
    for key, row in dict(batch).items() if last else model.combined(batch):
        if key in rows:
            rows[key] = _merged(model, rows[key], row, instant, placement, counts)
        elif not deleted(row):
            new.append((key, row))
    return _placed(model, rows, new, instant, placement), Counts(len(new), counts["updated"], counts["deleted"])


def _merged(
    model: TableModel, copies: Sequence[Copy], row: Row, instant: str, placement: Placement, counts: Counter[str]
) -> tuple[Copy, ...]:
    after = []
    for copy in copies:
        if copy.group not in placement.rewritten:
            after.append(replace(copy, log=model.logged(copy.log, row, instant)))
            continue
        assert copy.log is None, "a file group with a log is not rewritten by a write"
        base = model.outcome(copy.base, Version(row, instant))
        if base is not None:
            after.append(replace(copy, base=base))
        counts["updated"] += base is not None and base is not copy.base
        counts["deleted"] += base is None
    # A log gets each key once, however many rows of the base file have it.
    in_logs = {copy.group for copy in copies} - placement.rewritten
    counts["deleted" if deleted(row) else "updated"] += len(in_logs)
    return tuple(after)


def _insert(model: TableModel, step: Step, instant: str, placement: Placement) -> Outcome:
    return _added(model, step, instant, placement, model.rows)


def _insert_overwrite(model: TableModel, step: Step, instant: str, placement: Placement) -> Outcome:
    paths = {path for (path, _), _ in model.batch(step)}
    left = {key: copies for key, copies in model.rows.items() if key[0] not in paths}
    return _added(model, step, instant, placement, left)


def _insert_overwrite_table(model: TableModel, step: Step, instant: str, placement: Placement) -> Outcome:
    return _added(model, step, instant, placement, {})


def _added(model: TableModel, step: Step, instant: str, placement: Placement, before: Copies) -> Outcome:
    batch = model.batch(step)
    if step.options.get("hoodie.combine.before.insert") == "true":
        batch = model.combined(batch)
    new = [(key, row) for key, row in batch if not deleted(row)]
    return _placed(model, before, new, instant, placement), Counts(inserted=len(new))


def _placed(
    model: TableModel, before: Copies, new: Sequence[tuple[Identity, Row]], instant: str, placement: Placement
) -> Copies:
    assert model.schema is not None
    rows, taken = dict(before), Counter[int]()
    for key, row in new:
        found = {**row, "_hoodie_record_key": key[1], "_hoodie_partition_path": key[0]}
        schema = pa.schema([*((name, pa.string()) for name in META[1:]), *model.schema])
        rows[key] = (*rows.get(key, ()), Copy(Version(row, instant), placement.group_of(found, taken, schema)))
    return rows


def _delete(model: TableModel, step: Step, instant: str, placement: Placement) -> Outcome:
    rows = dict(model.rows)
    count = 0
    for key in dict(model.batch(step)):
        copies = rows.pop(key, ())
        rewritten = [copy for copy in copies if copy.group in placement.rewritten]
        left = [copy for copy in copies if copy.group not in placement.rewritten]
        rows[key] = tuple(replace(copy, log=model.tombstone(copy.log, None)) for copy in left)
        count += len(rewritten) + len({copy.group for copy in left})
    return rows, Counts(deleted=count)


def _delete_partition(model: TableModel, step: Step, instant: str, placement: Placement) -> Outcome:
    paths = {model.path_of(value) for value in step.partitions}
    return {key: rows for key, rows in model.rows.items() if key[0] not in paths}, Counts()


_WITHOUT_COLUMNS = {WriteOperation.DELETE, WriteOperation.DELETE_PARTITION}
_ACT: Mapping[WriteOperation, Callable[[TableModel, Step, str, Placement], Outcome]] = {
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


# --- against the table ---


def placement(storage: Storage, commit: CommitMetadata, instant: str) -> Placement:
    """What a commit did, from its files."""
    rewritten, new = set(), []
    for stats in commit.stats.values():
        for stat in stats:
            if stat.log_version is None:
                assert stat.path is not None
                rewritten.add(stat.file_id)
                rows = pq.read_table(io.BytesIO(storage.read(stat.path))).to_pylist()
                new += [(stat.file_id, row) for row in rows if row["_hoodie_commit_time"] == instant]
    return Placement(frozenset(rewritten), new)


def text_of(rows: pa.Table) -> list[str]:
    """The rows as sorted texts: columns by name, -0.0 apart from 0.0, NaN equal to NaN."""
    names = sorted(rows.column_names)
    return sorted(repr([(name, row[name]) for name in names]) for row in rows.select(names).to_pylist())
