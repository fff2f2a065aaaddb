"""What keeps an HBase index and its table together: rollbacks while HBase is down or not named, emptied index tables,
keys in two file groups. Against the stand-in, where something fails; with HOODIE_TEST_HBASE against the gateway there
otherwise."""

import copy
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from hoodie.cli.main import main
from hoodie.config.options import Options
from hoodie.errors import CorruptIndex, HoodieError, IndexOutOfDate, IndexUnavailable, InvalidOption
from hoodie.hbase.mark import MARK, SEEN
from hoodie.hbase.missed_rollbacks import FOLDER, recorded_instants
from hoodie.lookup.context import lookup_for_read
from hoodie.lookup.index_follow import rebuild_index, repair_near
from hoodie.lookup.point_read import locate_keys
from hoodie.model.instant import Action
from hoodie.recovery.restore import restore
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.storage import storage_for
from hoodie.table.properties import update_properties
from hoodie.table.settings import Settings
from hoodie.testing.hbase import HBaseServer
from hoodie.testing.storage import Crash, CrashAfter, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.hbase_parts import MOVES, TYPES, content, rows
from support.nightly import each_call, nightly
from support.trips import TRIPS

OFFLINE = {"hoodie.index.hbase.rollback.offline": "true"}
KEYS = {"hoodie.index.type", "hoodie.index.hbase.table"}


@pytest.fixture
def server():
    with HBaseServer() as made:
        yield made


@pytest.fixture(params=TYPES)
def table(request, server):
    return made(server, request.param)


def made(gateway, table_type, **options):
    name = gateway.create_table()
    given = {**TRIPS, "hoodie.datasource.write.table.type": table_type, **gateway.options(name), **options}
    table = ArrowTable.create(MemoryStorage(), given)
    table.index = name
    return table


def delete(table, *keys):
    return table.delete(pa.table({"id": list(keys), "city": ["x"] * len(keys)})).instant


def nameless(options):
    """Options of somebody who opens the table by its path alone."""
    return Options({key: value for key, value in options.items() if not key.startswith("hoodie.index")})


# --- rollbacks that the index cannot hear of ---


def test_a_rollback_while_hbase_is_down_is_refused_and_changes_nothing(table, server):
    table.upsert(rows(("a", "x", 1)))
    deleted = delete(table, "a")
    before = table.storage.snapshot()
    server.stop()
    with pytest.raises(IndexUnavailable, match=rf"{deleted} cannot be rolled back.*rollback\.offline=true"):
        rollback(table.storage, Settings.read(table.options))
    assert table.storage.snapshot() == before


def test_a_rollback_without_the_options_of_the_index_is_refused_and_changes_nothing(table):
    table.upsert(rows(("a", "x", 1)))
    deleted = delete(table, "a")
    before = table.storage.snapshot()
    for instant in (None, deleted):
        with pytest.raises(InvalidOption, match=r"hoodie\.index\.hbase\.table.*rollback\.offline=true"):
            rollback(table.storage, Settings.read(nameless(table.options)), instant)
        assert table.storage.snapshot() == before


def test_a_table_that_does_not_name_its_index_still_knows_it_from_its_commits(server):
    options = server.options(server.create_table())
    table = ArrowTable.create(MemoryStorage(), TRIPS)
    table.options = Options({**table.options, **options})
    table.upsert(rows(("a", "x", 1)))
    delete(table, "a")
    with pytest.raises(
        InvalidOption, match=r"cannot be rolled back without the table's index in HBase: .*\w\. Give the options"
    ):
        rollback(table.storage, Settings.of(TRIPS))


@pytest.mark.parametrize("down", [True, False])
def test_the_write_after_an_offline_rollback_brings_the_index_up_to_date(table, server, down):
    table.upsert(rows(("a", "x", 1), ("b", "x", 1)))
    delete(table, "a")
    if down:
        server.stop()
    with pytest.warns(IndexOutOfDate, match="the next write with the index"):
        rollback(table.storage, Settings.of({**(table.options if down else nameless(table.options)), **OFFLINE}))
    if down:
        server.start()
    assert len(recorded_instants(table.storage)) == 1
    assert table.upsert(rows(("a", "x", 2), ("c", "y", 2), ts=2)).inserted == 1
    assert content(table) == [("a", "x", 2), ("b", "x", 1), ("c", "y", 2)]
    assert recorded_instants(table.storage) == []


