"""The HBase index on its own: what it asks HBase and what it keeps there. With HOODIE_TEST_HBASE=host:port these tests
run against the gateway there."""

import pickle

import pyarrow as pa
import pytest

from hoodie.errors import CorruptIndex, IndexUnavailable, InvalidInput, InvalidOption
from hoodie.hbase.index import make_entries
from hoodie.model.files import FileGroupId
from support.hbase_parts import CONFIG, FIRST, SECOND, THIRD, A, B, index_context, placed, where, write


@pytest.fixture
def table(hbase):
    return hbase.create_table()


@pytest.fixture
def index(hbase, table):
    return make_entries(hbase.options(table), CONFIG)


def test_new_keys_are_found_once_their_instant_is_completed(index):
    write(index, placed(FIRST, A, inserted=["k1", "k2"]), placed(FIRST, B, inserted=["k3"]))
    assert where(index, ["k1", "k2", "k3", "k4"], index_context(SECOND, pending=[FIRST])) == [None] * 4
    assert where(index, ["k3", "k4", "k1"], index_context(FIRST)) == [B, None, A]


def test_entries_have_hudi_s_cells(hbase, table, index):
    write(index, placed(FIRST, A, inserted=["schlüssel"]))
    assert hbase.dump(table) == {
        "schlüssel".encode(): {
            b"_s:commit_ts": FIRST.encode(),
            b"_s:file_name": b"11111111-0",
            b"_s:partition_path": b"p=a",
        }
    }


def test_entries_that_hudi_put_are_found(hbase, table, index):
    cells = {b"_s:commit_ts": b"20240101000000", b"_s:file_name": b"f-0", b"_s:partition_path": b""}
    with hbase.connected() as connection:
        connection.table(table).put(b"k", cells)
    assert where(index, ["k"], index_context("20240101000000")) == [FileGroupId("", "f-0")]
    assert where(index, ["k"], index_context(FIRST)) == [FileGroupId("", "f-0")], (
        "older than the active timeline: archived"
    )
    assert where(index, ["k"], index_context()) == [None], "a table without instants has no rows"


def test_entries_of_a_write_that_was_rolled_back_do_not_count(index):
    write(index, placed(FIRST, A, inserted=["old"]))
    index.record_writes([placed(SECOND, A, inserted=["k"])])
    assert where(index, ["old", "k"], index_context(FIRST, THIRD)) == [A, None]
    write(index, placed(THIRD, B, inserted=["k"]))
    assert where(index, ["k"], index_context(FIRST, THIRD)) == [B]


def test_a_deleted_key_is_forgotten_and_may_come_back(hbase, table, index):
    write(index, placed(FIRST, A, inserted=["k", "l"]))
    write(index, placed(SECOND, A, deleted=["k"]))
    assert where(index, ["k", "l"], index_context(FIRST, SECOND)) == [None, A]
    assert list(hbase.dump(table)) == [b"l"]
    write(index, placed(THIRD, B, inserted=["k"]))
    assert where(index, ["k"], index_context(FIRST, SECOND, THIRD)) == [B]


def test_a_delete_that_is_not_published_forgets_nothing(index):
    write(index, placed(FIRST, A, inserted=["k"]))
    assert index.record_writes([placed(SECOND, A, deleted=["k"])]).num_rows == 1
    assert where(index, ["k"], index_context(FIRST)) == [A]


def test_a_moved_key_is_where_the_last_published_write_put_it(hbase, table, index):
    write(index, placed(FIRST, A, inserted=["k"]))
    later = index.record_writes([placed(SECOND, B, moved=["k"])])
    assert where(index, ["k"], index_context(FIRST, pending=[SECOND])) == [A], "the write may fail still"
    assert where(index, ["k"], index_context(FIRST, SECOND)) == [B], "it is published, and its writer died"
    index.finalize(SECOND, later)
    assert where(index, ["k"], index_context(FIRST, SECOND)) == [B]
    assert hbase.dump(table) == {
        b"k": {b"_s:commit_ts": SECOND.encode(), b"_s:file_name": b"22222222-0", b"_s:partition_path": b"p=b"}
    }


def test_a_move_that_failed_does_not_come_back_after_later_ones(index):
    write(index, placed(FIRST, A, inserted=["k"]))
    index.record_writes([placed(SECOND, B, moved=["k"])])  # fails, and is rolled back
    assert where(index, ["k"], index_context(FIRST, THIRD)) == [A]
    fourth = "20240101000000004"
    write(index, placed(THIRD, B, moved=["k"]))
    write(index, placed(fourth, A, moved=["k"]))
    assert where(index, ["k"], index_context(FIRST, THIRD, fourth)) == [A]


