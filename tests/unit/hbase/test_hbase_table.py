"""Tables written with the HBase index, without Spark. With HOODIE_TEST_HBASE=host:port these tests run against the
gateway there; those about a gateway that fails need the stand-in."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pyarrow as pa
import pytest

from hoodie.cli.main import main
from hoodie.errors import CorruptIndex, IndexUnavailable, InvalidOption, ServiceFailed
from hoodie.lookup.context import lookup_for_read
from hoodie.lookup.index_follow import rebuild_index
from hoodie.lookup.point_read import locate_keys
from hoodie.recovery.rollback import rollback
from hoodie.storage import storage_for
from hoodie.table.settings import Settings
from hoodie.testing.hbase import HBaseServer
from hoodie.testing.storage import Crash, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.hbase_parts import MOVES, TYPES, content, rows
from support.nightly import each_call, nightly
from support.trips import TRIPS


@pytest.fixture(params=TYPES)
def make_table(request, hbase):
    def make(gateway=hbase, **options):
        name = options.get("hoodie.index.hbase.table") or gateway.create_table()
        given = {**TRIPS, "hoodie.datasource.write.table.type": request.param, **gateway.options(name)}
        made = ArrowTable.create(MemoryStorage(), given | options)
        made.index = name
        return made

    return make


@pytest.fixture
def server():
    with HBaseServer() as made:
        yield made


def test_rows_are_inserted_updated_and_deleted(make_table, hbase):
    table = make_table()
    assert table.upsert(rows(("a", "x", 1), ("b", "x", 2), ("c", "y", 3))).inserted == 3
    result = table.upsert(rows(("a", "x", 10), ("d", "y", 4), ts=2))
    assert (result.inserted, result.updated) == (1, 1)
    assert (result.index.checked, result.index.hits) == (2, 1)
    table.delete(pa.table({"id": ["b"], "city": ["x"]}))
    assert content(table) == [("a", "x", 10), ("c", "y", 3), ("d", "y", 4)]
    assert sorted(hbase.dump(table.index)) == [b"a", b"c", b"d"]


def test_an_update_leaves_its_entry_as_it_is(make_table, hbase):
    table = make_table()
    table.upsert(rows(("a", "x", 1)))
    before = hbase.dump(table.index)
    table.upsert(rows(("a", "x", 2), ts=2))
    assert hbase.dump(table.index) == before


def test_a_deleted_key_may_come_back_elsewhere(make_table):
    table = make_table()
    table.upsert(rows(("a", "x", 1)))
    table.delete(pa.table({"id": ["a"], "city": ["x"]}))
    table.upsert(rows(("a", "y", 2), ts=2))
    table.upsert(rows(("a", "y", 3), ts=3))
    assert content(table) == [("a", "y", 3)]


def test_a_key_that_comes_with_another_partition_is_updated_where_it_is(make_table):
    table = make_table()
    table.upsert(rows(("a", "x", 1)))
    table.upsert(rows(("a", "y", 2), ts=2))
    assert [row["_hoodie_partition_path"] for row in table.snapshot().to_pylist()] == ["x"]
    assert [fare for _, _, fare in content(table)] == [2]


def test_a_key_that_comes_with_another_partition_moves_when_asked_to(make_table, hbase):
    table = make_table(**MOVES)
    table.upsert(rows(("a", "x", 1), ("b", "x", 1)))
    table.upsert(rows(("a", "y", 2), ("c", "y", 2), ts=2))
    assert content(table) == [("a", "y", 2), ("b", "x", 1), ("c", "y", 2)]
    table.upsert(rows(("a", "y", 3), ("b", "x", 3), ts=3))
    assert content(table) == [("a", "y", 3), ("b", "x", 3), ("c", "y", 2)]
    entry = hbase.dump(table.index)[b"a"]
    assert entry[b"_s:partition_path"] == b"y"
    assert len(entry) == 3


def test_inserts_of_a_merge_on_read_table_go_to_logs_and_are_found_there(hbase):
    name = hbase.create_table()
    options = {**TRIPS, "hoodie.datasource.write.table.type": "MERGE_ON_READ", **hbase.options(name)}
    table = ArrowTable.create(MemoryStorage(), options)
    table.upsert(rows(("a", "x", 1), ("b", "x", 2)))
    assert all(slice_.base is None and slice_.logs for slice_ in table.slices())
    result = table.upsert(rows(("a", "x", 3), ts=2))
    assert (result.inserted, result.updated) == (0, 1)
    assert content(table) == [("a", "x", 3), ("b", "x", 2)]


def test_rows_of_a_batch_with_one_key_are_one(make_table):
    table = make_table()
    table.upsert(rows(("a", "x", 1), ("a", "x", 2)))
    table.upsert(pa.concat_tables([rows(("a", "x", 5), ts=5), rows(("a", "x", 4), ts=4)]))
    assert content(table) == [("a", "x", 5)]


@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_writes_that_look_nothing_up_are_learnt(make_table, operation):
    table = make_table()
    getattr(table, operation)(rows(("a", "x", 1), ("b", "y", 2)))
    table.upsert(rows(("a", "x", 3), ("b", "y", 3), ts=2))
    assert content(table) == [("a", "x", 3), ("b", "y", 3)]


def test_overwritten_and_deleted_partitions_leave_no_keys_behind(make_table):
    table = make_table()
    table.upsert(rows(("a", "x", 1), ("b", "x", 1), ("c", "y", 1), ("d", "z", 1)))
    table.insert_overwrite(rows(("b", "x", 2), ("e", "x", 2), ts=2))
    table.delete_partitions(["z"])
    table.upsert(rows(("a", "x", 3), ("b", "x", 3), ("d", "z", 3), ts=3))
    assert content(table) == [("a", "x", 3), ("b", "x", 3), ("c", "y", 1), ("d", "z", 3), ("e", "x", 2)]
    table.upsert(rows(("a", "x", 4), ("d", "z", 4), ts=4))
    assert [row for row in content(table) if row[2] == 4] == [("a", "x", 4), ("d", "z", 4)]


@pytest.mark.parametrize("dying", [nightly(None), Dying.BEFORE])
def test_a_write_that_dies_anywhere_leaves_an_index_that_does_not_mislead(make_table, hbase, dying):
    name = hbase.create_table()
    for calls in each_call():
        keys = a, b, c, n = [f"{calls}-{key}" for key in "abcn"]  # of their own: all tables share one index
        table = make_table(**MOVES, **{"hoodie.index.hbase.table": name})
        table.upsert(rows((a, "x", 1), (b, "x", 1), (c, "y", 1)))
        table.fail_next(calls, dying)
        try:
            table.upsert(rows((a, "y", 2), (n, "x", 2), (c, "y", 2), ts=2))
        except (Crash, OSError):
            pass
        else:
            break
        assert content(table) in (
            [(a, "x", 1), (b, "x", 1), (c, "y", 1)],
            [(a, "y", 2), (b, "x", 1), (c, "y", 2), (n, "x", 2)],
        )
        table.upsert(rows((a, "y", 3), (b, "x", 3), (n, "x", 3), ts=3))
        assert [row for row in content(table) if row[0] != c] == [(a, "y", 3), (b, "x", 3), (n, "x", 3)]
        assert len(table.snapshot()) == len(keys)
    assert calls > 5


# --- making the index anew ---


def test_a_table_with_another_index_gets_one(make_table, hbase):
    table = make_table()
    options = table.options
    simple = {key: value for key, value in options.items() if not key.startswith("hoodie.index.hbase")}
    other = ArrowTable.create(MemoryStorage(), {**simple, "hoodie.index.type": "SIMPLE"})
    other.upsert(rows(("a", "x", 1), ("b", "x", 1), ("c", "y", 1)))
    other.upsert(rows(("a", "x", 2), ts=2))
    other.delete(pa.table({"id": ["b"], "city": ["x"]}))
    done = rebuild_index(other.storage, Settings.read(options))
    assert (done.entries, done.removed) == (2, 0)
    assert sorted(hbase.dump(table.index)) == [b"a", b"c"]
    other.options = options
    result = other.upsert(rows(("a", "x", 3), ("c", "y", 3), ("d", "y", 3), ts=3))
    assert (result.inserted, result.updated) == (1, 2)
    assert content(other) == [("a", "x", 3), ("c", "y", 3), ("d", "y", 3)]


def test_a_rebuild_puts_back_what_hbase_lost_and_removes_what_no_row_has(make_table, hbase):
    table = make_table()
    table.upsert(rows(("a", "x", 1), ("b", "x", 1), ("c", "y", 1)))
    before = hbase.dump(table.index)
    with hbase.connected() as connection:
        index = connection.table(table.index)
        index.delete(b"a")
        index.put(b"b", {b"_s:file_name": b"gone-0"})
        index.put(b"ghost", before[b"c"])
    with pytest.raises(CorruptIndex, match="gone-0"):
        table.upsert(rows(("b", "x", 2), ts=2))
    done = rebuild_index(table.storage, Settings.read(table.options))
    assert (done.entries, done.removed) == (3, 1)
    assert hbase.dump(table.index) == before
    table.upsert(rows(("a", "x", 2), ("b", "x", 2), ("ghost", "y", 2), ts=2))
    assert content(table) == [("a", "x", 2), ("b", "x", 2), ("c", "y", 1), ("ghost", "y", 2)]


def test_an_entry_of_a_file_group_that_is_gone_is_an_error_for_readers_too(make_table, hbase):
    table = make_table()
    table.upsert(rows(("a", "x", 1)))
    with hbase.connected() as connection:
        connection.table(table.index).put(b"a", {b"_s:file_name": b"gone-0"})
    context = lookup_for_read(table.state(), Settings.read(table.options))
    keys = pa.table({"_hoodie_record_key": ["a"], "_hoodie_partition_path": ["x"]})
    with ThreadPoolExecutor(1) as pool, pytest.raises(CorruptIndex, match="gone-0"):
        locate_keys(context, keys, pool)


def test_a_rebuild_leaves_the_entries_of_a_pending_write(make_table, hbase):
    table = make_table()
    table.upsert(rows(("a", "x", 1)))
    entry = {b"_s:commit_ts": b"9" * 17, b"_s:file_name": b"f-0", b"_s:partition_path": b"x"}
    with hbase.connected() as connection:
        connection.table(table.index).put(b"new", entry)
    assert rebuild_index(table.storage, Settings.read(table.options)).removed == 0
    assert hbase.dump(table.index)[b"new"] == entry


def test_an_entry_made_anew_has_an_instant_that_no_rollback_of_an_update_takes_away(make_table, hbase):
    table = make_table()
    first = table.upsert(rows(("a", "x", 1))).instant
    table.upsert(rows(("a", "x", 2), ts=2))
    rebuild_index(table.storage, Settings.read(table.options))
    assert hbase.dump(table.index)[b"a"][b"_s:commit_ts"] == first.encode()


def test_rows_that_a_rollback_brings_back_are_found_again(make_table, hbase):
    table = make_table(**MOVES)
    table.upsert(rows(("a", "x", 1), ("b", "x", 1), ("c", "y", 1)))
    deleted = table.delete(pa.table({"id": ["a"], "city": ["x"]})).instant
    rollback(table.storage, Settings.read(table.options), deleted)
    moved = table.upsert(rows(("b", "y", 2), ("n", "y", 2), ts=2)).instant
    rollback(table.storage, Settings.read(table.options), moved)
    overwritten = table.insert_overwrite(rows(("b", "x", 3), ts=3)).instant
    rollback(table.storage, Settings.read(table.options), overwritten)
    gone = table.delete_partitions(["y"]).instant
    rollback(table.storage, Settings.read(table.options), gone)
    assert content(table) == [("a", "x", 1), ("b", "x", 1), ("c", "y", 1)]
    result = table.upsert(rows(("a", "x", 4), ("b", "x", 4), ("c", "y", 4), ("n", "y", 4), ts=4))
    assert (result.inserted, result.updated) == (1, 3)
    assert content(table) == [("a", "x", 4), ("b", "x", 4), ("c", "y", 4), ("n", "y", 4)]


def test_the_keys_of_a_first_commit_that_was_rolled_back_are_new(make_table):
    table = make_table()
    first = table.upsert(rows(("a", "x", 1), ("b", "x", 1))).instant
    rollback(table.storage, Settings.read(table.options), first)
    table.upsert(rows(("a", "x", 2), ts=2))
    assert table.upsert(rows(("b", "x", 3), ts=3)).inserted == 1, "its instant is older than the timeline's first"
    assert content(table) == [("a", "x", 2), ("b", "x", 3)]


def test_the_command_rebuilds(tmp_path, hbase, capsys):
    name = hbase.create_table()
    path = tmp_path / "trips"
    path.mkdir()
    table = ArrowTable.create(storage_for(str(path)), {**TRIPS, **hbase.options(name)})
    table.upsert(rows(("a", "x", 1)))
    with hbase.connected() as connection:
        connection.table(name).delete(b"a")
    given = [f"--option={key}={value}" for key, value in hbase.options(name).items()]
    assert main(["index", "rebuild", str(path), *given]) == 0
    assert "1 entries of 1 file groups" in capsys.readouterr().out
    assert list(hbase.dump(name)) == [b"a"]
    assert main(["index", "rebuild", str(path), "--option", "hoodie.index.type=SIMPLE"]) == 2
    assert "nothing to rebuild" in capsys.readouterr().err


def test_only_an_hbase_index_is_rebuilt():
    table = ArrowTable.create(MemoryStorage(), TRIPS)
    with pytest.raises(InvalidOption, match="nothing to rebuild"):
        rebuild_index(table.storage, Settings.of({"hoodie.index.type": "BLOOM"}))


# --- a gateway that fails ---


def test_hbase_down_before_the_commit_publishes_nothing(make_table, server):
    table = make_table(server)
    table.upsert(rows(("a", "x", 1)))
    before = table.storage.snapshot()
    server.stop()
    with pytest.raises(IndexUnavailable, match="failed 3 times"):
        table.upsert(rows(("b", "x", 1)))
    assert table.storage.snapshot() == before
    server.start()
    table.upsert(rows(("b", "x", 1)))
    assert content(table) == [("a", "x", 1), ("b", "x", 1)]


def test_hbase_down_while_entries_are_put_publishes_nothing(make_table, server):
    table = make_table(server)
    table.upsert(rows(("a", "x", 1)))
    server.faults.calls, server.faults.errors = frozenset({"mutateRowsTs"}), 100
    with pytest.raises(IndexUnavailable, match="mutateRowsTs"):
        table.upsert(rows(("a", "x", 2), ("b", "y", 1), ts=2))
    assert content(table) == [("a", "x", 1)]
    server.faults.errors = 0
    table.upsert(rows(("a", "x", 3), ("b", "y", 3), ts=3))
    assert content(table) == [("a", "x", 3), ("b", "y", 3)]


def test_puts_that_hbase_loses_fail_the_write(make_table, server):
    table = make_table(server)
    server.faults.lost_puts = 1000
    with pytest.raises(IndexUnavailable, match="acknowledged a put of 1 entries"):
        table.upsert(rows(("a", "x", 1)))
    server.faults.lost_puts = 0
    table.upsert(rows(("a", "x", 1)))
    table.upsert(rows(("a", "x", 2), ts=2))
    assert content(table) == [("a", "x", 2)]


def test_hbase_down_after_the_commit_is_said_and_does_no_harm(make_table, server):
    table = make_table(server, **MOVES)
    table.upsert(rows(("a", "x", 1), ("b", "x", 1)))
    with down_after_publication(server, table), pytest.warns(ServiceFailed, match="hoodie index rebuild"):
        table.upsert(rows(("a", "y", 2), ts=2))
    with down_after_publication(server, table), pytest.warns(ServiceFailed, match="hoodie index rebuild"):
        table.delete(pa.table({"id": ["b"], "city": ["x"]}))
    assert content(table) == [("a", "y", 2)]
    assert b"_s:next_commit_ts" in server.dump(table.index)[b"a"], "the entry has not taken its place"
    table.upsert(rows(("a", "y", 3), ("b", "x", 3), ts=3))
    assert content(table) == [("a", "y", 3), ("b", "x", 3)]
    rebuild_index(table.storage, Settings.read(table.options))
    assert all(len(cells) == 3 for cells in server.dump(table.index).values())
    table.upsert(rows(("a", "y", 4), ("b", "x", 4), ts=4))
    assert content(table) == [("a", "y", 4), ("b", "x", 4)]


@contextmanager
def down_after_publication(server, table):
    """HBase takes no mutation once the table has one more completed instant."""
    before = len(table.state().timeline.commits)

    def watched(name, call, arguments):
        if name.startswith("mutate") and len(table.state().timeline.commits) > before:
            server.faults.errors = 1
        return HBaseServer._called(server, name, call, arguments)

    server._called = watched
    yield
    del server._called
    server.faults.errors = 0