def test_who_only_reads_with_an_index_that_is_out_of_date_is_told(table):
    table.upsert(rows(("a", "x", 1)))
    delete(table, "a")
    with pytest.warns(IndexOutOfDate):
        rollback(table.storage, Settings.of({**table.options, **OFFLINE}))
    context = lookup_for_read(table.state(), Settings.read(table.options))
    keys = pa.table({"_hoodie_record_key": ["a"], "_hoodie_partition_path": ["x"]})
    with ThreadPoolExecutor(1) as pool, pytest.raises(CorruptIndex, match="out of date"):
        locate_keys(context, keys, pool)


def test_a_write_that_cannot_bring_the_index_up_to_date_writes_nothing(table, server):
    table.upsert(rows(("a", "x", 1)))
    delete(table, "a")
    with pytest.warns(IndexOutOfDate):
        rollback(table.storage, Settings.of({**table.options, **OFFLINE}))
    server.faults.calls, server.faults.errors = frozenset({"mutateRowsTs"}), 1000
    with pytest.raises(IndexUnavailable):
        table.upsert(rows(("a", "x", 2), ts=2))
    assert content(table) == [("a", "x", 1)]
    server.faults.errors = 0
    table.upsert(rows(("a", "x", 3), ts=3))
    assert content(table) == [("a", "x", 3)]


def test_a_restore_that_the_index_cannot_hear_of_is_refused(table, server):
    table.upsert(rows(("a", "x", 1), ("b", "x", 1)))
    kept = make_savepoint(table.storage, Settings.read(table.options), None).instant
    delete(table, "a")
    delete(table, "b")
    before = table.storage.snapshot()
    server.stop()
    with pytest.raises(IndexUnavailable, match="cannot be rolled back"):
        restore(table.storage, Settings.read(table.options), kept)
    assert table.storage.snapshot() == before
    with pytest.warns(IndexOutOfDate):
        restore(table.storage, Settings.of({**table.options, **OFFLINE}), kept)
    server.start()
    assert table.upsert(rows(("a", "x", 2), ("b", "x", 2), ts=2)).inserted == 0
    assert content(table) == [("a", "x", 2), ("b", "x", 2)]


@pytest.mark.parametrize("how", [nightly(Dying.BEFORE), Dying.AFTER])
@pytest.mark.parametrize("act", [nightly("rollback"), "restore"])
def test_a_rollback_that_dies_anywhere_leaves_an_index_that_the_next_write_mends(table, act, how):
    table.options = Options({**table.options, **MOVES})
    table.upsert(rows(("a", "x", 1), ("b", "x", 1), ("c", "x", 1)))
    kept = make_savepoint(table.storage, Settings.read(table.options), None).instant
    table.upsert(rows(("b", "y", 2), ts=2))
    if act == "rollback":
        delete(table, "c")
    delete(table, "a")
    start, died = table.storage, 0
    for calls in range(200):
        table.storage = start.copy()
        entries = copy.deepcopy(server_rows(table))
        try:
            undo = CrashAfter(table.storage, calls, how)
            if act == "rollback":
                rollback(undo, Settings.read(table.options))
            else:
                restore(undo, Settings.read(table.options), kept)
        except Crash:
            died += 1
        if act == "restore" and died == calls + 1:
            restore_until_done(table, kept)
        table.upsert(rows(("a", "x", 5), ("b", "x", 5), ("c", "x", 5), ts=5))
        assert content(table) == [("a", "x", 5), ("b", "x", 5), ("c", "x", 5)], calls
        put_back(table, entries)
        if died <= calls:
            break
    assert died > 5


def restore_until_done(table, kept):
    if table.state().timeline.pending({Action.RESTORE}):
        restore(table.storage, Settings.read(table.options), kept)


