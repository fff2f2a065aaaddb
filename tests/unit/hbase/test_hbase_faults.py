"""The HBase index when HBase does not do what it should: down, slow, losing puts. Against the stand-in."""

import subprocess
import sys
import threading
import time

import pytest

from hoodie.config.hbase import HBaseOptions
from hoodie.errors import IndexUnavailable, InvalidOption
from hoodie.hbase.client import HBaseClient, Rate, put_batch_size
from hoodie.hbase.index import make_entries
from support.hbase_parts import CONFIG, FIRST, A, index_context, placed, where, write

KEYS = ["k1", "k2", "k3"]


@pytest.fixture
def index(server):
    return make_entries(server.options("t"), CONFIG)


def test_a_server_that_is_down_is_named_after_some_tries(server, index):
    server.stop()
    begun = time.perf_counter()
    with pytest.raises(IndexUnavailable, match=rf"127\.0\.0\.1:{server.port}.*failed 3 times.*TTransportException"):
        where(index, KEYS, index_context(FIRST))
    assert 0.25 < time.perf_counter() - begun < 5, "0.1 s and 0.2 s between tries"


def test_a_server_that_comes_back_between_tries_is_asked_again(server):
    index = make_entries(server.options("t") | {"hoodie.index.hbase.thrift.max.retries": "5"}, CONFIG)
    write(index, placed(FIRST, A, inserted=KEYS))
    server.stop()
    threading.Timer(0.4, server.start).start()
    assert where(index, KEYS, index_context(FIRST)) == [A] * 3


@pytest.mark.parametrize("call", ["getRowsWithColumns", "mutateRowsTs"])
@pytest.mark.parametrize("fault", ["errors", "hang_ups"])
def test_a_call_that_fails_is_repeated(server, index, call, fault):
    server.faults.calls = frozenset({call})
    setattr(server.faults, fault, 2)
    write(index, placed(FIRST, A, inserted=KEYS))
    assert where(index, KEYS, index_context(FIRST)) == [A] * 3
    assert getattr(server.faults, fault) == 0
    assert len(server.dump("t")) == 3


def test_a_slow_server_is_given_up_after_the_time_for_a_call(server):
    options = {"hoodie.index.hbase.zk.session_timeout_ms": "100", "hoodie.index.hbase.thrift.max.retries": "1"}
    index = make_entries(server.options("t") | options, CONFIG)
    server.faults.delay = 0.5
    with pytest.raises(IndexUnavailable, match=r"failed once in 0\.\d s.*[Tt]ime.*region server may be down"):
        where(index, KEYS, index_context(FIRST))


def test_puts_that_are_lost_once_are_put_again(server, index):
    server.faults.lost_puts = 2
    write(index, placed(FIRST, A, inserted=KEYS))
    assert where(index, KEYS, index_context(FIRST)) == [A] * 3


def test_puts_that_stay_lost_fail_the_write_before_it_is_published(server, index):
    server.faults.lost_puts = 1000
    with pytest.raises(IndexUnavailable, match=r"acknowledged a put of 3 entries, but 3 are not"):
        index.record_writes([placed(FIRST, A, inserted=KEYS)])


def test_one_connection_serves_a_call_and_is_closed(server, index):
    before = server.connections
    write(index, placed(FIRST, A, inserted=KEYS), placed(FIRST, A, inserted=["k4"]))
    assert server.connections - before == 1
    before = server.connections
    where(index, KEYS, index_context(FIRST))
    assert server.connections - before == 1
    deadline = time.monotonic() + 5
    while server.open_connections and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.open_connections == 0


def test_a_delete_and_a_put_never_meet_in_one_call(server, index):
    seen = []
    called = server._called
    server._called = lambda name, call, args: (seen.append((name, args)), called(name, call, args))[1]
    write(index, placed(FIRST, A, inserted=["k1"], moved=["k2"], deleted=["k3"]))
    kinds = [
        {m.isDelete for batch in args[1] for m in batch.mutations} for name, args in seen if name.startswith("mutate")
    ]
    assert kinds == [{False}, {False}, {False}, {True}, {True}]
    assert all(name == "mutateRowsTs" for name, _ in seen if name.startswith("mutate")), "explicit timestamps"


def test_batches_have_the_sizes_of_the_options(server):
    sizes = {"hoodie.index.hbase.get.batch.size": "40", "hoodie.index.hbase.put.batch.size": "60"}
    index = make_entries(server.options("t") | sizes, CONFIG)
    keys = [f"k{number}" for number in range(100)]
    where(index, keys, index_context(FIRST))
    assert server.calls["getRowsWithColumns"] == 3
    write(index, placed(FIRST, A, inserted=keys))
    assert server.calls["mutateRowsTs"] == 2


def test_a_scan_that_breaks_goes_on_where_it_was(server, index):
    keys = [f"k{number:04d}" for number in range(2500)]
    write(index, placed(FIRST, A, inserted=keys))
    server.faults.calls = frozenset({"scannerGetList"})
    server.faults.hang_ups = 2
    with HBaseClient(HBaseOptions(host="127.0.0.1", port=server.port, table="t")) as client:
        assert [row.decode() for row, _ in client.scan([b"_s:commit_ts"])] == keys


class FakeClock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_a_rate_lets_so_many_rows_pass_a_second():
    clock = FakeClock()
    rate = Rate(100, clock, clock.sleep)
    for _ in range(10):
        rate.take(100)
    assert clock.now == pytest.approx(9), "the first batch does not wait"
    clock.now += 100
    rate.take(100)
    rate.take(50)
    assert clock.now == pytest.approx(109.5), "what was not used is not saved up for more than a second"
    assert rate.waited == pytest.approx(9.5)


def test_the_put_batch_is_derived_from_the_requests_that_hbase_serves(server):
    assert put_batch_size(HBaseOptions(), region_servers=1) == 500
    assert put_batch_size(HBaseOptions(qps_fraction=0.1), region_servers=3, tasks=8, executors=4) == 75
    assert put_batch_size(HBaseOptions(qps_fraction=0.0001), region_servers=1) == 1
    options = {
        "hoodie.index.hbase.put.batch.size.autocompute": "true",
        "hoodie.index.hbase.max.qps.per.region.server": "100",
    }
    index = make_entries(server.options("t") | options, CONFIG)
    write(index, placed(FIRST, A, inserted=[f"k{number}" for number in range(60)]))
    assert server.calls["mutateRowsTs"] == 2, "batches of 50"


def test_without_its_client_the_index_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "happybase", None)
    with pytest.raises(InvalidOption, match=r"happybase: pip install 'hoodie\[hbase\]'"):
        make_entries({"hoodie.index.hbase.table": "t"}, CONFIG)


def test_the_library_loads_no_hbase_client_until_it_is_asked_for():
    code = "import sys, hoodie.hbase; sys.exit('happybase' in sys.modules or 'thriftpy2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
