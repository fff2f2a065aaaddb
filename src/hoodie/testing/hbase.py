"""A stand-in for HBase's Thrift gateway: the Thrift-1 protocol over a loopback socket, with faults to inject.

    with HBaseServer() as hbase:
        hbase.create_table("trips_index")
        table.upsert(rows, hbase.options("trips_index"))

`python -m hoodie.testing.hbase --table trips_index` serves in a process of its own. Needs the extra `hbase`.
"""

from __future__ import annotations

import argparse
import os
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import happybase  # before Hbase_thrift, which its import makes
from Hbase_thrift import Hbase
from Hbase_thrift import IOError as HBaseIOError
from thriftpy2.thrift import TApplicationException, TProcessor
from thriftpy2.transport import TTransportException

from hoodie.hbase.mark import MARK
from hoodie.testing.hbase_gateway import Gateway, UnexpectedError
from hoodie.testing.hbase_serving import MAX_FRAME, serve
from hoodie.testing.hbase_store import HBaseStore


@dataclass(slots=True)
class Faults:
    """What goes wrong, until it is reset.

    delay       seconds that each call takes longer
    lost_puts   puts of this many rows to come are acknowledged and dropped
    errors      this many calls to come end in IOError, before they do anything
    hang_ups    for this many calls to come the connection is closed after the work is done, before the answer
    lasting     those IOErrors are ones that HBase says need not be tried again
    after       this many calls to come go through first, before one ends in IOError or the connection is closed
    calls       only calls of these names go wrong; empty: any
    """

    delay: float = 0.0
    lost_puts: int = 0
    errors: int = 0
    hang_ups: int = 0
    lasting: bool = False
    after: int = 0
    calls: frozenset[str] = frozenset()


class HBaseGateway:
    """A Thrift gateway that tests may use: this stand-in, or a real one (`gateway_for_tests`)."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.table_names: list[str] = []

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @contextmanager
    def connected(self) -> Iterator[happybase.Connection]:
        """A connection of happybase's, for looking."""
        connection = happybase.Connection(self.host, self.port, timeout=60_000)
        try:
            yield connection
        finally:
            connection.close()

    def create_table(self, name: str = "", versions: int = 1) -> str:
        """A table with the family of the index; without a name one that no other has. Returns its name."""
        name = name or f"hoodie_test_{uuid4().hex}"
        with self.connected() as connection:
            connection.create_table(name, {"_s": {"max_versions": versions}})
        self.table_names.append(name)
        return name

    def drop_tables(self) -> None:
        """Drop the tables that `create_table` made."""
        with self.connected() as connection:
            names = {name.encode() for name in self.table_names} & set(connection.tables())
            for name in names:
                connection.delete_table(name, disable=True)
        self.table_names.clear()

    def dump(self, table: str) -> dict[bytes, dict[bytes, bytes]]:
        """The entries that a scan of a table shows, without the index's mark: row -> column -> value."""
        with self.connected() as connection:
            return {row: cells for row, cells in connection.table(table).scan() if row != MARK}

    def options(self, table: str) -> dict[str, str]:
        """The options of a write with its index in `table`: few retries, and rates that a test does not feel."""
        return {
            "hoodie.index.type": "HBASE",
            "hoodie.index.hbase.thrift.host": self.host,
            "hoodie.index.hbase.thrift.port": str(self.port),
            "hoodie.index.hbase.thrift.max.retries": "2",
            "hoodie.index.hbase.table": table,
            "hoodie.index.hbase.get.batch.size": "1000",
            "hoodie.index.hbase.put.batch.size": "10000",
        }


@contextmanager
def gateway_for_tests() -> Iterator[HBaseGateway]:
    """The gateway that HOODIE_TEST_HBASE=host:port names; without it a stand-in. Tables made in it are dropped."""
    address = os.environ.get("HOODIE_TEST_HBASE", "")
    if not address:
        with HBaseServer() as server:
            yield server
        return
    host, _, port = address.rpartition(":")
    gateway = HBaseGateway(host, int(port))
    try:
        yield gateway
    finally:
        gateway.drop_tables()


