"""One connection to HBase's Thrift gateway: batches, rates, calls repeated on a new connection.

Every mutation has an explicit timestamp, so that a call can be repeated, and no delete hides a later put.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any, TypeVar

from hoodie.config.hbase import HBaseOptions
from hoodie.errors import IndexUnavailable, InvalidOption

T = TypeVar("T")

FAMILY = b"_s"
#: column b"family:qualifier" -> a cell, with `value` and `timestamp`
Cells = dict[bytes, Any]

#: Rows that a scanner brings at a time.
_SCAN_BATCH = 1000
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 10.0  # seconds between two tries of a call


def require_happybase() -> ModuleType:
    """The module happybase. Raises InvalidOption naming the extra that brings it."""
    try:
        import happybase
        import tenacity  # noqa: F401
    except ImportError as missing:
        raise InvalidOption(
            f"hoodie.index.type=HBASE needs {missing.name or 'happybase'}: pip install 'hoodie[hbase]', for the "
            "driver's Python and for that of the executors"
        ) from missing
    return happybase  # type: ignore[no-any-return]  # untyped


@dataclass(slots=True)
class Rate:
    """At most `limit` rows a second; as many may go at once when none did for a second."""

    limit: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    waited: float = 0.0  # seconds so far
    _left: float = field(init=False)
    _at: float = field(init=False)

    def __post_init__(self) -> None:
        self._left, self._at = self.limit, self.clock()

    def take(self, rows: int) -> None:
        """Wait until `rows` may go."""
        self._refill()
        missing = min(rows, self.limit) - self._left
        if missing > 0:
            self.sleep(missing / self.limit)
            self.waited += missing / self.limit
            self._refill()
        self._left -= min(rows, self.limit)

    def _refill(self) -> None:
        now = self.clock()
        self._left = min(self.limit, self._left + (now - self._at) * self.limit)
        self._at = now


class HBaseClient:
    """Calls on the index table. For one thread; a `with` block closes the connection.

    All methods raise IndexUnavailable once a call has failed as often as it may, or when table or family is missing.
    """

    def __init__(self, options: HBaseOptions) -> None:
        self._happybase = require_happybase()
        self._options = options
        self._name = options.table.encode()
        self._connection: Any = None
        self.calling = 0.0  # seconds that calls took, their answers decoded
        self._gets = Rate(10 * options.get_batch)
        self._puts = Rate(options.put_batch)
        self._put_batch = options.put_batch
        if options.put_autocompute:
            self._limit_puts()

    @property
    def waited(self) -> float:
        """Seconds waited because of the rates."""
        return self._gets.waited + self._puts.waited

    @property
    def where(self) -> str:
        return f"HBase at {self._options.host}:{self._options.port}"

    def __enter__(self) -> HBaseClient:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()
            self._connection = None

    def check_table(self) -> None:
        """Raises IndexUnavailable when the table or its column family is missing."""
        self._call("getColumnDescriptors", lambda client: client.getColumnDescriptors(self._name))
        self._refuse_missing()

    def get(self, rows: Sequence[bytes], columns: Sequence[bytes]) -> dict[bytes, Cells]:
        """The newest cells of some rows; rows that have none are left out."""
        found: dict[bytes, Cells] = {}
        for batch in _batches(rows, self._options.get_batch):
            self._gets.take(len(batch))
            answer = self._call("getRowsWithColumns", partial(_get, self._name, batch, list(columns)))
            found.update((row.row, row.columns) for row in answer)
        return found

    def get_before(self, row: bytes, columns: Sequence[bytes], timestamp: int) -> Cells:
        """The newest cells of a row that are older than a timestamp."""
        self._gets.take(1)
        answer = self._call(
            "getRowWithColumnsTs",
            lambda client: client.getRowWithColumnsTs(self._name, row, list(columns), timestamp, {}),
        )
        return answer[0].columns if answer else {}

    def put(self, rows: Sequence[bytes], cells: Sequence[Sequence[tuple[bytes, bytes]]], timestamp: int) -> None:
        """Put the cells (column, value) of each row."""
        from Hbase_thrift import BatchMutation, Mutation

        mutations = [
            BatchMutation(row, [Mutation(False, column, value) for column, value in of_row])
            for row, of_row in zip(rows, cells, strict=True)
        ]
        self._mutate(mutations, timestamp)

    def delete(self, rows: Sequence[bytes], columns: Sequence[bytes], timestamp: int) -> None:
        """Hide the versions of some columns up to a timestamp; of a whole family where only that is named."""
        from Hbase_thrift import BatchMutation, Mutation

        self._mutate([BatchMutation(row, [Mutation(True, column) for column in columns]) for row in rows], timestamp)

    def scan(self, columns: Sequence[bytes], filter: bytes | None = None) -> Iterator[tuple[bytes, Cells]]:
        """All rows in the order of their keys; with HBase's filter language only those that pass.

        A scanner that breaks is opened again after the last row that came.
        """
        from Hbase_thrift import TScan

        after = b""
        while True:
            scan = TScan(startRow=after, columns=list(columns), caching=_SCAN_BATCH, filterString=filter)
            part = self._call("scan", partial(_scan_part, self._name, scan))
            yield from ((row.row, row.columns) for row in part)
            if len(part) < _SCAN_BATCH:
                return
            after = part[-1].row + b"\0"  # the next key in HBase's order

    # --- beneath ---

    def _mutate(self, mutations: Sequence[Any], timestamp: int) -> None:
        for batch in _batches(mutations, self._put_batch):
            self._puts.take(len(batch))
            self._call("mutateRowsTs", partial(_mutate, self._name, batch, timestamp))

    def _limit_puts(self) -> None:
        regions = self._call("getTableRegions", lambda client: client.getTableRegions(self._name))
        servers = len({(region.serverName, region.port) for region in regions})
        self._put_batch = put_batch_size(self._options, max(1, servers))
        self._puts = Rate(self._put_batch)

    def _call(self, name: str, call: Callable[[Any], T]) -> T:
        from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

        tries = Retrying(
            stop=stop_after_attempt(1 + self._options.retries),
            wait=wait_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT),
            retry=retry_if_exception_type(_TryAgain),
            reraise=True,
        )
        try:
            result: T = tries(self._once, call)
        except _TryAgain as failed:
            cause = failed.__cause__
            raise IndexUnavailable(
                f"{self.where}: {name} of table {self._options.table!r} failed {1 + self._options.retries} times, at "
                f"last with {_shown(cause)}. Is the Thrift gateway up, and does it reach the region servers?"
            ) from cause
        return result

    def _once(self, call: Callable[[Any], T]) -> T:
        """One try. Raises _TryAgain where another may succeed."""
        from Hbase_thrift import IllegalArgument
        from Hbase_thrift import IOError as HBaseIOError
        from thriftpy2.protocol.exc import TProtocolException
        from thriftpy2.thrift import TApplicationException
        from thriftpy2.transport import TTransportException

        begun = time.perf_counter()
        try:
            if self._connection is None:
                self._connection = self._open()
            return call(self._connection.client)
        except HBaseIOError as problem:  # the connection is good; its messages differ between releases: ask
            self._refuse_missing()
            raise _TryAgain from problem
        except IllegalArgument as problem:
            raise IndexUnavailable(f"{self.where} refuses a call: {_shown(problem)}") from problem
        except TApplicationException as problem:
            self.close()
            if problem.type == TApplicationException.UNKNOWN_METHOD:
                raise IndexUnavailable(
                    f"{self.where} does not know a call: {_shown(problem)}. Is it a Thrift-1 gateway of HBase 0.98 or "
                    "later (`hbase thrift start`, not thrift2)?"
                ) from problem
            raise _TryAgain from problem
        except (OSError, TTransportException, TProtocolException) as problem:
            self.close()  # the answer of this call may still be on its way
            raise _TryAgain from problem
        finally:
            self.calling += time.perf_counter() - begun

    def _open(self) -> Any:
        from Hbase_thrift import Hbase
        from thriftpy2.protocol import TBinaryProtocol
        from thriftpy2.thrift import TClient
        from thriftpy2.transport import TBufferedTransport, TFramedTransport, TSocket

        given = self._options
        connection = self._happybase.Connection(given.host, given.port, autoconnect=False)
        # happybase's own transport has one time for connecting and for calls.
        socket = TSocket(
            given.host, given.port, socket_timeout=given.call_timeout, connect_timeout=given.connect_timeout
        )
        connection.transport = (TFramedTransport if given.framed else TBufferedTransport)(socket)
        connection.client = TClient(Hbase, TBinaryProtocol(connection.transport, decode_response=False))
        connection.open()
        return connection

    def _refuse_missing(self) -> None:
        """Raises IndexUnavailable when that is why a call failed; _TryAgain when even this cannot be found out."""
        from Hbase_thrift import IOError as HBaseIOError

        table = self._options.table
        client = self._connection.client
        try:
            names = {name.removeprefix(b"default:") for name in client.getTableNames()}
            if self._name.removeprefix(b"default:") not in names:
                raise IndexUnavailable(
                    f"{self.where} has no table {table!r}, which hoodie.index.hbase.table names. Create it in the "
                    f"HBase shell: create '{table}', '{FAMILY.decode()}'; then `hoodie index rebuild` if the table "
                    "has rows."
                )
            families = {family.rstrip(b":") for family in client.getColumnDescriptors(self._name)}
        except HBaseIOError as problem:
            raise _TryAgain from problem
        if FAMILY not in families:
            raise IndexUnavailable(
                f"{self.where}: table {table!r} has no column family '{FAMILY.decode()}'. Add it in the HBase shell: "
                f"alter '{table}', '{FAMILY.decode()}'; or name another table in hoodie.index.hbase.table."
            )


class _TryAgain(Exception):
    """A call failed for a reason that may pass; the cause is chained."""


def put_batch_size(options: HBaseOptions, region_servers: int, tasks: int = 1, executors: int = 1) -> int:
    """Entries that a task puts a second, and at once, so that all of them stay within the share of HBase's requests.

    Source  docs/format/indexing-and-write-path.md 5
    """
    most = int(options.qps_fraction * region_servers * options.region_server_qps)
    parallel = max(1, min(tasks, executors))
    return max(1, -(-most // parallel))


def _get(table: bytes, rows: Sequence[bytes], columns: Sequence[bytes], client: Any) -> Any:
    return client.getRowsWithColumns(table, rows, columns, {})


def _mutate(table: bytes, mutations: Sequence[Any], timestamp: int, client: Any) -> None:
    client.mutateRowsTs(table, mutations, timestamp, {})


def _scan_part(table: bytes, scan: Any, client: Any) -> list[Any]:
    """The first rows of a scan: one scanner, opened and closed."""
    number = client.scannerOpenWithScan(table, scan, {})
    found: list[Any] = []
    try:
        while len(found) < _SCAN_BATCH:
            rows = client.scannerGetList(number, _SCAN_BATCH - len(found))
            if not rows:
                break
            found += rows
    finally:
        client.scannerClose(number)
    return found


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _shown(problem: BaseException | None) -> str:
    """Thrift's exceptions may have bytes for their message, on which `str` fails; a Java stack trace is long."""
    message = getattr(problem, "message", None)
    if isinstance(message, bytes):
        message = message.decode(errors="replace")
    text = message.splitlines()[0] if isinstance(message, str) and message else repr(problem)
    return f"{type(problem).__name__}: {text[:300]}"
