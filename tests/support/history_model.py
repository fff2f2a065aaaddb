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
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.config.write import WriteOperation
from hoodie.index.bucket import HashFields, buckets_of
from hoodie.model.commit import CommitMetadata
from hoodie.storage.protocol import Storage
from support.strategies import Row, Shape, Step

OVERWRITE = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
BY_ORDERING = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
#: Few keys and few ordering values, so that versions meet often: late ones, equal ones, deletes and what comes after.
CROWDED = Shape(
    pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v0", pa.int32()), ("_hoodie_is_deleted", pa.bool_())]),
    keys=("id",),
    partition="",
    ordering="ts",
    domains={"id": "ab", "ts": (-1, 0, 1), "_hoodie_is_deleted": (None, False, True)},
)
META = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path")

Identity = tuple[str, str]  # partition path, record key

_ESCAPED = {chr(code) for code in (*range(0x20), 0x7F)} | set("\"#%'*/:=?\\{[]^")


@dataclass(frozen=True)
class Version:
    """A row as it was written, and the instant that wrote it. after_delete: a delete was before it in its log, so that
    the base file's row no longer counts."""

    values: Row
    written: str
    after_delete: bool = False


@dataclass(frozen=True)
class Tombstone:
    """A deleted key in a log. ordering None: the delete wins over all before it."""

    ordering: Any


@dataclass(frozen=True)
class Copy:
    """A row of a base file with what the log of its file group says about its key. base None: only the log has it.

    events  what came into the log, as (instant, row; None: a delete), in order
    """

    base: Version | None
    group: str
    log: Version | Tombstone | None = None
    events: tuple[tuple[str, Row | None], ...] = ()


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
    appended   partition path and id of file groups that got a log
    """

    rewritten: frozenset[str]
    new: Sequence[tuple[str, Row]]
    appended: frozenset[tuple[str, str]] = frozenset()

    def group_of(self, row: Row, taken: Counter[int], schema: pa.Schema) -> str:
        """The group that an inserted row is in. Equal rows are told apart by being taken."""
        wanted = text_of(pa.Table.from_pylist([row], schema))
        for number, (group, found) in enumerate(self.new):
            if not taken[number] and text_of(pa.Table.from_pylist([found], schema)) == wanted:
                taken[number] += 1
                return group
        raise AssertionError(f"no new base file holds {row}")


@dataclass(frozen=True)
class IndexKind:
    """What an index means for rows.

    is_global  a key is in one partition of the table
    moves      global: rows go where they say; else they stay where their key is
    buckets    BUCKET: their number; 0: another index
    """

    is_global: bool = False
    moves: bool = True
    buckets: int = 0

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> IndexKind:
        kind = options.get("hoodie.index.type", "SIMPLE")
        if kind == "BUCKET":
            return cls(buckets=int(options["hoodie.bucket.index.num.buckets"]))
        if kind == "RECORD_INDEX":
            return cls(True, options.get("hoodie.record.index.update.partition.path", "false") == "true")
        key = f"hoodie.{kind.removeprefix('GLOBAL_').lower()}.index.update.partition.path"
        return cls(kind.startswith("GLOBAL_"), options.get(key, "true") == "true")

    def group(self, key: Identity, fields: Sequence[str], groups: Collection[tuple[str, str]]) -> str | None:
        """The file group of a key's bucket, if it is among these."""
        if not self.buckets:
            return None
        (bucket,) = buckets_of(pa.array([key[1]]), HashFields(tuple(fields)), self.buckets).tolist()
        return next((file_id for path, file_id in groups if path == key[0] and int(file_id[:8]) == bucket), None)