class HBaseServer(HBaseGateway):
    """The stand-in. `store` has what it stores; `calls` counts calls by name, `seconds` is the time spent on them."""

    def __init__(
        self,
        port: int = 0,
        *,
        transport: str = "BUFFERED",
        protocol: str = "BINARY",
        tls: ssl.SSLContext | None = None,
        max_frame: int = MAX_FRAME,
        blocks: float = 600.0,
        internal_errors: bool = False,
    ) -> None:
        """
        port       to listen on, at 127.0.0.1; 0: any
        transport  BUFFERED, FRAMED or HTTP
        protocol   BINARY or COMPACT
        tls        of the server
        max_frame  bytes of a message, with the transport FRAMED
        blocks     seconds that puts, and large multi-gets, on a disabled table wait for it to be enabled
        internal_errors  as HBase 2.5 it says that an error is internal, where 1.4 closes the connection
        """
        super().__init__("127.0.0.1", port)
        self.transport, self.protocol, self.tls, self.max_frame = transport, protocol, tls, max_frame
        self.blocks, self.internal_errors = blocks, internal_errors
        self.store = HBaseStore()
        self.faults = Faults()
        self.calls: Counter[str] = Counter()
        self.seconds = 0.0
        self.connections = 0  # accepted since the start
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self._lock = threading.Lock()

    @property
    def open_connections(self) -> int:
        return len(self._open)

    def __enter__(self) -> HBaseServer:
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()

    @contextmanager
    def connected(self) -> Iterator[happybase.Connection]:
        """A connection of happybase's, for looking, whatever transport the clients use."""
        with HBaseServer._plain_port(self) as port:
            connection = happybase.Connection(self.host, port, timeout=60_000)
            try:
                yield connection
            finally:
                connection.close()

    @contextmanager
    def _plain_port(self) -> Iterator[int]:
        """A port where the plain protocol is spoken, without faults."""
        if (self.transport, self.protocol, self.tls) == ("BUFFERED", "BINARY", None):
            yield self.port
            return
        with HBaseServer() as plain:
            plain.store = self.store
            yield plain.port

    def options(self, table: str) -> dict[str, str]:
        named = {
            "hoodie.index.hbase.thrift.transport": self.transport,
            "hoodie.index.hbase.thrift.protocol": self.protocol,
        }
        return super().options(table) | named

    def start(self) -> None:
        """Begin to listen; after `stop` at the same port, with what is stored."""
        self.store.stopping = False
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stop(self) -> None:
        """HBase is down: connections are closed, new ones refused."""
        if self._listener is not None:
            with suppress(OSError):  # wakes the thread that accepts
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for client in list(self._open):
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        with self.store.changed:  # what a disabled table holds up never lands then
            self.store.stopping = True
            self.store.changed.notify_all()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # closed by `stop`
                return
            with self._lock:
                self.connections += 1
                self._open.add(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        processor = TProcessor(Hbase, _Calls(self, Gateway(self.store, self.blocks)))
        spoken = client
        try:
            if self.tls is not None:
                spoken = self.tls.wrap_socket(client, server_side=True)
            serve(spoken, processor, self.transport, self.protocol, self.max_frame)
        except (TTransportException, UnexpectedError, OSError, EOFError):
            pass  # the client is gone, or what a real gateway does not expect: it closes the connection
        finally:
            with self._lock:
                self._open.discard(client)
            spoken.close()

    def _called(self, name: str, call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        begun = time.perf_counter()
        faults = self.faults
        try:
            with self._lock:
                self.calls[name] += 1
                meant = not faults.calls or name in faults.calls
                waiting = meant and faults.after > 0
                failing = meant and not waiting and faults.errors > 0
                hanging_up = meant and not waiting and not failing and faults.hang_ups > 0
                faults.after -= waiting
                faults.errors -= failing
                faults.hang_ups -= hanging_up
            if meant and faults.delay:
                time.sleep(faults.delay)
            if failing:
                if faults.lasting:
                    raise HBaseIOError(message="org.apache.hadoop.hbase.security.AccessDeniedException: injected")
                raise HBaseIOError(message="org.apache.hadoop.hbase.NotServingRegionException: injected")
            try:
                answer = call(*self._without_lost(name, arguments))
            except UnexpectedError as problem:
                if self.internal_errors:
                    text = f"Internal error processing {name}"
                    raise TApplicationException(TApplicationException.INTERNAL_ERROR, text) from problem
                raise
            if hanging_up:
                raise UnexpectedError("injected: the connection breaks before the answer")
            return answer
        finally:
            with self._lock:
                self.seconds += time.perf_counter() - begun

    def _without_lost(self, name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of a call, without the puts that are to be lost."""
        if self.faults.lost_puts <= 0 or name not in ("mutateRows", "mutateRowsTs"):
            return arguments
        table, batches, *rest = arguments
        delivered = []
        for batch in batches:
            with self._lock:
                losing = self.faults.lost_puts > 0 and any(not m.isDelete for m in batch.mutations)
                self.faults.lost_puts -= losing
            if not losing:
                delivered.append(batch)
        return (table, delivered, *rest)


class _Calls:
    """Looks calls up at the gateway, counted and with faults; thriftpy2 asks for them by name."""

    def __init__(self, server: HBaseServer, gateway: Gateway) -> None:
        self._server, self._gateway = server, gateway

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = self._gateway.method(name)
        return lambda *arguments: self._server._called(name, call, arguments)


def _main(arguments: list[str] | None = None) -> None:
    """Serve until standard input ends; prints the port first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--table", action="append", default=[])
    options = parser.parse_args(arguments)
    with HBaseServer(options.port) as server:
        for name in options.table:
            server.create_table(name)
        print(server.port, flush=True)
        sys.stdin.read()
        print(server.seconds, flush=True)


if __name__ == "__main__":
    _main()
