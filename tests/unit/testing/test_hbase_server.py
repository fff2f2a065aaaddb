"""What HBase's Thrift gateway does, as measured on real servers. With HOODIE_TEST_HBASE=host:port these tests run
against the gateway there instead of the stand-in; those that inject faults are then left out."""

import time

import happybase
import pytest
from Hbase_thrift import AlreadyExists, BatchMutation, Hbase, IllegalArgument, Mutation
from Hbase_thrift import IOError as HBaseIOError
from thriftpy2.thrift import TApplicationException
from thriftpy2.transport import TTransportException

from hoodie.testing.hbase import HBaseServer


@pytest.fixture
def connection(hbase):
    host, port = hbase.address.split(":")
    made = happybase.Connection(host, int(port), timeout=60_000)
    yield made
    made.close()


@pytest.fixture
def table(hbase, connection):
    return connection.table(hbase.create_table(versions=3))


def columns(**cells):
    return {f"_s:{name}".encode(): value for name, value in cells.items()}


def test_a_row_is_read_back_with_its_newest_cells(table):
    table.put(b"k", columns(a=b"1", b=b"2"), timestamp=10)
    table.put(b"k", columns(a=b"3"), timestamp=20)
    assert table.row(b"k", include_timestamp=True) == {b"_s:a": (b"3", 20), b"_s:b": (b"2", 10)}
    assert table.row(b"k", columns=[b"_s:b"]) == {b"_s:b": b"2"}
    assert table.cells(b"k", b"_s:a", versions=3) == [b"3", b"1"]


def test_a_multi_get_leaves_out_rows_that_are_not_there(table):
    table.put(b"a", columns(x=b"1"))
    table.put(b"c", columns(x=b"3"))
    assert dict(table.rows([b"a", b"b", b"c"])) == {b"a": columns(x=b"1"), b"c": columns(x=b"3")}


def test_a_read_bounded_by_time_leaves_out_the_bound_itself(table):
    table.put(b"k", columns(a=b"old"), timestamp=10)
    table.put(b"k", columns(a=b"new"), timestamp=20)
    assert table.row(b"k", columns=[b"_s:a"], timestamp=20) == columns(a=b"old")
    assert table.row(b"k", columns=[b"_s:a"], timestamp=10) == {}


def test_a_delete_and_a_put_of_a_row_in_one_batch_leave_it_absent(table):
    table.put(b"k", columns(a=b"before"))
    with table.batch() as batch:
        batch.delete(b"k")
        batch.put(b"k", columns(a=b"after"))
    assert table.row(b"k") == {}


def test_a_put_not_later_than_a_delete_is_hidden(table):
    table.delete(b"k", timestamp=100)
    table.put(b"k", columns(a=b"1"), timestamp=100)
    table.put(b"k", columns(a=b"2"), timestamp=99)
    assert table.row(b"k") == {}
    table.put(b"k", columns(a=b"3"), timestamp=101)
    assert table.row(b"k") == columns(a=b"3")


def test_a_delete_of_columns_leaves_the_others(table):
    table.put(b"k", columns(a=b"1", b=b"2"), timestamp=10)
    table.delete(b"k", columns=[b"_s:a"], timestamp=10)
    assert table.row(b"k") == columns(b=b"2")


def test_a_scan_gives_rows_in_the_order_of_their_bytes(table):
    keys = [b"b", b"a", "ä".encode(), b"aa", b"\xff"]
    for key in keys:
        table.put(key, columns(x=b"1"))
    assert [key for key, _ in table.scan(batch_size=2)] == sorted(keys)
    assert [key for key, _ in table.scan(row_start=b"aa", row_stop=b"c")] == [b"aa", b"b"]


def test_a_scan_gives_only_rows_that_pass_its_filter(table):
    for number in range(5):
        table.put(b"k%d" % number, columns(commit_ts=b"%d" % (number % 2)))
    passing = table.scan(filter=b"SingleColumnValueFilter('_s', 'commit_ts', =, 'binary:1', true, true)")
    assert [key for key, _ in passing] == [b"k1", b"k3"]


def test_a_missing_table_is_an_io_error(connection):
    missing = connection.table("hoodie_no_such_table")
    for call in (
        lambda: missing.row(b"k"),
        lambda: missing.rows([b"k"], columns=[b"_s:a"]),
        lambda: missing.put(b"k", columns(a=b"1"), timestamp=1),
        lambda: list(missing.scan()),
    ):
        with pytest.raises(HBaseIOError):
            call()


def test_a_missing_family_is_an_io_error(table):
    with pytest.raises(HBaseIOError) as problem:
        table.put(b"k", {b"other:a": b"1"})
    assert b"NoSuchColumnFamily" in problem.value.message
    with pytest.raises(HBaseIOError):
        table.row(b"k", columns=[b"other:a"])


