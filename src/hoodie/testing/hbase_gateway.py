"""The calls of HBase's Thrift-1 interface on stored cells, as strict as the real gateway."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import happybase  # noqa: F401  # its import makes the module Hbase_thrift
from Hbase_thrift import (
    AlreadyExists,
    BatchMutation,
    ColumnDescriptor,
    IllegalArgument,
    Mutation,
    TCell,
    TColumn,
    TRegionInfo,
    TRowResult,
    TScan,
)
from Hbase_thrift import IOError as HBaseIOError
from thriftpy2.thrift import TApplicationException

from hoodie.testing.hbase_store import Cells, HBaseStore, Row, Scanner, StoredTable, family_of

#: The longest row key of HBase, bytes.
MAX_ROW = 32_767
_TABLE_NAME = re.compile(rb"(?:[\w]+:)?(?!zookeeper\Z)\w[\w.-]*")
_FILTER = re.compile(
    rb"SingleColumnValueFilter\s*\(\s*'([^']*)'\s*,\s*'([^']*)'\s*,\s*=\s*,\s*'binary:([^']*)'"
    rb"\s*(?:,\s*(?:true|false)\s*,\s*(?:true|false)\s*)?\)"
)


#: A multi-get of more rows than this on a disabled table does not fail: it blocks.
LARGE_GET = 10


class UnexpectedError(Exception):
    """What the gateway does not turn into an exception of its interface: it closes the connection; HBase 2.5's answers
    with an internal error.
    """


class Gateway:
    """One connection. Scanners belong to it; the store is shared."""

    def __init__(self, store: HBaseStore, blocks: float = 600.0) -> None:
        """blocks  seconds that calls on a disabled table wait for it to be enabled, which do not fail at once"""
        self._store = store
        self._blocks = blocks
        self._scanners: dict[int, Scanner] = {}
        self._last_scanner = 0

    def method(self, name: str) -> Callable[..., Any]:
        """A call by its name. One that this stand-in does not serve is answered as one that a gateway lacks."""
        if name.startswith("_") or name == "method" or not hasattr(self, name):
            return _invalid_method(name)
        call: Callable[..., Any] = getattr(self, name)
        return call

    # --- tables ---

    def getTableNames(self) -> list[bytes]:
        return sorted(self._store.tables)

    def createTable(self, name: bytes, families: Sequence[ColumnDescriptor]) -> None:
        if not _TABLE_NAME.fullmatch(name or b""):
            raise IllegalArgument(message=f"Illegal character in table name {name!r}")
        if name in self._store.tables:
            raise AlreadyExists(message=f"table name already in use: {_text(name)}")
        if not families:
            raise IllegalArgument(message="Table should have at least one column family")
        self._store.create(name, {family_of(f.name.rstrip(b":")): f.maxVersions for f in families})

    def getColumnDescriptors(self, name: bytes) -> dict[bytes, ColumnDescriptor]:
        table = self._table(name, enabled=False)
        return {
            family: ColumnDescriptor(name=family, maxVersions=versions, timeToLive=table.time_to_live)
            for family, versions in table.families.items()
        }

    def getTableRegions(self, name: bytes) -> list[TRegionInfo]:
        if self._checked(name) not in self._store.tables:
            return []  # a table that is missing has no regions, and that is no error
        region = name + b",,1.0."
        return [TRegionInfo(b"", b"", 1, region, 1, b"127.0.0.1", 16020)]

    def enableTable(self, name: bytes) -> None:
        table = self._table(name, enabled=False)
        if table.enabled:
            raise HBaseIOError(message=f"org.apache.hadoop.hbase.TableNotDisabledException: {_text(name)}")
        with self._store.changed:
            table.enabled = True
            self._store.changed.notify_all()

    def disableTable(self, name: bytes) -> None:
        self._table(name).enabled = False

    def isTableEnabled(self, name: bytes) -> bool:
        return self._table(name, enabled=False).enabled

    def deleteTable(self, name: bytes) -> None:
        if self._table(name, enabled=False).enabled:
            raise HBaseIOError(message="table is enabled")
        del self._store.tables[name]

    def majorCompact(self, name: bytes) -> None:
        with self._store.lock:
            self._table(name).major_compact()

    # --- reading ---

    def getRow(self, table: bytes, row: bytes, attributes: Any) -> list[TRowResult]:
        return self._rows(table, [row], None, None)

    def getRowWithColumns(
        self, table: bytes, row: bytes, columns: Sequence[bytes] | None, attributes: Any
    ) -> list[TRowResult]:
        return self._rows(table, [row], columns, None)

    def getRowWithColumnsTs(
        self, table: bytes, row: bytes, columns: Sequence[bytes] | None, timestamp: int, attributes: Any
    ) -> list[TRowResult]:
        return self._rows(table, [row], columns, timestamp)

    def getRows(self, table: bytes, rows: Sequence[bytes], attributes: Any) -> list[TRowResult]:
        return self._rows(table, rows, None, None)

    def getRowsWithColumns(
        self, table: bytes, rows: Sequence[bytes], columns: Sequence[bytes] | None, attributes: Any
    ) -> list[TRowResult]:
        return self._rows(table, rows, columns, None)

    def getRowsWithColumnsTs(
        self, table: bytes, rows: Sequence[bytes], columns: Sequence[bytes] | None, timestamp: int, attributes: Any
    ) -> list[TRowResult]:
        return self._rows(table, rows, columns, timestamp)

    def getVer(self, table: bytes, row: bytes, column: bytes, count: int, attributes: Any) -> list[TCell]:
        return self._versions(table, row, column, count, None)

    def getVerTs(
        self, table: bytes, row: bytes, column: bytes, timestamp: int, count: int, attributes: Any
    ) -> list[TCell]:
        return self._versions(table, row, column, count, timestamp)

    # --- writing ---

    def mutateRows(self, table: bytes, batches: Sequence[BatchMutation], attributes: Any) -> None:
        self._mutate(table, batches, None)

    def mutateRowsTs(self, table: bytes, batches: Sequence[BatchMutation], timestamp: int, attributes: Any) -> None:
        if timestamp < 0:
            raise UnexpectedError(f"Timestamp cannot be negative. ts={timestamp}")
        self._mutate(table, batches, timestamp)

    def checkAndPut(
        self, table: bytes, row: bytes, column: bytes, value: bytes | None, put: Mutation, attributes: Any
    ) -> bool:
        with self._store.lock:
            rows = self._rows(table, [row], [column], None)
            present = rows[0].columns[column].value if rows else None
            if present != value:
                return False
            self._mutate(table, [BatchMutation(row, [put])], None)
            return True

    # --- scanning ---

    def scannerOpenWithScan(self, name: bytes, scan: TScan, attributes: Any) -> int:
        with self._store.lock:
            table = self._table(name)
            _check_families(table, scan.columns)
            start, stop = scan.startRow or b"", scan.stopRow or b""
            keys = sorted(table.rows, reverse=bool(scan.reversed))
            if scan.reversed:
                keys = [k for k in keys if (not start or k <= start) and k > stop]
            else:
                keys = [k for k in keys if k >= start and (not stop or k < stop)]
        conditions = _parse_filter(scan.filterString)
        columns = _whole_families(scan.columns)
        self._last_scanner += 1
        self._scanners[self._last_scanner] = Scanner(
            table, columns, scan.timestamp, conditions, bool(scan.sortColumns), iter(keys)
        )
        return self._last_scanner

    def scannerGetList(self, number: int, count: int) -> list[TRowResult]:
        scanner = self._scanner(number)
        results: list[TRowResult] = []
        with self._store.lock:
            while len(results) < count and (row := scanner.next()) is not None:
                results.append(_result(*row, as_list=scanner.sorted))
        return results

    def scannerClose(self, number: int) -> None:
        self._scanner(number)
        del self._scanners[number]

    # --- beneath ---

    def _scanner(self, number: int) -> Scanner:
        if number not in self._scanners:
            raise IllegalArgument(message="scanner ID is invalid")
        return self._scanners[number]

    def _checked(self, name: bytes) -> bytes:
        """A table name that HBase allows. What it says of others, the gateway does not expect."""
        if not _TABLE_NAME.fullmatch(name or b""):
            raise UnexpectedError(f"Illegal table name {name!r}")
        return name

    def _enabled(self, name: bytes) -> None:
        """Wait until a table is enabled, as long as the region servers' client does.

        The caller of the gateway may be gone by then: what it asked for is done all the same.
        """
        with self._store.changed:
            table = self._table(name, enabled=False)
            if not self._store.changed.wait_for(lambda: table.enabled or self._store.stopping, self._blocks):
                raise HBaseIOError(message="org.apache.hadoop.hbase.client.RetriesExhaustedException: disabled")
            if not table.enabled:
                raise UnexpectedError("the gateway stops")

    def _table(self, name: bytes, *, enabled: bool = True) -> StoredTable:
        table = self._store.tables.get(self._checked(name))
        if table is None:
            raise HBaseIOError(message=f"org.apache.hadoop.hbase.TableNotFoundException: {_text(name)}")
        if enabled and not table.enabled:
            raise HBaseIOError(message=f"org.apache.hadoop.hbase.TableNotEnabledException: {_text(name)} is disabled.")
        return table

    @contextmanager
    def _locked(self, name: bytes, rows: Sequence[bytes]) -> Iterator[StoredTable]:
        with self._store.lock:
            table = self._table(name)
            for row in rows:
                if not row:
                    raise UnexpectedError("Row length is 0")
                if len(row) > MAX_ROW:
                    raise UnexpectedError(f"Row length {len(row)} is > {MAX_ROW}")
            yield table

    def _rows(
        self, name: bytes, keys: Sequence[bytes], columns: Sequence[bytes] | None, before: int | None
    ) -> list[TRowResult]:
        if len(keys) > LARGE_GET:
            self._enabled(name)
        with self._locked(name, keys) as table:
            _check_families(table, columns)
            columns = _whole_families(columns)
            rows = ((key, table.rows[key].read(columns, before)) for key in keys if key in table.rows)
            return [_result(key, cells, as_list=False) for key, cells in rows if cells]

    def _versions(self, name: bytes, row: bytes, column: bytes, count: int, before: int | None) -> list[TCell]:
        with self._locked(name, [row]) as table:
            _check_families(table, [column])
            most = min(count, table.families[family_of(column)])
            return [TCell(*cell) for cell in table.rows.get(row, Row()).versions(column, before)[:most]]

    def _mutate(self, name: bytes, batches: Sequence[BatchMutation], timestamp: int | None) -> None:
        """All puts, then all deletes: what is deleted and put with one timestamp is gone."""
        self._enabled(name)
        with self._locked(name, [batch.row for batch in batches]) as table:
            flat = [(batch.row, m) for batch in batches for m in batch.mutations]
            for _, m in flat:
                if not m.isDelete and (b":" not in m.column or m.value is None):
                    raise UnexpectedError("No column qualifier or no value specified in a put")
            _check_families(table, [m.column for _, m in flat])
            for row, m in flat:
                if not m.isDelete:
                    self._store.put(table, row, m.column, m.value, timestamp)
            for row, m in flat:
                if m.isDelete:
                    family, _, qualifier = m.column.partition(b":")
                    self._store.delete(table, row, family + b":" + qualifier, timestamp)


def _invalid_method(name: str) -> Callable[..., Any]:
    def refuse(*arguments: object) -> Any:
        raise TApplicationException(TApplicationException.UNKNOWN_METHOD, f"Invalid method name: '{name}'")

    return refuse


def _check_families(table: StoredTable, columns: Sequence[bytes] | None) -> None:
    for column in columns or ():
        if family_of(column) not in table.families:
            family = _text(column.partition(b":")[0])
            raise HBaseIOError(
                message="org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException: "
                f"Column family {family} does not exist in region"
            )


def _whole_families(columns: Sequence[bytes] | None) -> list[bytes] | None:
    """Columns as stored: a family may be named with its colon or without. None and empty: all columns."""
    return [c if b":" in c else c + b":" for c in columns] if columns else None


def _parse_filter(text: bytes | None) -> dict[bytes, bytes]:
    """column -> value that rows must have. Only equality of a column is served."""
    if not text:
        return {}
    match = _FILTER.fullmatch(text.strip())
    if match is None:
        raise UnexpectedError(f"Incorrect filter string {text!r}")
    family, qualifier, value = match.groups()
    return {family + b":" + qualifier: value}


def _result(row: bytes, cells: Cells, *, as_list: bool) -> TRowResult:
    if as_list:
        return TRowResult(row=row, sortedColumns=[TColumn(c, TCell(*cell)) for c, cell in sorted(cells.items())])
    return TRowResult(row=row, columns={column: TCell(*cell) for column, cell in cells.items()})


def _text(name: bytes) -> str:
    return name.decode(errors="replace")
