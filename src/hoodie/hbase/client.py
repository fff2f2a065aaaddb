"""One connection to HBase's Thrift gateway: batches, rates, calls repeated on a new connection.

Every mutation has an explicit timestamp, so that a call can be repeated, and no delete hides a later put.
"""

from __future__ import annotations

import math
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from hoodie.config.hbase import HBaseOptions
from hoodie.errors import IndexUnavailable, clause
from hoodie.hbase.connect import TABLE_NAMES, Channel, open_channel, require_happybase

T = TypeVar("T")

FAMILY = b"_s"
#: column b"family:qualifier" -> a cell, with `value` and `timestamp`
Cells = dict[bytes, Any]

#: Rows that a scanner brings at a time.
_SCAN_BATCH = 1000
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 10.0  # seconds between two tries of a call
_TIME_TO_EXPLAIN = 5.0  # seconds that it may take to find out why a call failed
_FOREVER = 2**31 - 1  # the time to live of cells that do not expire
#: Java exceptions that HBase does not retry either: the same call fails again.
_LASTING = (
    "DoNotRetryIOException",
    "AccessDeniedException",
    "NoSuchColumnFamilyException",
    "TableNotFoundException",
    "NamespaceNotFoundException",
    "InvalidFamilyOperationException",
    "RowTooBigException",
    "CorruptHFileException",
)
#: Bytes of a message beside keys, columns and values: once, of a row of puts, of a cell.
_MESSAGE_BYTES, _ROW_BYTES, _CELL_BYTES = 256, 16, 23


@dataclass(slots=True)
class Rate:
    """At most `limit` rows a second; as many may be sent at once after an idle second."""

    limit: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    waited: float = 0.0  # seconds so far
    _available: float = field(init=False)
    _at: float = field(init=False)

    def __post_init__(self) -> None:
        self._available, self._at = self.limit, self.clock()

    def take(self, rows: int) -> None:
        """Wait until `rows` may be sent."""
        if math.isinf(self.limit):
            return
        self._refill()
        missing = min(rows, self.limit) - self._available
        if missing > 0:
            self.sleep(missing / self.limit)
            self.waited += missing / self.limit
            self._refill()
        self._available -= min(rows, self.limit)

    def _refill(self) -> None:
        now = self.clock()
        self._available = min(self.limit, self._available + (now - self._at) * self.limit)
        self._at = now


