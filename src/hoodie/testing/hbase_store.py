"""The cells of a stand-in HBase: versions by timestamp, and tombstones that hide them until a major compaction.

Modelled on what HBase 0.98 and 1.4 do: a delete hides every version up to its timestamp, also one that is put later;
versions beyond the family's number are dropped late, so that a read bounded by time still sees them.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

#: column b"family:qualifier" -> (value, timestamp)
Cells = dict[bytes, tuple[bytes, int]]


@dataclass(slots=True)
class Row:
    """What is stored of a row.

    cells       column -> timestamp -> value
    tombstones  column, or family with its colon -> the timestamp up to which versions are hidden
    """

    cells: dict[bytes, dict[int, bytes]] = field(default_factory=dict)
    tombstones: dict[bytes, int] = field(default_factory=dict)

    def versions(self, column: bytes, before: int | None = None) -> list[tuple[bytes, int]]:
        """The versions that are not hidden, newest first.

        before  timestamp, exclusive
        """
        hidden = max(self.tombstones.get(column, -1), self.tombstones.get(family_of(column), -1))
        cells = self.cells.get(column, {})
        times = sorted((t for t in cells if t > hidden and (before is None or t < before)), reverse=True)
        return [(cells[t], t) for t in times]

    def read(self, columns: Sequence[bytes] | None, before: int | None = None) -> Cells:
        """The newest version of each of the columns (also: b"family:", or None for all) that has one."""
        names = None if columns is None else set(columns)
        shown: Cells = {}
        for column in sorted(self.cells):
            if names is None or column in names or family_of(column) in names:
                versions = self.versions(column, before)
                if versions:
                    shown[column] = versions[0]
        return shown


@dataclass(slots=True)
class StoredTable:
    """families      name with its colon -> versions that it keeps
    time_to_live  seconds after which cells expire, as the table says: nothing expires here
    """

    families: dict[bytes, int]
    rows: dict[bytes, Row] = field(default_factory=dict)
    enabled: bool = True
    time_to_live: int = 2**31 - 1

    def major_compact(self) -> None:
        """Drop what is hidden, and versions beyond the family's number; then forget the tombstones."""
        for key, row in list(self.rows.items()):
            for column in list(row.cells):
                versions = row.versions(column)[: self.families[family_of(column)]]
                row.cells[column] = {stamp: value for value, stamp in versions}
                if not versions:
                    del row.cells[column]
            row.tombstones.clear()
            if not row.cells:
                del self.rows[key]


class HBaseStore:
    """Tables by name. Calls are one at a time, as rows of a region are."""

    def __init__(self) -> None:
        self.tables: dict[bytes, StoredTable] = {}
        self.lock = threading.RLock()
        self.stopping = False
        self.changed = threading.Condition(self.lock)  # a table was enabled, or the gateway stops

    def create(self, name: bytes, families: Mapping[bytes, int]) -> None:
        """A new table; families as `StoredTable` has them."""
        with self.lock:
            self.tables[name] = StoredTable(dict(families))

    def put(self, table: StoredTable, row: bytes, column: bytes, value: bytes, timestamp: int | None) -> None:
        cells = table.rows.setdefault(row, Row()).cells
        cells.setdefault(column, {})[now() if timestamp is None else timestamp] = value

    def delete(self, table: StoredTable, row: bytes, target: bytes, timestamp: int | None) -> None:
        """Hide the versions of a column, or of a family (with its colon), up to a timestamp."""
        tombstones = table.rows.setdefault(row, Row()).tombstones
        tombstones[target] = max(tombstones.get(target, -1), now() if timestamp is None else timestamp)


@dataclass(slots=True)
class Scanner:
    """The rows from `start` on that a filter lets pass; what it shows of a row is as of when it gets there."""

    table: StoredTable
    columns: Sequence[bytes] | None
    before: int | None
    conditions: Mapping[bytes, bytes]
    sorted: bool
    keys: Iterator[bytes]

    def next(self) -> tuple[bytes, Cells] | None:
        for key in self.keys:
            row = self.table.rows.get(key)
            if row is None:
                continue
            cells = row.read(self.columns, self.before)  # a filter sees the scan's columns only
            if cells and all(cells.get(column, (None, 0))[0] == value for column, value in self.conditions.items()):
                return key, cells
        return None


def family_of(column: bytes) -> bytes:
    """The family with its colon."""
    return column.partition(b":")[0] + b":"


def now() -> int:
    """The server's clock, ms since 1970."""
    return time.time_ns() // 1_000_000