def test_an_entry_of_hudi_s_that_is_newer_than_an_unsettled_move_counts(hbase, table, index):
    write(index, placed(FIRST, A, inserted=["k"]))
    index.record_writes([placed(SECOND, B, moved=["k"])])
    cells = {b"_s:commit_ts": THIRD.encode(), b"_s:file_name": b"c-0", b"_s:partition_path": b"p=c"}
    with hbase.connected() as connection:
        connection.table(table).put(b"k", cells)
    assert where(index, ["k"], index_context(FIRST, SECOND, THIRD)) == [FileGroupId("p=c", "c-0")]


def test_keys_that_were_not_looked_up_keep_their_entry_until_the_write_is_published(index):
    write(index, placed(FIRST, A, inserted=["k"]))
    later = index.record_writes([placed(SECOND, B, inserted=["k", "new"], looked_up=False)])
    assert where(index, ["k", "new"], index_context(FIRST)) == [A, None]
    index.finalize(SECOND, later)
    assert where(index, ["k", "new"], index_context(FIRST, SECOND)) == [B, B]


def test_a_task_that_is_repeated_changes_nothing(hbase, table, index):
    write(index, placed(FIRST, A, inserted=["k"]))
    parts = [placed(SECOND, A, inserted=["x"], deleted=["k"]), placed(SECOND, B, inserted=["y"], looked_up=False)]
    later = index.record_writes(parts)
    assert index.record_writes(parts).equals(later)
    index.finalize(SECOND, later)
    index.finalize(SECOND, later)
    assert sorted(hbase.dump(table)) == [b"x", b"y"]


def test_a_write_whose_clock_is_behind_a_delete_is_not_hidden_by_it(hbase, table, index):
    with hbase.connected() as connection:
        connection.table(table).delete(b"k")  # by the server's clock, which is years ahead of the instant
    write(index, placed(FIRST, A, inserted=["k"]))
    assert where(index, ["k"], index_context(FIRST)) == [A]
    write(index, placed(SECOND, A, deleted=["k"]))
    assert where(index, ["k"], index_context(FIRST, SECOND)) == [None]


def test_many_keys_take_several_batches(hbase, table):
    options = hbase.options(table) | {
        "hoodie.index.hbase.get.batch.size": "300",
        "hoodie.index.hbase.put.batch.size": "2000",
    }
    index = make_entries(options, CONFIG)
    keys = [f"key-{number:05d}" for number in range(1500)]
    write(index, placed(FIRST, A, inserted=keys[::2]))
    expected = [A if number % 2 == 0 else None for number in range(len(keys))]
    assert where(index, keys, index_context(FIRST)) == expected
    tags = index.look_up.tagger(index_context(FIRST))(pa.array(keys), pa.array(["?"] * len(keys)))
    assert (tags.cost.candidates, tags.cost.checked, tags.cost.hits) == (1500, 1500, 750)


def test_no_keys_are_no_calls(index):
    assert where(index, [], index_context(FIRST)) == []
    assert index.record_writes([]) is None


def test_rows_have_a_prefix_with_the_rebalancing_class(hbase, table):
    options = hbase.options(table) | {
        "hoodie.index.class": "org.apache.hudi.index.hbase.RebalancedSparkHoodieHBaseIndex",
        "hoodie.index.hbase.bucket.number": "16",
    }
    index = make_entries(options, CONFIG)
    write(index, placed(FIRST, A, inserted=["abc", "334e26e9-8355-45cc-97c6-c31daf0df330"]))
    assert where(index, ["abc"], index_context(FIRST)) == [A]
    # Java: "abc".hashCode() is 96354; that of the UUID 1880221124.
    assert list(hbase.dump(table)) == [b"02abc", b"04334e26e9-8355-45cc-97c6-c31daf0df330"]


def test_a_rollback_in_step_takes_its_entries_away(hbase):
    table = hbase.create_table(versions=3)
    index = make_entries(hbase.options(table) | {"hoodie.index.hbase.rollback.sync": "true"}, CONFIG)
    write(index, placed(FIRST, A, inserted=["k", "l"]))
    write(index, placed(SECOND, B, inserted=["new"], moved=["k"]))
    assert where(index, ["k", "l", "new"], index_context(FIRST, SECOND)) == [B, A, B]
    index.rolled_back(SECOND)
    assert where(index, ["k", "l", "new"], index_context(FIRST)) == [A, A, None]
    assert list(hbase.dump(table)) == [b"k", b"l"]
    write(index, placed(THIRD, B, inserted=["new"]))
    assert where(index, ["new"], index_context(FIRST, THIRD)) == [B]


