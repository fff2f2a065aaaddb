"""How the HBase index speaks with gateways of several kinds, and with such as are in a bad way."""

import ssl
import threading
import time
from pathlib import Path

import happybase
import pytest
from Hbase_thrift import BatchMutation, Mutation
from Hbase_thrift import IOError as HBaseIOError
from thriftpy2.transport import TTransportException

from hoodie.config.hbase import HBaseOptions
from hoodie.errors import IndexUnavailable, InvalidOption
from hoodie.hbase.client import HBaseClient, batches
from hoodie.hbase.index import make_entries
from hoodie.testing.hbase import HBaseServer
from support.hbase_parts import CONFIG, FIRST, SECOND, A, index_context, placed, where, write
from support.nightly import covering

KEYS = ["k1", "k2", "k3"]
TLS = Path(__file__).parents[2] / "fixtures" / "tls"
CERTIFICATE, KEY = str(TLS / "gateway.pem"), str(TLS / "gateway.key")


def tls_of_server():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    return context


@pytest.fixture
def client(server):
    connection = happybase.Connection("127.0.0.1", server.port, timeout=10_000)
    yield connection.client
    connection.close()


# --- transports and protocols ---


@pytest.mark.parametrize(
    ("tls", "protocol", "transport"),
    covering({"plain": False, "tls": True}, ["BINARY", "COMPACT"], ["BUFFERED", "FRAMED", "HTTP"]),
)
def test_each_kind_of_gateway_is_spoken_to(transport, protocol, tls):
    with HBaseServer(transport=transport, protocol=protocol, tls=tls_of_server() if tls else None) as server:
        server.create_table("t")
        options = server.options("t")
        if tls:
            options |= {"hoodie.index.hbase.thrift.ssl": "true", "hoodie.index.hbase.thrift.ssl.ca.file": CERTIFICATE}
        index = make_entries(options, CONFIG)
        write(index, placed(FIRST, A, inserted=[*KEYS, "ä", "x" * 5000]))
        write(index, placed(SECOND, A, deleted=["k3"]))
        assert where(index, [*KEYS, "ä", "x" * 5000], index_context(FIRST, SECOND)) == [A, A, None, A, A]
        server.faults.hang_ups = 1
        assert where(index, KEYS, index_context(FIRST, SECOND)) == [A, A, None]