@dataclass(frozen=True)
class TableModel:
    """A table. A key has several copies where inserts, which look nothing up, brought it in again; on a Merge-on-Read
    table a deleted one stays, as its log may bring it back."""

    shape: Shape
    payload: str
    index: IndexKind = IndexKind()
    in_logs: bool = False  # Merge-on-Read
    by_arrow: bool = True  # by rows that are no frames of Spark's, whose types are meant
    schema: pa.Schema | None = None
    rows: Mapping[Identity, tuple[Copy, ...]] = field(default_factory=dict)

    def after(self, step: Step, instant: str, placement: Placement) -> tuple[TableModel, Counts]:
        """The table once the step is published, and what its statistics say."""
        batch = as_brought(self.schema, step) if self.by_arrow else step.schema
        grown = self.schema if step.operation in _WITHOUT_COLUMNS else _widest(self.schema, batch)
        model = replace(self, schema=grown)
        rows, counts = _ACT[step.operation](model, step, instant, placement)
        return replace(model, rows={key: found for key, found in rows.items() if found}), counts

    def snapshot(self) -> pa.Table:
        """The rows with commit time, record key and partition path, in no order."""
        return self._table(self.visible)

    def read_optimized(self) -> pa.Table:
        """The rows of the base files."""
        return self._table(lambda copy: copy.base)

    def changes(self, after: str, up_to: str) -> pa.Table:
        """The rows written in (after, up_to], where this is the state at `up_to`: only versions of the range meet."""
        return self._table(lambda copy: self._within(copy, after, up_to))

    def _within(self, copy: Copy, after: str, up_to: str) -> Version | None:
        base = copy.base if copy.base is not None and after < copy.base.written <= up_to else None
        log: Version | Tombstone | None = None
        for instant, row in copy.events:
            if after < instant <= up_to:
                log = self.tombstone(log, None) if row is None else self.logged(log, row, instant)
        if log is None or isinstance(log, Tombstone):
            return base if log is None else None
        return log if base is None else self.outcome(base, log)

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
        if copy.base is None:
            return copy.log if isinstance(copy.log, Version) else None
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

    def scope(self, key: Identity) -> Identity:
        """What rows have in common that are versions of one."""
        return ("*", key[1]) if self.index.is_global else key

    def combined(self, batch: Sequence[tuple[Identity, Row]], last: bool = False) -> list[tuple[Identity, Row]]:
        """Each key once: the greatest ordering value, of equals the later; or simply the last."""
        left: dict[Identity, tuple[Identity, Row]] = {}
        for key, row in batch:
            scope = self.scope(key)
            if scope not in left or last or self.ordering(left[scope][1]) <= self.ordering(row):
                left[scope] = (key, row)
        return list(left.values())

    def outcome(self, stored: Version, new: Version) -> Version | None:
        """What becomes of a stored row that meets another; None: it goes."""
        if new.after_delete:
            return new
        by_ordering = self.payload == BY_ORDERING and self.shape.ordering
        if by_ordering and above(self.ordering(stored.values), self.ordering(new.values)):
            return stored
        return None if deleted(new.values) else new

    def logged(self, log: Version | Tombstone | None, row: Row, instant: str) -> Version | Tombstone:
        """What a log says about a key once a further row has come into it."""
        if deleted(row):
            ordering = self.ordering(row) if self.shape.ordering else None
            if self.shape.ordering and self.shape.schema.field(self.shape.ordering).type == pa.int32() and not ordering:
                ordering = None  # an int 0 is what stands for "no ordering value"
            return self.tombstone(log, ordering)
        if isinstance(log, Version) and above(self.ordering(log.values), self.ordering(row)):
            return log
        return Version(row, instant, isinstance(log, Tombstone) or (log is not None and log.after_delete))

    def tombstone(self, log: Version | Tombstone | None, ordering: Any) -> Version | Tombstone:
        outranked = ordering is not None and isinstance(log, Version) and above(self.ordering(log.values), ordering)
        return log if outranked else Tombstone(ordering)  # type: ignore[return-value]


def above(one: Any, other: Any) -> bool:
    """Whether an ordering value is above another; null, which inserts may bring, is below all others."""
    return one is not None and bool(other is None or one > other)


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
    last = step.options.get("hoodie.combine.before.upsert") == "false"
    return _upserted(model, model.combined(model.batch(step), last), instant, placement)