def test_a_rollback_needs_nothing_unless_asked_for(index):
    assert index.rolled_back is None


def test_a_missing_table_or_family_is_named_with_the_command_that_makes_it(hbase):
    index = make_entries(hbase.options("hoodie_no_such_table"), CONFIG)
    for call in (lambda: index.check(index_context()), lambda: where(index, ["k"], index_context(FIRST))):
        with pytest.raises(
            IndexUnavailable, match=r"no table 'hoodie_no_such_table'.*create 'hoodie_no_such_table', '_s'"
        ):
            call()
    with hbase.connected() as connection:
        name = f"{hbase.create_table()}_other"
        connection.create_table(name, {"cf": {}})
        hbase.table_names.append(name)
    index = make_entries(hbase.options(name), CONFIG)
    for call in (lambda: index.check(index_context()), lambda: write(index, placed(FIRST, A, inserted=["k"]))):
        with pytest.raises(IndexUnavailable, match="no column family '_s'"):
            call()


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ({b"_s:commit_ts": FIRST.encode(), b"_s:file_name": b"f-0"}, "no _s:partition_path"),
        ({b"_s:commit_ts": b"yesterday", b"_s:file_name": b"f-0", b"_s:partition_path": b"p"}, "no instant"),
        ({b"_s:commit_ts": b"20240101", b"_s:file_name": b"f-0", b"_s:partition_path": b"p"}, "no instant"),
        ({b"_s:commit_ts": FIRST.encode(), b"_s:file_name": b"", b"_s:partition_path": b"p"}, "no file id"),
        (
            {b"_s:commit_ts": FIRST.encode(), b"_s:file_name": b"f-0_0-1-2_3.parquet", b"_s:partition_path": b"p"},
            "no file id",
        ),
        ({b"_s:commit_ts": FIRST.encode(), b"_s:file_name": b"f-0", b"_s:partition_path": b"\xff"}, "not UTF-8"),
    ],
)
def test_cells_of_the_wrong_form_are_an_error_that_names_the_row(hbase, table, index, cells, problem):
    write(index, placed(FIRST, A, inserted=["good"]))
    with hbase.connected() as connection:
        connection.table(table).put(b"bad", cells)
    with pytest.raises(CorruptIndex, match=rf"b'bad'.*{problem}.*hoodie index rebuild"):
        where(index, ["good", "bad"], index_context(FIRST))


def test_a_key_longer_than_rows_of_hbase_is_refused(index):
    with pytest.raises(InvalidInput, match="40000 bytes"):
        where(index, ["x" * 40_000], index_context(FIRST))


def test_options_that_do_not_reach_an_index_are_refused():
    with pytest.raises(InvalidOption, match=r"hoodie\.index\.hbase\.table"):
        make_entries({}, CONFIG)
    with pytest.raises(InvalidOption, match=r"thrift\.host.*zkquorum is for"):
        make_entries({"hoodie.index.hbase.table": "t", "hoodie.index.hbase.zkquorum": "zk1"}, CONFIG)
    with pytest.raises(InvalidOption, match=r"get\.batch\.size='0'"):
        make_entries({"hoodie.index.hbase.table": "t", "hoodie.index.hbase.get.batch.size": "0"}, CONFIG)
    with pytest.raises(InvalidOption, match="SparkHoodieHBaseIndex"):
        make_entries(
            {
                "hoodie.index.hbase.table": "t",
                "hoodie.index.hbase.thrift.host": "h",
                "hoodie.index.class": "org.apache.hudi.index.hbase.Other",
            },
            CONFIG,
        )


def test_the_kernels_travel_to_executors(index):
    write(index, placed(FIRST, A, inserted=["k"]))
    copy = pickle.loads(pickle.dumps(index))
    assert where(copy, ["k"], index_context(FIRST)) == [A]
    tagger = pickle.loads(pickle.dumps(index.look_up.tagger(index_context(FIRST))))
    assert tagger(pa.array(["k"]), pa.array(["?"])).file_ids.to_pylist() == [A.file_id]


def test_a_move_that_failed_does_not_come_to_count_when_the_timeline_has_moved_on(index):
    write(index, placed(FIRST, A, inserted=["k"]))
    index.record_writes([placed(SECOND, B, moved=["k"])])  # fails, and is rolled back
    assert where(index, ["k"], index_context(THIRD)) == [A], "instants before the third are archived"