def test_tables_are_made_disabled_and_deleted(hbase, connection):
    name = hbase.create_table()
    with pytest.raises(AlreadyExists):
        connection.create_table(name, {"_s": {}})
    with pytest.raises((IllegalArgument, TApplicationException)):  # HBase 1.4, and 2.5: it says that it is internal
        connection.create_table("no good!", {"_s": {}})
    with pytest.raises(HBaseIOError):
        connection.delete_table(name)
    connection.disable_table(name)
    assert not connection.is_table_enabled(name)
    connection.delete_table(name)
    assert name.encode() not in connection.tables()


def test_an_empty_row_key_is_an_error_that_no_call_expects(table):
    with pytest.raises((TTransportException, TApplicationException, OSError, HBaseIOError)):
        table.put(b"", columns(a=b"1"))


def test_a_put_on_condition_is_made_only_where_it_holds(connection, table):
    put = Mutation(column=b"_s:a", value=b"1")
    try:
        assert connection.client.checkAndPut(table.name, b"k", b"_s:a", None, put, {})
    except TApplicationException:
        pytest.skip("HBase 0.98.6 does not know the call")
    assert not connection.client.checkAndPut(table.name, b"k", b"_s:a", None, put, {})
    assert not connection.client.checkAndPut(table.name, b"k", b"_s:a", b"2", put, {})
    assert connection.client.checkAndPut(table.name, b"k", b"_s:a", b"1", put, {})


def test_the_parts_of_a_row_that_are_put_at_once_are_seen_at_once(connection, table):
    cells = [Mutation(column=b"_s:%d" % number, value=b"x") for number in range(3)]
    connection.client.mutateRowsTs(table.name, [BatchMutation(b"k", cells)], 5, {})
    assert len(table.row(b"k")) == 3


def test_the_interface_is_happybase_s_own():
    assert len(Hbase.thrift_services) == 45


# --- the stand-in alone ---


def test_a_major_compaction_forgets_what_is_hidden():
    with HBaseServer() as server:
        connection = happybase.Connection("127.0.0.1", server.port)
        server.create_table("t")
        table = connection.table("t")
        table.put(b"k", columns(a=b"1"), timestamp=10)
        table.put(b"k", columns(a=b"2"), timestamp=20)
        assert table.row(b"k", columns=[b"_s:a"], timestamp=20) == columns(a=b"1"), "old versions go late"
        table.delete(b"gone", timestamp=30)
        connection.compact_table("t", major=True)
        assert table.row(b"k", columns=[b"_s:a"], timestamp=20) == {}
        table.put(b"gone", columns(a=b"1"), timestamp=5)
        assert table.row(b"gone") == columns(a=b"1")
        connection.close()


def test_a_call_that_is_not_served_is_answered_so():
    with HBaseServer() as server:
        connection = happybase.Connection("127.0.0.1", server.port)
        with pytest.raises(TApplicationException) as problem:
            connection.client.getRegionInfo(b"k")
        assert problem.value.type == TApplicationException.UNKNOWN_METHOD
        assert connection.tables() == [], "the connection is good still"
        connection.close()


def test_a_server_that_stops_comes_back_with_what_it_stored():
    with HBaseServer() as server:
        server.create_table("t")
        connection = happybase.Connection("127.0.0.1", server.port)
        connection.table("t").put(b"k", columns(a=b"1"))
        server.stop()
        with pytest.raises((OSError, TTransportException)):
            connection.table("t").row(b"k")
        with pytest.raises(TTransportException):
            happybase.Connection("127.0.0.1", server.port)
        server.start()
        again = happybase.Connection("127.0.0.1", server.port)
        assert again.table("t").row(b"k") == columns(a=b"1")
        again.close()


def test_faults_are_injected_into_the_calls_they_are_meant_for():
    with HBaseServer() as server:
        server.create_table("t")
        connection = happybase.Connection("127.0.0.1", server.port)
        table = connection.table("t")
        server.faults.errors, server.faults.calls = 1, frozenset({"mutateRows"})
        assert table.row(b"k") == {}
        with pytest.raises(HBaseIOError):
            table.put(b"k", columns(a=b"1"))
        server.faults.lost_puts = 1
        table.put(b"k", columns(a=b"1"))
        assert table.row(b"k") == {}
        server.faults.calls, server.faults.delay = frozenset(), 0.05
        begun = time.perf_counter()
        table.row(b"k")
        assert time.perf_counter() - begun >= 0.05
        server.faults.delay, server.faults.hang_ups = 0, 1
        with pytest.raises((OSError, TTransportException)):
            table.row(b"k")
        connection.close()