def _upserted(model: TableModel, batch: Sequence[tuple[Identity, Row]], instant: str, placement: Placement) -> Outcome:
    rows = dict(model.rows)
    counts: Counter[str] = Counter()
    new = []
    for key, row in batch:
        if model.index.is_global:
            found = _globally(model, rows, key, row, instant, placement, counts)
        elif key in rows:
            hit, passed = _hits(model, rows[key])
            if hit or deleted(row) or not passed:
                rows[key] = (*passed, *_merged(model, hit, row, instant, placement, counts))
            else:  # it comes back in one of them, and counts as an update, as where one file group holds it
                first = min(copy.group for copy in passed)
                back = [copy for copy in passed if copy.group == first]
                others = [copy for copy in passed if copy.group != first]
                counts["updated"] += _rows_of_logs(model, back)
                rows[key] = (*others, *_brought_back(model, back, row, instant))
            found = True
        else:
            found = _in_bucket(model, rows, key, row, instant, placement, counts)
        if not found and not deleted(row):
            new.append((key, row))
    inserted = len(new) + counts["inserted"]
    return _placed(model, rows, new, instant, placement), Counts(inserted, counts["updated"], counts["deleted"])


def _globally(
    model: TableModel,
    rows: dict[Identity, tuple[Copy, ...]],
    key: Identity,
    row: Row,
    instant: str,
    placement: Placement,
    counts: Counter[str],
) -> bool:
    """A row under a global index: False when its key is new. Knows no duplicates: a key lives in one place at most."""
    there = [found for found, copies in rows.items() if found[1] == key[1] for _ in copies]
    if there == [key]:  # found where it says, once: nobody asks whether a log deleted it there
        rows[key] = _merged(model, rows[key], row, instant, placement, counts)
        return True
    live = next((found for found in there if any(map(model.visible, rows[found]))), None)
    if live is None:
        if key not in there or deleted(row):
            return False
        counts["inserted"] += 1
        rows[key] = _brought_back(model, rows[key], row, instant)
        return True
    stored = next(filter(None, map(model.visible, rows[live])))
    leaves = live != key and model.index.moves and not deleted(row)
    if not leaves or model.outcome(stored, Version(row, instant)) is stored:
        rows[live] = _merged(model, rows[live], row, instant, placement, counts)
        return True
    counts["deleted"] += 1
    gone = [copy for copy in rows[live] if copy.group not in placement.rewritten]
    rows[live] = tuple(_without(model, copy, instant) for copy in gone)
    if key in there:
        counts["inserted"] += 1
        rows[key] = _brought_back(model, rows[key], row, instant)
    return key in there


def _brought_back(model: TableModel, copies: Sequence[Copy], row: Row, instant: str) -> tuple[Copy, ...]:
    return tuple(
        replace(copy, log=model.logged(copy.log, row, instant), events=(*copy.events, (instant, row)))
        for copy in copies
    )


def _without(model: TableModel, copy: Copy, instant: str) -> Copy:
    return replace(copy, log=model.tombstone(copy.log, None), events=(*copy.events, (instant, None)))


def _in_bucket(
    model: TableModel,
    rows: dict[Identity, tuple[Copy, ...]],
    key: Identity,
    row: Row | None,
    instant: str,
    placement: Placement,
    counts: Counter[str],
) -> bool:
    """A key that the table does not have goes to the log of its bucket, if that has a file group with one. None: the
    key is deleted."""
    group = model.index.group(key, model.shape.keys, placement.appended)
    if group is None:
        return False
    log = model.tombstone(None, None) if row is None else model.logged(None, row, instant)
    rows[key] = (Copy(None, group, log, ((instant, row),)),)
    counts["deleted" if row is None or deleted(row) else "updated"] += 1
    return True


def _hits(model: TableModel, copies: Sequence[Copy]) -> tuple[Sequence[Copy], Sequence[Copy]]:
    """The copies of a key that a write goes to, and those that it passes by: where several file groups hold the key,
    those in which a log deleted it."""
    live = {copy.group for copy in copies if model.visible(copy)}
    if len({copy.group for copy in copies}) < 2:
        return copies, ()
    return [copy for copy in copies if copy.group in live], [copy for copy in copies if copy.group not in live]