def server_rows(table):
    """What the stand-in stores for the table's index."""
    return table.server.store.tables[table.index.encode()].rows


def put_back(table, entries):
    stored = table.server.store.tables[table.index.encode()]
    stored.rows.clear()
    stored.rows.update(entries)


@pytest.fixture(autouse=True)
def _with_server(request):
    if "table" in request.fixturenames and "server" in request.fixturenames:
        request.getfixturevalue("table").server = request.getfixturevalue("server")


def test_keys_that_an_insert_took_over_are_found_again_once_it_is_rolled_back(table):
    table.upsert(rows(("a", "x", 1), ("b", "y", 1)))
    inserted = table.insert(rows(("a", "y", 2), ts=2)).instant
    rollback(table.storage, Settings.read(table.options), inserted)
    assert table.upsert(rows(("a", "x", 3), ("b", "y", 3), ts=3)).inserted == 0
    assert content(table) == [("a", "x", 3), ("b", "y", 3)]


def test_a_rollback_of_updates_and_inserts_reads_no_rows_again(table, server):
    table.upsert(rows(("a", "x", 1), ("b", "y", 1)))
    table.upsert(rows(("a", "x", 2), ("n", "z", 2), ts=2))
    server.calls.clear()
    jobs = []
    rollback(table.storage, Settings.read(table.options), repair=lambda job: jobs.append(job) or repair_near(job))
    assert not jobs
    assert not {"getRowsWithColumns", "mutateRowsTs"} & server.calls.keys()
    table.upsert(rows(("a", "x", 3), ("n", "z", 3), ts=3))
    assert content(table) == [("a", "x", 3), ("b", "y", 1), ("n", "z", 3)]


def test_a_rollback_reads_only_file_groups_that_lost_keys_side_by_side_and_without_the_rates(table, server):
    table.upsert(rows(*((f"k{n}", city, 1) for n, city in enumerate("xyz" * 3))))
    table.upsert(rows(*((f"k{n}", city, 2) for n, city in enumerate("xyz" * 3)), ts=2))
    table.delete(pa.table({"id": ["k0", "k1"], "city": ["x", "y"]}))
    jobs = []
    slow = {"hoodie.index.hbase.put.batch.size": "1", "hoodie.index.hbase.get.batch.size": "1"}
    rollback(
        table.storage, Settings.of({**table.options, **slow}), repair=lambda job: jobs.append(job) or repair_near(job)
    )
    assert sorted(task.slice.group.partition for task in jobs[0].tasks) == ["x", "y"]
    assert table.upsert(rows(("k0", "x", 3), ("k1", "y", 3), ts=3)).inserted == 0


def test_a_large_repair_is_not_for_threads_of_the_driver(table):
    table.upsert(rows(("a", "x", 1)))
    delete(table, "a")
    near = []
    rollback(
        table.storage,
        Settings.of({**table.options, **{"hoodie.spark.driver.max.batch.bytes": "0"}}),
        repair=lambda job: near.append(job.on_driver) or repair_near(job),
    )
    assert near == [False]


# --- the mark ---


@pytest.mark.parametrize("how", ["emptied", "another's", "older"])
def test_an_index_that_is_not_the_table_s_any_more_is_refused_before_keys_are_taken_for_new(table, server, how):
    stored = server.store.tables[table.index.encode()]
    table.upsert(rows(("a", "x", 1)))
    older = dict(stored.rows[MARK].cells), dict(stored.rows[b"a"].cells)
    table.upsert(rows(("b", "x", 1)))
    if how == "emptied":
        stored.rows.clear()
    elif how == "older":
        snapshot = copy.deepcopy(older[0])
        for versions in snapshot.values():
            del versions[max(versions)]
        stored.rows[MARK].cells = snapshot
        stored.rows.pop(b"b")
    else:
        other = made(server, "COPY_ON_WRITE", **{"hoodie.table.name": "others"})
        other.upsert(rows(("z", "x", 1)))
        table.options = Options({**table.options, "hoodie.index.hbase.table": other.index})
    before = table.storage.snapshot()
    said = {"emptied": "emptied or rebuilt", "another's": "table 'others'", "older": "older copy"}[how]
    for write in (table.upsert, table.insert):
        with pytest.raises(CorruptIndex, match=said):
            write(rows(("a", "x", 2), ("b", "x", 2), ts=2))
    assert table.storage.snapshot() == before
    if how != "another's":
        rebuild_index(table.storage, Settings.read(table.options))
        assert table.upsert(rows(("a", "x", 2), ("b", "x", 2), ts=2)).inserted == 0