class HBaseClient:
    """Calls on the index table. For one thread; a `with` block closes the connection.

    All methods raise IndexUnavailable once a call has failed as often as it may or takes longer than it may, when table
    or family is missing, and when the table is disabled.

    limited  keep to the rates of the options, as writes do; False: repairs, which block other writers
    """

    def __init__(self, options: HBaseOptions, *, limited: bool = True) -> None:
        require_happybase()
        self._options = options
        self._name = options.table.encode()
        self._channel: Channel | None = None
        self._until = 0.0  # when the call that is made now must have ended
        self._gets = Rate(10 * options.get_batch if limited else math.inf)
        self._puts = Rate(options.put_batch if limited else math.inf)
        self._put_batch = options.put_batch
        if options.put_autocompute:
            self._limit_puts(limited)

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
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def check_table(self) -> None:
        """Raises IndexUnavailable when the table or its column family is missing, the table is disabled, or its cells
        expire.
        """
        self._call("getColumnDescriptors", lambda client: self._refuse_unfit(client))

    def is_empty(self) -> bool:
        """Whether the table has no row."""
        from Hbase_thrift import TScan

        scan = TScan(columns=[FAMILY], caching=1)
        return not self._call("scan", partial(_scan_part, self._name, scan, 1))

    def get(self, rows: Sequence[bytes], columns: Sequence[bytes]) -> dict[bytes, Cells]:
        """The newest cells of some rows; rows that have none are left out."""
        cells: dict[bytes, Cells] = {}
        for batch in batches(rows, self._options.get_batch, lambda row: len(row) + 4, self._options.max_message):
            self._gets.take(len(batch))
            answer = self._call("getRowsWithColumns", partial(_get, self._name, batch, list(columns)))
            cells.update((row.row, row.columns) for row in answer)
        return cells

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
            part = self._call("scan", partial(_scan_part, self._name, scan, _SCAN_BATCH))
            yield from ((row.row, row.columns) for row in part)
            if len(part) < _SCAN_BATCH:
                return
            after = part[-1].row + b"\0"  # the next key in HBase's order

    # --- beneath ---

    def _mutate(self, mutations: Sequence[Any], timestamp: int) -> None:
        for batch in batches(mutations, self._put_batch, _put_bytes, self._options.max_message):
            self._puts.take(len(batch))
            self._call("mutateRowsTs", partial(_mutate, self._name, batch, timestamp))

    def _limit_puts(self, limited: bool) -> None:
        regions = self._call("getTableRegions", lambda client: client.getTableRegions(self._name))
        if not regions:  # the gateway's error for a missing table
            self.check_table()
        servers = len({(region.serverName, region.port) for region in regions})
        self._put_batch = put_batch_size(self._options, max(1, servers))
        self._puts = Rate(self._put_batch if limited else math.inf)

    def _call(self, name: str, call: Callable[[Any], T]) -> T:
        from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, stop_before_delay, wait_exponential

        seconds = self._options.call_timeout / 1000
        begun = time.monotonic()
        self._until = begun + seconds
        tries = Retrying(
            stop=stop_after_attempt(1 + self._options.retries) | stop_before_delay(seconds),
            wait=wait_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT),
            retry=retry_if_exception_type(_TryAgain),
            reraise=True,
        )
        try:
            result: T = tries(self._attempt_once, call)
        except _TryAgain as failed:
            cause, took = failed.__cause__, time.monotonic() - begun
            self.close()
            self._refuse_table()
            count = tries.statistics["attempt_number"]
            times = "once" if count == 1 else f"{count} times"
            advice = "Is the Thrift gateway running, and does it reach the region servers?"
            if took >= 0.9 * seconds:
                advice = (
                    "The gateway accepted the call and did not answer: a region server may be down, or its regions "
                    "moving. hoodie.index.hbase.zk.session_timeout_ms is the time for a call."
                )
            raise IndexUnavailable(
                f"{self.where}: {name} of table {self._options.table!r} failed {times} in {took:.1f} s, at last "
                f"with {_problem_text(cause)}. {advice}"
            ) from cause
        return result

    def _attempt_once(self, call: Callable[[Any], T]) -> T:
        """One attempt. Raises _TryAgain where another may succeed."""
        from Hbase_thrift import IllegalArgument
        from Hbase_thrift import IOError as HBaseIOError
        from thriftpy2.protocol.exc import TProtocolException
        from thriftpy2.thrift import TApplicationException
        from thriftpy2.transport import TTransportException

        try:
            return call(self._connected())
        except HBaseIOError as problem:  # the connection is good; its messages differ between releases: ask
            self._explain(problem)
            raise _TryAgain from problem
        except IllegalArgument as problem:
            raise IndexUnavailable(f"{self.where} refuses a call: {_problem_text(problem)}") from problem
        except TApplicationException as problem:
            self.close()
            if problem.type == TApplicationException.UNKNOWN_METHOD:
                raise IndexUnavailable(
                    f"{self.where} does not know a call: {_problem_text(problem)}. Is it a Thrift-1 gateway of HBase "
                    "0.98 or later (`hbase thrift start`, not thrift2)?"
                ) from problem
            raise _TryAgain from problem
        except (OSError, TTransportException, TProtocolException) as problem:
            self.close()  # the answer of this call may still be on its way
            refusals = (problem, problem.__context__)  # of the latter thriftpy2 says only that it did not connect
            if certificate := next((e for e in refusals if isinstance(e, ssl.SSLCertVerificationError)), None):
                raise IndexUnavailable(
                    f"{self.where}: its certificate is not accepted: {clause(certificate.verify_message)}. "
                    "hoodie.index.hbase.thrift.ssl.ca.file names the authorities that are."
                ) from problem
            raise _TryAgain from problem

    def _connected(self) -> Any:
        """The client of an open connection, for what is left of the call's time."""
        seconds = max(0.001, self._until - time.monotonic())
        if self._channel is None:
            self._channel = open_channel(self._options, seconds)
            seconds = max(0.001, self._until - time.monotonic())
        self._channel.set_timeout(seconds)
        return self._channel.client

    def _explain(self, problem: Any) -> None:
        """Raises IndexUnavailable when an error of HBase's will not pass; _TryAgain when even this is not known."""
        from Hbase_thrift import IOError as HBaseIOError
        from thriftpy2.protocol.exc import TProtocolException
        from thriftpy2.thrift import TApplicationException
        from thriftpy2.transport import TTransportException

        try:
            self._refuse_unfit(self._connected())
        except HBaseIOError as second:
            if not is_temporary_problem(second):
                raise self._final(second) from second
            raise _TryAgain from second
        except (OSError, TTransportException, TProtocolException, TApplicationException) as second:
            self.close()
            raise _TryAgain from second
        if not is_temporary_problem(problem):
            raise self._final(problem) from problem

    def _final(self, problem: Any) -> IndexUnavailable:
        return IndexUnavailable(
            f"{self.where} refuses a call on table {self._options.table!r}: {_problem_text(problem)}"
        )

    def _refuse_unfit(self, client: Any) -> None:
        """Raises IndexUnavailable when the table is missing, disabled, without the family, or expires its cells.

        A call on a disabled table may block for minutes: so its state is checked first.
        """
        from Hbase_thrift import IOError as HBaseIOError

        table = self._options.table
        try:
            enabled = client.isTableEnabled(self._name)
            columns = client.getColumnDescriptors(self._name) if enabled else {}
        except HBaseIOError:
            names = {name.removeprefix(b"default:") for name in client.getTableNames()}
            if self._name.removeprefix(b"default:") in names:
                raise
            raise IndexUnavailable(
                f"{self.where} has no table {table!r}, which hoodie.index.hbase.table names. Create it in the "
                f"HBase shell: create '{table}', '{FAMILY.decode()}'; then `hoodie index rebuild` if the table "
                "has rows."
            ) from None
        if not enabled:
            raise self._disabled()
        families = {family.rstrip(b":"): described for family, described in columns.items()}
        if FAMILY not in families:
            raise IndexUnavailable(
                f"{self.where}: table {table!r} has no column family '{FAMILY.decode()}'. Add it in the HBase shell: "
                f"alter '{table}', '{FAMILY.decode()}'; or name another table in hoodie.index.hbase.table."
            )
        seconds = families[FAMILY].timeToLive
        if 0 < (seconds or 0) < _FOREVER:
            raise IndexUnavailable(
                f"{self.where}: the cells of table {table!r} expire after {seconds} s (TTL), and keys missing from the "
                f"index are written twice. Set in the HBase shell: alter '{table}', {{NAME => "
                f"'{FAMILY.decode()}', TTL => 'FOREVER'}}; then `hoodie index rebuild`."
            )

    def _disabled(self) -> IndexUnavailable:
        table = self._options.table
        return IndexUnavailable(
            f"{self.where}: table {table!r} is disabled. Enable it in the HBase shell: enable '{table}'"
        )

    def _refuse_table(self) -> None:
        """After a call that failed: raises IndexUnavailable when HBase refuses the table's name, or it is disabled.

        The gateway answers nothing to some calls on a disabled table, but does say that it is disabled. A call with a
        name that it refuses ends the connection (HBase 1.4) or is an internal error (2.5), others are answered.
        """
        from Hbase_thrift import IOError as HBaseIOError
        from thriftpy2.protocol.exc import TProtocolException
        from thriftpy2.thrift import TApplicationException
        from thriftpy2.transport import TTransportException

        unanswered = (OSError, TTransportException, TProtocolException, TApplicationException, HBaseIOError)
        try:
            enabled = self._on_own_connection(lambda client: client.isTableEnabled(self._name))
        except (TTransportException, TApplicationException, ConnectionError) as problem:
            with suppress(*unanswered):
                names = set(self._on_own_connection(lambda client: client.getTableNames()))
                if names.isdisjoint((self._name, self._name.removeprefix(b"default:"))):
                    raise IndexUnavailable(
                        f"{self.where} refuses the table name {self._options.table!r}, which hoodie.index.hbase.table "
                        f"has: it takes {TABLE_NAMES}"
                    ) from problem
            return
        except unanswered:
            return
        if not enabled:
            raise self._disabled()

    def _on_own_connection(self, call: Callable[[Any], T]) -> T:
        """The answer of a call on a connection of its own."""
        channel = open_channel(self._options, _TIME_TO_EXPLAIN)
        try:
            return call(channel.client)
        finally:
            channel.close()


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