def _merged(
    model: TableModel, copies: Sequence[Copy], row: Row, instant: str, placement: Placement, counts: Counter[str]
) -> tuple[Copy, ...]:
    after = []
    for copy in copies:
        if copy.group not in placement.rewritten:
            events = (*copy.events, (instant, row))
            after.append(replace(copy, log=model.logged(copy.log, row, instant), events=events))
            continue
        assert copy.log is None, "a file group with a log is not rewritten by a write"
        assert copy.base is not None
        base = model.outcome(copy.base, Version(row, instant))
        if base is not None:
            after.append(replace(copy, base=base))
        counts["updated"] += base is not None and base is not copy.base
        counts["deleted"] += base is None
    in_logs = _rows_of_logs(model, [copy for copy in copies if copy.group not in placement.rewritten])
    counts["deleted" if deleted(row) else "updated"] += in_logs
    return tuple(after)


def _rows_of_logs(model: TableModel, copies: Sequence[Copy]) -> int:
    """What the logs of file groups get of a key: where it was looked up in base files by partition a row for each that
    these have of it, and one for a group that has it in logs alone; else one a group."""
    by_row = not (model.index.is_global or model.index.buckets)
    stored = Counter(copy.group for copy in copies if by_row and copy.base is not None)
    return sum(max(1, stored[group]) for group in {copy.group for copy in copies})


def _insert(model: TableModel, step: Step, instant: str, placement: Placement) -> Outcome:
    if model.index.buckets and model.in_logs:  # a log has each key once
        last = step.options.get("hoodie.combine.before.insert") != "true"
        return _upserted(model, model.combined(model.batch(step), last), instant, placement)
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
        if model.index.is_global:
            count += _deleted_globally(model, rows, key, instant, placement)
            continue
        counts: Counter[str] = Counter()
        if key not in rows and _in_bucket(model, rows, key, None, instant, placement, counts):
            count += counts["deleted"]
            continue
        copies, passed = _hits(model, rows.pop(key, ()))
        rewritten = [copy for copy in copies if copy.group in placement.rewritten]
        left = [copy for copy in copies if copy.group not in placement.rewritten]
        rows[key] = (*passed, *(_without(model, copy, instant) for copy in left))
        count += len(rewritten) + _rows_of_logs(model, left)
    return rows, Counts(deleted=count)


def _deleted_globally(
    model: TableModel, rows: dict[Identity, tuple[Copy, ...]], key: Identity, instant: str, placement: Placement
) -> int:
    there = [found for found, copies in rows.items() if found[1] == key[1] for _ in copies]
    alone = there == [("", key[1])]  # in a table without partitions
    for found in set(there):
        if alone or any(map(model.visible, rows[found])):
            left = [copy for copy in rows[found] if copy.group not in placement.rewritten]
            rows[found] = tuple(_without(model, copy, instant) for copy in left)
            return 1
    return 0


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


def as_brought(table: pa.Schema | None, step: Step) -> pa.Schema:
    """The columns of a batch in the types that rows without Spark are written with: whole numbers stay whole, and a
    column without a value has the table's type."""
    if table is None:
        return step.schema
    kinds = {column.name: column.type for column in table}

    def brought(column: pa.Field) -> pa.Field:
        kind, have = kinds.get(column.name, column.type), column.type
        filled = [row[column.name] for row in step.rows if row.get(column.name) is not None]
        if step.rows and not filled:
            return column.with_type(kind)
        if pa.types.is_floating(have) and pa.types.is_integer(kind):
            limit = 2 ** (kind.bit_width - 1)
            whole = all(math.isfinite(v) and v == int(v) and -limit <= v < limit for v in filled)
            return column.with_type(kind) if whole else column
        return column

    return pa.schema([brought(column) for column in step.schema])


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
    rewritten, new, appended = set(), [], set()
    for stats in commit.stats.values():
        for stat in stats:
            if stat.log_version is None:
                assert stat.path is not None
                rewritten.add(stat.file_id)
                rows = pq.read_table(io.BytesIO(storage.read(stat.path))).to_pylist()
                new += [(stat.file_id, row) for row in rows if row["_hoodie_commit_time"] == instant]
            else:
                appended.add((stat.partition or "", stat.file_id))
    return Placement(frozenset(rewritten), new, frozenset(appended))


def text_of(rows: pa.Table) -> list[str]:
    """The rows as sorted texts: columns by name, -0.0 apart from 0.0, NaN equal to NaN."""
    names = sorted(rows.column_names)
    return sorted(repr([(name, row[name]) for name in names]) for row in rows.select(names).to_pylist())