def test_an_index_that_has_never_been_filled_is_refused(server):
    table = ArrowTable.create(MemoryStorage(), {**TRIPS, "hoodie.index.type": "GLOBAL_SIMPLE"})
    table.upsert(rows(("a", "x", 1)))
    table.options = Options({**table.options, **server.options(server.create_table())})
    with pytest.raises(CorruptIndex, match="is empty, and the table has rows"):
        table.upsert(rows(("a", "x", 2), ts=2))
    rebuild_index(table.storage, Settings.read(table.options))
    assert table.upsert(rows(("a", "x", 2), ts=2)).inserted == 0


def test_an_index_that_hudi_filled_needs_no_mark(table, server):
    """Its writers put none, and say nothing of one in their commits."""
    table.upsert(rows(("a", "x", 1)))
    del server.store.tables[table.index.encode()].rows[MARK]
    for path in [p for p in table.storage.snapshot() if p.endswith("commit")]:
        table.storage.write(path, table.storage.read(path).replace(SEEN.encode(), b"x"))
    assert table.upsert(rows(("a", "x", 2), ("b", "x", 2), ts=2)).inserted == 1
    for path in [p for p in table.storage.snapshot() if p.endswith("commit")]:  # Hudi's again, some of them
        table.storage.write(path, table.storage.read(path).replace(SEEN.encode(), b"x"))
    assert table.upsert(rows(("c", "x", 3), ts=3)).inserted == 1


def test_failed_writes_rollbacks_and_renames_raise_no_false_alarm(table, server):
    table.upsert(rows(("a", "x", 1)))
    table.fail_next(3, Dying.BEFORE)
    with pytest.raises(Crash):
        table.upsert(rows(("b", "x", 1)))
    table.upsert(rows(("c", "x", 1)))
    rollback(table.storage, Settings.read(table.options))
    delete(table, "a")
    server.store.tables[table.index.encode()].major_compact()
    table.upsert(rows(("c", "x", 2), ts=2))
    update_properties(table.storage, {"hoodie.table.name": "renamed"})
    table.options = Options({**table.options, "hoodie.table.name": "renamed"})
    for n in range(3):
        table.upsert(rows((f"n{n}", "x", 3), ts=3))
    assert len(content(table)) == 4


# --- keys in two file groups ---


def doubled(table, server):
    """A table that an earlier release, or Hudi, left with keys in two file groups."""
    table.upsert(rows(("a", "x", 1), ("b", "x", 1), ("c", "y", 1)))
    stored = server.store.tables[table.index.encode()].rows
    kept = {key: row for key, row in stored.items() if key in (b"a", b"b")}
    for key in kept:
        del stored[key]
    table.upsert(rows(("a", "y", 5), ("b", "z", 0), ts=5), options={"hoodie.parquet.small.file.limit": "0"})
    assert len(content(table)) == 5


def test_a_rebuild_names_keys_in_two_file_groups(table, server):
    doubled(table, server)
    done = rebuild_index(table.storage, Settings.read(table.options))
    assert sorted(done.doubled) == ["a", "b"]
    assert {group.partition for group in done.doubled["b"]} == {"x", "z"}
    assert "2 keys in more than one file group: --mend" in str(done)
    assert "'a' in " in str(done)
    assert len(content(table)) == 5, "nothing was mended"


