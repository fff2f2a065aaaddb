"""The client against stand-in servers: older interfaces, faults, silence. The real one is in tests/services."""

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import thriftpy2
from thriftpy2.rpc import make_server

import hoodie.sync.metastore as client
from hoodie.errors import InvalidOption, MetastoreUnavailable, SyncRefused
from hoodie.sync.metastore import connect, interface

INTERFACE = Path(client.__file__).with_name("metastore.thrift")


class Handler:
    """Answers with what a test gives by the name of the call."""

    def __init__(self, **answers: Callable[..., Any]) -> None:
        self.answers = {"set_ugi": lambda user, groups: [], **answers}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            return self.__dict__["answers"][name]
        except KeyError:
            raise AttributeError(name) from None


@contextmanager
def serving(handler: Handler, without: str = "") -> Iterator[str]:
    """The address of a server whose interface lacks a call."""
    service = interface().ThriftHiveMetastore
    if without:
        kept = [name for name in service.thrift_services if name != without]
        service = type("Older", (service,), {"thrift_services": kept})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = make_server(service, handler, "127.0.0.1", port)
    server.trans.listen()
    thread = threading.Thread(target=_serve, args=(server,), daemon=True)
    thread.start()
    try:
        yield f"thrift://127.0.0.1:{port}"
    finally:
        server.close()


def _serve(server: Any) -> None:
    while True:
        try:
            connection = server.trans.accept()
        except OSError:
            return
        server.handle(connection)


def table(name: str) -> Any:
    return interface().Table(tableName=name, dbName="d")


def test_a_server_without_get_table_req_is_asked_with_get_table() -> None:
    with serving(Handler(get_table=lambda d, t: table(t)), without="get_table_req") as uri, connect([uri], 5) as hive:
        assert hive.table("d", "t").tableName == "t"
        assert hive.calls["get_table_req"] == 1


def test_a_server_with_get_table_req_is_asked_with_it() -> None:
    def answer(request: Any) -> Any:
        return interface().GetTableResult(table=table(request.tblName))

    with serving(Handler(get_table_req=answer), without="get_table") as uri, connect([uri], 5) as hive:
        assert hive.table("d", "t").tableName == "t"


def raising(name: str) -> Callable[..., Any]:
    def answer(*values: Any) -> Any:
        raise getattr(interface(), name)(message="no such luck")

    return answer


@pytest.mark.parametrize(
    ("exception", "error"),
    [
        ("MetaException", MetastoreUnavailable),
        ("InvalidObjectException", SyncRefused),
        ("AlreadyExistsException", SyncRefused),
    ],
)
def test_a_fault_of_the_server_is_typed_and_says_what_it_said(exception: str, error: type[Exception]) -> None:
    handler = Handler(add_partitions_req=raising(exception))
    with serving(handler) as uri, connect([uri], 5) as hive, pytest.raises(error, match="no such luck"):
        hive.add_partitions("d", "t", [interface().Partition(values=["a"])], 10)


def test_a_server_that_hangs_up_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        threading.Thread(target=lambda: listening.accept()[0].close(), daemon=True).start()
        with pytest.raises(MetastoreUnavailable, match=rf"thrift://127\.0\.0\.1:{port}: set_ugi got no answer"):
            connect([f"thrift://127.0.0.1:{port}"], 5).__enter__()


def test_a_server_that_does_not_answer_in_time_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(MetastoreUnavailable, match="set_ugi got no answer"):
            connect([f"thrift://127.0.0.1:{port}"], 0.3).__enter__()


@pytest.mark.parametrize(
    "answer",
    [b"\x03\x00\x00\x00\x13Invalid status -128", b"\x15\x03\x03\x00\x02\x02\x0a", b"HTTP/1.1 400 Bad Request\r\n\r\n"],
    ids=["SASL", "TLS", "HTTP"],
)
def test_a_server_that_speaks_another_protocol_is_unavailable_and_the_error_says_which_one_is_spoken(
    answer: bytes,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            connection.recv(1000)
            connection.sendall(answer)
            connection.close()

        threading.Thread(target=serve, daemon=True).start()
        uri = f"thrift://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(MetastoreUnavailable, match="plain Thrift, without Kerberos and TLS"):
            connect([uri], 5).__enter__()


def test_a_sync_without_thriftpy2_names_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    interface.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "thriftpy2"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InvalidOption, match=r"pip install 'hoodie\[hive\]'"), connect(["thrift://localhost:1"], 1):
        pass


def test_the_interface_is_loadable_by_itself() -> None:
    loaded = thriftpy2.load(str(INTERFACE), module_name="again_thrift")
    assert set(loaded.ThriftHiveMetastore.thrift_services) == set(interface().ThriftHiveMetastore.thrift_services)


def test_a_metastore_that_asks_for_capabilities_is_not_called_unavailable() -> None:
    text = "Your client does not appear to support Hive tests. To skip capability checks, please set ..."

    def refuse(request: Any) -> Any:
        raise interface().MetaException(message=text)

    named = r"refuses this client.*metastore\.client\.capability\.check=false"
    with (
        serving(Handler(get_table_req=refuse)) as uri,
        connect([uri], 5) as hive,
        pytest.raises(SyncRefused, match=named),
    ):
        hive.table("d", "t")