def _scan_part(table: bytes, scan: Any, count: int, client: Any) -> list[Any]:
    """The first rows of a scan: one scanner, opened and closed."""
    number = client.scannerOpenWithScan(table, scan, {})
    scanned: list[Any] = []
    try:
        while len(scanned) < count:
            rows = client.scannerGetList(number, count - len(scanned))
            if not rows:
                break
            scanned += rows
    finally:
        client.scannerClose(number)
    return scanned


def is_temporary_problem(problem: Any) -> bool:
    """Whether a repeated call may succeed after an IOError of HBase's.

    HBase 2 says so; before, the message holds the Java exception and its causes.
    """
    if getattr(problem, "canRetry", None) is False:
        return False
    message = problem.message or b""
    text = message.decode(errors="replace") if isinstance(message, bytes) else message
    return not any(name in text for name in _LASTING)


def batches(
    items: Sequence[T], count: int, weigh: Callable[[T], int], most: int = sys.maxsize
) -> Iterator[Sequence[T]]:
    """Items in their order, at most `count` at a time, together not heavier than `most` unless one alone is."""
    start, weight = 0, _MESSAGE_BYTES
    for position, item in enumerate(items):
        heavy = weigh(item)
        if position > start and (position - start == count or weight + heavy > most):
            yield items[start:position]
            start, weight = position, _MESSAGE_BYTES
        weight += heavy
    if start < len(items):
        yield items[start:]


def _put_bytes(batch: Any) -> int:
    """What a row takes in a message, in the binary protocol: the compact one takes less."""
    cells = sum(len(mutation.column) + len(mutation.value or b"") + _CELL_BYTES for mutation in batch.mutations)
    return len(batch.row) + _ROW_BYTES + cells


def _problem_text(problem: BaseException | None) -> str:
    """Thrift's exceptions may have bytes for their message, on which `str` fails; a Java stack trace is long."""
    message = getattr(problem, "message", None)
    if isinstance(message, bytes):
        message = message.decode(errors="replace")
    text = message.splitlines()[0] if isinstance(message, str) and message else repr(problem)
    return f"{type(problem).__name__}: {text[:300]}"