@pytest.mark.parametrize("older_first", [True, False])
def test_a_rebuild_mends_keys_in_two_file_groups_by_the_newest_row(table, server, older_first):
    doubled(table, server)
    done = rebuild_index(table.storage, Settings.read(table.options), mend_doubled=True)
    assert done.mended
    assert content(table) == [("a", "y", 5), ("b", "z", 0), ("c", "y", 1)]
    again = rebuild_index(table.storage, Settings.read(table.options))
    assert not again.doubled
    assert table.upsert(rows(("a", "y", 6), ("b", "z", 6), ("c", "y", 6), ts=6)).inserted == 0
    assert [fare for _, _, fare in content(table)] == [6, 6, 6]


def test_mending_that_dies_anywhere_is_done_by_calling_it_again(table, server):
    doubled(table, server)
    start = table.storage
    for calls in each_call():
        table.storage = start.copy()
        try:
            rebuild_index(
                CrashAfter(table.storage, calls, Dying.BEFORE), Settings.read(table.options), mend_doubled=True
            )
        except Crash:
            rebuild_index(table.storage, Settings.read(table.options), mend_doubled=True)
        else:
            break
        assert content(table) == [("a", "y", 5), ("b", "z", 0), ("c", "y", 1)]
        assert not rebuild_index(table.storage, Settings.read(table.options)).doubled
    assert calls > 3


def test_the_command_names_and_mends(tmp_path, server, capsys):
    name = server.create_table()
    (tmp_path / "t").mkdir()
    table = ArrowTable.create(storage_for(str(tmp_path / "t")), {**TRIPS, **server.options(name)})
    table.index = name
    doubled(table, server)
    given = [f"--option={key}={value}" for key, value in server.options(name).items()]
    assert main(["index", "rebuild", str(tmp_path / "t"), *given]) == 1
    assert "'a' in" in capsys.readouterr().out
    assert main(["index", "rebuild", str(tmp_path / "t"), *given, "--mend"]) == 0
    assert len(content(table)) == 3
    assert main(["index", "rebuild", str(tmp_path / "t"), *given]) == 0


def test_what_is_remembered_is_in_a_folder_that_timelines_do_not_look_at(table):
    table.upsert(rows(("a", "x", 1)))
    delete(table, "a")
    with pytest.warns(IndexOutOfDate):
        rollback(table.storage, Settings.of({**table.options, **OFFLINE}))
    (path,) = [p for p in table.storage.snapshot() if p.startswith(FOLDER)]
    assert path.count("/") == 2
    table.storage.write(path, b"{")
    with pytest.raises(HoodieError, match="cannot be read"):
        table.upsert(rows(("a", "x", 2), ts=2))
    table.storage.delete(path)


@pytest.mark.parametrize("part", [0, 0.6])
def test_rows_that_a_damaged_commit_deleted_are_in_the_index_again_once_it_is_rolled_back(table, part):
    table.upsert(rows(("a", "x", 1), ("b", "x", 1)))
    deleted = delete(table, "a")
    (path,) = (p for p in table.storage.snapshot() if p.startswith(f".hoodie/{deleted}.") and p.endswith("commit"))
    data = table.storage.read(path)
    table.storage.write(path, data[: int(len(data) * part)])
    with pytest.raises(InvalidOption, match="cannot be rolled back without the table's index"):
        rollback(table.storage, Settings.read(nameless(table.options)))
    rollback(table.storage, Settings.read(table.options))
    result = table.upsert(rows(("a", "x", 2), ts=2))
    assert (result.inserted, result.updated) == (0, 1)
    assert content(table) == [("a", "x", 2), ("b", "x", 1)]


def test_rows_that_a_damaged_overwrite_replaced_are_in_the_index_again_once_it_is_rolled_back(table):
    table.upsert(rows(("a", "x", 1), ("b", "y", 1)))
    overwrite = table.insert_overwrite(rows(("c", "x", 2))).instant
    table.storage.write(f".hoodie/{overwrite}.replacecommit", b'{"partitionTo')
    rollback(table.storage, Settings.read(table.options))
    result = table.upsert(rows(("a", "x", 3), ts=3))
    assert (result.inserted, result.updated) == (0, 1)
    assert content(table) == [("a", "x", 3), ("b", "y", 1)]