def test_a_certificate_that_is_not_trusted_is_not_tried_again():
    with HBaseServer(tls=tls_of_server()) as server:
        server.create_table("t")
        for transport in ("BUFFERED", "HTTP"):
            given = {"hoodie.index.hbase.thrift.ssl": "true", "hoodie.index.hbase.thrift.transport": transport}
            index = make_entries(server.options("t") | given, CONFIG)
            with pytest.raises(IndexUnavailable, match=r"certificate is not accepted.*ssl\.ca\.file"):
                where(index, KEYS, index_context(FIRST))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"thrift.transport": "sasl"}, "SASL or Kerberos is not supported"),
        ({"security.authentication": "kerberos"}, "SASL or Kerberos is not supported"),
        ({"thrift.transport": "http", "thrift.framed": "true"}, "contradicts"),
        ({"thrift.ssl.ca.file": CERTIFICATE}, r"thrift\.ssl is off"),
        ({"thrift.transport": "carrier pigeon"}, "expected one of BUFFERED, FRAMED, HTTP"),
        *(
            ({"table": name}, "expected a table name of HBase's")
            for name in ("a b", "-t", ".t", "a:b:c", "t/1", "a:", "zookeeper", "n:zookeeper")
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_connected(server, given, said):
    options = server.options("t") | {f"hoodie.index.hbase.{key}": value for key, value in given.items()}
    with pytest.raises(InvalidOption, match=said):
        make_entries(options, CONFIG)
    assert server.connections == 1, "that of create_table"


@pytest.mark.parametrize("internal", [False, True], ids=["as 1.4", "as 2.5"])
def test_a_name_that_the_gateway_alone_refuses_is_named_whichever_way_it_says_so(internal):
    with HBaseServer(internal_errors=internal) as server:
        options = HBaseOptions(host="127.0.0.1", port=server.port, table="no good!", retries=1)
        with HBaseClient(options) as client, pytest.raises(IndexUnavailable, match="refuses the table name 'no good!'"):
            client.get([b"k"], [b"_s:a"])


def test_certificate_files_that_cannot_be_read_are_named():
    given = {"hoodie.index.hbase.thrift.ssl": "true", "hoodie.index.hbase.thrift.ssl.ca.file": "/no/such.pem"}
    with HBaseServer() as server, pytest.raises(InvalidOption, match=r"ssl\.\*.*No such file"):
        where(make_entries(server.options("t") | given, CONFIG), KEYS, index_context(FIRST))


def test_an_http_gateway_that_asks_for_authentication_is_not_supported():
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Asks(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_error(401)

        def log_message(self, *arguments):
            pass

    gateway = HTTPServer(("127.0.0.1", 0), Asks)
    threading.Thread(target=gateway.serve_forever, daemon=True).start()
    try:
        options = HBaseOptions(host="127.0.0.1", port=gateway.server_port, table="t")
        http = make_entries(
            {
                "hoodie.index.hbase.thrift.host": "127.0.0.1",
                "hoodie.index.hbase.thrift.port": str(options.port),
                "hoodie.index.hbase.table": "t",
                "hoodie.index.hbase.thrift.transport": "http",
            },
            CONFIG,
        )
        with pytest.raises(IndexUnavailable, match=r"401.*not supported"):
            where(http, KEYS, index_context(FIRST))
    finally:
        gateway.shutdown()
        gateway.server_close()


# --- batches ---


def test_batches_are_cut_by_bytes_so_that_a_framed_gateway_takes_ten_thousand_puts():
    with HBaseServer(transport="FRAMED") as server:
        server.create_table("t")
        keys = [f"a-rather-long-key-{number:060d}" for number in range(10_000)]
        index = make_entries(server.options("t") | {"hoodie.index.hbase.get.batch.size": "10000"}, CONFIG)
        write(index, placed(FIRST, A, inserted=keys))
        assert server.calls["mutateRowsTs"] > 1
        assert where(index, keys[::999], index_context(FIRST)) == [A] * len(keys[::999])
        assert len(server.dump("t")) == 10_000


def test_without_the_cut_a_framed_gateway_closes_the_connection():
    with HBaseServer(transport="FRAMED") as server:
        server.create_table("t")
        given = {
            "hoodie.index.hbase.thrift.max.message.bytes": str(1 << 30),
            "hoodie.index.hbase.thrift.max.retries": "0",
        }
        index = make_entries(server.options("t") | given, CONFIG)
        with pytest.raises(IndexUnavailable, match="mutateRowsTs"):
            write(index, placed(FIRST, A, inserted=[f"{number:0100d}" for number in range(10_000)]))


def test_a_batch_is_cut_before_it_is_too_heavy_and_holds_at_least_one():
    assert [list(batch) for batch in batches([1] * 5, 2, int)] == [[1, 1], [1, 1], [1]]
    assert [list(batch) for batch in batches([900, 100, 50, 5000, 1], 10, int, 256 + 1000)] == [
        [900, 100],
        [50],
        [5000],
        [1],
    ]
    assert list(batches([], 10, int, 10)) == []


# --- tables that are in a bad way ---


def test_a_disabled_table_is_named_at_once(server):
    server.store.tables[b"t"].enabled = False
    index = make_entries(server.options("t"), CONFIG)
    begun = time.perf_counter()
    with pytest.raises(IndexUnavailable, match=r"table 't' is disabled.*enable 't'"):
        index.check(index_context())
    assert time.perf_counter() - begun < 30, "the time for a call"


@pytest.mark.parametrize("call", ["put", "get"])
def test_a_table_that_is_disabled_meanwhile_is_named_after_the_time_for_a_call(server, call):
    server.store.tables[b"t"].enabled = False
    index = make_entries(server.options("t") | {"hoodie.index.hbase.zk.session_timeout_ms": "300"}, CONFIG)
    keys = [f"k{number}" for number in range(50)]
    begun = time.perf_counter()
    with pytest.raises(IndexUnavailable, match="table 't' is disabled"):
        write(index, placed(FIRST, A, inserted=keys)) if call == "put" else where(index, keys, index_context(FIRST))
    assert time.perf_counter() - begun < 10, "one time for the call, whatever its retries"


def test_a_put_that_lands_after_its_time_is_that_of_a_write_that_does_not_count(server):
    stored = server.store.tables[b"t"]
    index = make_entries(server.options("t") | {"hoodie.index.hbase.zk.session_timeout_ms": "200"}, CONFIG)
    stored.enabled = False
    with pytest.raises(IndexUnavailable):
        index.record_writes([placed(FIRST, A, inserted=KEYS)])
    assert not stored.rows
    with server.store.changed:
        stored.enabled = True
        server.store.changed.notify_all()
    deadline = time.monotonic() + 5
    while not stored.rows and time.monotonic() < deadline:
        time.sleep(0.01)
    assert stored.rows, "it landed"
    assert where(index, KEYS, index_context(SECOND, pending=(FIRST,))) == [None] * 3


def test_one_deadline_holds_for_all_tries_of_a_call(server):
    server.faults.delay = 30
    index_client = HBaseClient(
        HBaseOptions(host="127.0.0.1", port=server.port, table="t", call_timeout=400, retries=50)
    )
    index_client._refuse_table = lambda: None  # it has a time of its own
    begun = time.perf_counter()
    with pytest.raises(IndexUnavailable, match=r"once in \d+\.\d s.*did not answer"):
        index_client.get([b"k"], [b"_s:commit_ts"])
    assert time.perf_counter() - begun < 10


def test_an_error_that_will_not_pass_is_not_tried_again(server):
    index = make_entries(server.options("t"), CONFIG)
    server.faults.calls, server.faults.errors = frozenset({"getRowsWithColumns"}), 5
    server.faults.lasting = True
    with pytest.raises(IndexUnavailable, match=r"refuses a call.*AccessDeniedException"):
        where(index, KEYS, index_context(FIRST))
    assert server.calls["getRowsWithColumns"] == 1


def test_an_error_that_hbase_2_marks_as_lasting_is_not_tried_again(server):
    index = make_entries(server.options("t"), CONFIG)
    where(index, KEYS, index_context(FIRST))
    called, tries = server._called, []

    def marked(name, call, arguments):
        if name != "getRowsWithColumns":
            return called(name, call, arguments)
        tries.append(name)
        problem = HBaseIOError(message="whatever")
        problem.canRetry = bool(len(tries) == 1)
        raise problem

    server._called = marked
    with pytest.raises(IndexUnavailable, match=r"refuses a call.*whatever"):
        where(index, KEYS, index_context(FIRST))
    assert len(tries) == 2, "the first says that it may be tried again"


def test_cells_that_expire_are_refused(server):
    server.store.tables[b"t"].time_to_live = 86_400
    with pytest.raises(IndexUnavailable, match=r"expire after 86400 s \(TTL\).*FOREVER"):
        make_entries(server.options("t"), CONFIG).check(index_context())


def test_the_put_batch_of_a_missing_table_is_not_guessed(server):
    given = {"hoodie.index.hbase.put.batch.size.autocompute": "true", "hoodie.index.hbase.table": "missing"}
    with pytest.raises(IndexUnavailable, match="no table 'missing'"):
        where(make_entries(server.options("t") | given, CONFIG), KEYS, index_context(FIRST))


# --- the stand-in is as strict as a gateway ---


def test_the_stand_in_closes_the_connection_on_an_illegal_name_and_on_a_negative_time(server):
    put = [BatchMutation(b"k", [Mutation(False, b"_s:a", b"1")])]
    for call in (
        lambda client: client.isTableEnabled(b"no good!"),
        lambda client: client.getTableRegions(b"no good!"),
        lambda client: client.getRowWithColumns(b"-t", b"k", [b"_s:a"], {}),
        lambda client: client.mutateRowsTs(b"t", put, -1, {}),
    ):
        connection = happybase.Connection("127.0.0.1", server.port, timeout=10_000)
        with pytest.raises((TTransportException, OSError)):
            call(connection.client)
        connection.close()


def test_the_stand_in_knows_no_regions_of_a_missing_table(client):
    assert client.getTableRegions(b"missing") == []
    assert len(client.getTableRegions(b"t")) == 1
    with pytest.raises(HBaseIOError):
        client.isTableEnabled(b"missing")


@pytest.mark.nightly
def test_the_stand_in_fails_a_small_get_of_a_disabled_table_and_holds_up_puts_and_large_gets():
    with HBaseServer(blocks=1.5) as server:
        server.create_table("t")
        server.store.tables[b"t"].enabled = False
        connection = happybase.Connection("127.0.0.1", server.port, timeout=10_000)
        begun = time.perf_counter()
        with pytest.raises(HBaseIOError):
            connection.client.getRowsWithColumns(b"t", [b"k"], [b"_s:a"], {})
        assert time.perf_counter() - begun < 1.5
        for call in (
            lambda: connection.client.getRowsWithColumns(b"t", [b"%d" % n for n in range(50)], [b"_s:a"], {}),
            lambda: connection.client.mutateRowsTs(
                b"t", [BatchMutation(b"k", [Mutation(False, b"_s:a", b"1")])], 1, {}
            ),
        ):
            begun = time.perf_counter()
            with pytest.raises(HBaseIOError):
                call()
            assert time.perf_counter() - begun >= 1.5
        connection.close()
