"""Published files, and metafiles of partitions, that are gone: reads and writes say so, and never go on in silence."""

import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from hoodie.commit import batch_ids
from hoodie.config.options import Options
from hoodie.config.read import ReadSettings
from hoodie.doctor.examine import Fault, examine
from hoodie.doctor.repair import repair
from hoodie.errors import (
    CorruptFile,
    DamagedLog,
    HistoryGone,
    MetafileMissing,
    MissingFile,
    MissingFileIgnored,
    ServiceFailed,
    WriteConflict,
)
from hoodie.reading.changes.data_plan import plan_change_data
from hoodie.reading.scan import ScanKind
from hoodie.reading.snapshot import read_scan, read_table
from hoodie.recovery.restore import restore
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint as savepoint
from hoodie.services.archive import archive
from hoodie.services.clean import clean
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.load import COMMITS, Memory
from hoodie.view import published
from hoodie.view.load import load_view
from support.meanwhile import Meanwhile, calls_of
from support.nightly import by_day, scaled
from support.scans import plan_scan
from support.trips import TRIPS

OPTIONS = {
    **TRIPS,
    "hoodie.spark.driver.threads": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
INDEXES: list[dict[str, str]] = [
    {"hoodie.index.type": "SIMPLE"},
    {"hoodie.index.type": "BLOOM"},
    {"hoodie.index.type": "GLOBAL_SIMPLE"},
    {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"},
]
IGNORE = {"hoodie.read.ignore.missing.files": "true"}
METAFILE = ".hoodie_partition_metadata"


def forget() -> None:
    """As in a new process."""
    COMMITS.forget()
    published.PUBLISHED.forget()
    published.COMPLETE.forget()


@pytest.fixture(autouse=True)
def strictly() -> Iterator[None]:
    """A warning that a test does not expect fails it."""
    with warnings.catch_warnings():
        for kind in (MissingFileIgnored, MetafileMissing, ServiceFailed):
            warnings.simplefilter("error", kind)
        yield


def batch(ts: int, **cities: str) -> pa.Table:
    return pa.table({"id": list(cities), "city": list(cities.values()), "ts": pa.array([ts] * len(cities), pa.int64())})


def made(kind: str = "COPY_ON_WRITE", storage: Storage | None = None, **more: str) -> ArrowTable:
    """Two partitions, written twice: of `a` and `b` there is a newer version."""
    by_hand = {"hoodie.datasource.write.table.type": kind, "hoodie.compact.inline": "false"}
    settings = {**OPTIONS, **by_hand, **more}
    table = ArrowTable.create(storage or MemoryStorage(), settings)
    table.upsert(batch(1, a="oslo", b="rome", c="oslo"))
    table.upsert(batch(2, a="oslo", b="rome"))
    return table


def rows(found: pa.Table) -> dict[str, int]:
    ids = found.column("id").to_pylist()
    assert len(ids) == len(set(ids))
    return dict(zip(ids, found.column("ts").to_pylist(), strict=True))


def newest(table: ArrowTable, partition: str = "oslo") -> str:
    """Path of the file with the newest rows of a partition: of its log, if there is one."""
    (slice_,) = (each for each in table.slices() if each.group.partition == partition)
    file = slice_.logs[-1] if slice_.logs else slice_.base
    return file.path


def base(table: ArrowTable, partition: str = "oslo") -> str:
    (slice_,) = (each for each in table.slices() if each.group.partition == partition)
    assert slice_.base is not None
    return slice_.base.path


# --- reads ---


@pytest.mark.parametrize("kind", KINDS)
def test_a_read_that_needs_a_missing_file_names_it_and_its_commit(kind):
    table = made(kind)
    last, path = table.state().timeline.newest_commit, newest(table)
    table.storage.delete(path)
    with pytest.raises(MissingFile, match="hoodie check") as raised:
        table.snapshot()
    assert (raised.value.path, raised.value.instant) == (path, last)
    with pytest.raises(MissingFile):
        table.as_of(last)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_is_read_when_the_options_say_so(kind):
    table = made(kind)
    table.storage.delete(newest(table))
    with pytest.warns(MissingFileIgnored):
        left = read_table(table.state(), settings=ReadSettings.read(Options(IGNORE)))
    assert rows(left) == {"a": 1, "b": 2, "c": 1}


def test_a_partition_whose_folder_is_gone_is_missed():
    table = made()
    table.storage.delete_tree("oslo")
    with pytest.raises(MissingFile, match="oslo/"):
        table.snapshot()


def test_a_read_as_of_an_instant_that_does_not_need_the_file_has_its_rows():
    table = made()
    first = table.state().timeline.commits[0].requested
    table.storage.delete(newest(table))
    assert rows(table.as_of(first)) == {"a": 1, "b": 1, "c": 1}


def test_a_read_optimized_view_does_not_need_logs():
    table = made("MERGE_ON_READ")
    path = base(table)
    table.storage.delete(newest(table))
    assert rows(table.read_optimized()) == {"a": 1, "b": 1, "c": 1}
    table.storage.delete(path)
    with pytest.raises(MissingFile):
        table.read_optimized()


def test_a_base_file_below_a_log_is_missed_though_its_commit_is_archived():
    table = made("MERGE_ON_READ")
    first, path = table.state().timeline.commits[0], base(table)
    timeline = table.state().timeline
    table.storage.delete(timeline.path(first))
    table.storage.delete(f".hoodie/{first.requested}.deltacommit.inflight")
    table.storage.delete(f".hoodie/{first.requested}.deltacommit.requested")
    assert rows(table.snapshot()) == {"a": 2, "b": 2, "c": 1}
    table.storage.delete(path)
    with pytest.raises(MissingFile):
        table.snapshot()


@pytest.mark.parametrize("kind", KINDS)
def test_changes_of_a_missing_file_are_an_error_and_no_history(kind):
    table = made(kind)
    first = table.state().timeline.commits[0].requested
    table.storage.delete(newest(table))
    with pytest.raises(MissingFile):
        table.changes(first)
    with pytest.warns(MissingFileIgnored):
        left = read_scan(
            plan_scan(table.state(), ScanKind.CHANGES, begin=first, settings=ReadSettings.read(Options(IGNORE)))
        )
    assert rows(left) == {"b": 2}


def test_changes_whose_files_were_cleaned_are_history_still():
    table = made()
    first = table.state().timeline.commits[0].requested
    table.upsert(batch(3, a="oslo"))
    assert clean(table.storage, Settings.of({"hoodie.cleaner.commits.retained": "1"})).paths
    with pytest.raises(HistoryGone):
        table.changes("earliest", first)


# --- what is no loss ---


@pytest.mark.parametrize("kind", KINDS)
def test_cleaned_replaced_and_rolled_back_files_are_not_missed(kind):
    table = made(kind)
    for number in range(3, 6):
        table.upsert(batch(number, a="oslo"))
    if kind == "MERGE_ON_READ":
        planned = schedule_compaction(table.storage, Settings.of({"hoodie.compact.inline.max.delta.commits": "1"}))
        assert planned
        table.upsert(batch(6, a="oslo"))
        compact(table.storage, Settings.of({}), planned)
    table.insert_overwrite(batch(7, d="rome"))
    clean(table.storage, Settings.of({"hoodie.cleaner.commits.retained": "1"}))
    table.upsert(batch(8, a="oslo"))
    rollback(table.storage, Settings.of({}))
    clean(table.storage, Settings.of({"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS"}))
    expected = {"a": 6 if kind == "MERGE_ON_READ" else 5, "c": 1, "d": 7}
    assert rows(table.snapshot()) == expected
    archive(table.storage, Settings.of({"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}))
    assert rows(table.snapshot()) == expected
    table.delete_partitions(["oslo"])
    clean(table.storage, Settings.of({"hoodie.cleaner.commits.retained": "1"}))
    assert rows(table.snapshot()) == {"d": 7}
    table.upsert(batch(9, a="oslo", d="rome"))
    assert rows(table.snapshot()) == {"a": 9, "d": 9}


def test_a_restored_table_misses_nothing():
    table = made()
    saved = savepoint(table.storage, Settings.of({})).instant
    table.upsert(batch(3, a="oslo", z="bern"))
    restore(table.storage, Settings.of({}), saved)
    assert rows(table.snapshot()) == {"a": 2, "b": 2, "c": 1}


def test_a_reader_amid_whose_listings_the_table_is_cleaned_begins_anew():
    table = made()

    def work() -> None:
        for number in range(3, 6):
            table.upsert(batch(number, a="oslo", b="rome"))
        clean(table.storage, Settings.of({"hoodie.cleaner.commits.retained": "1"}))

    def lists_files(name: str, path: str) -> bool:
        return name in ("list_tree", "list") and not path.startswith(".hoodie")

    assert rows(read_table(load_state(Meanwhile(table.storage, lists_files, work)))) == {"a": 5, "b": 5, "c": 1}


LOOKS: dict[str, Callable[[ArrowTable], object]] = {
    "snapshot": lambda table: rows(table.snapshot())["a"],
    "changes": lambda table: rows(table.changes("earliest"))["a"],
    "change data": lambda table: len(plan_change_data(table.state(), "earliest").groups),
    "upsert": lambda table: table.upsert(batch(9, a="oslo")).metadata.updated,
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_at_commits_that_are_archived_before_they_are_read_begins_anew(look: str):
    table = made(**{"hoodie.table.cdc.enabled": "true"})

    def work() -> None:
        for number in range(3, 7):
            table.upsert(batch(number, a="oslo"))
        archive(table.storage, Settings.of({"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}))

    moving = Meanwhile(table.storage, calls_of("read", "commit"), work)
    result = LOOKS[look](ArrowTable(moving, table.options))
    assert moving.over
    assert result == LOOKS[look](table)


def test_a_commit_that_is_listed_and_not_there_is_an_error_all_the_same():
    table = made()

    class Lists(WrappedStorage):
        def observe(self, name: str, path: str, call: Any) -> Any:
            if name == "read" and path.endswith(".commit"):
                raise FileNotFoundError(path)
            return call()

    for look in ("snapshot", "upsert"):
        with pytest.raises(FileNotFoundError):
            LOOKS[look](ArrowTable(Lists(table.storage), table.options))


def test_a_writer_amid_whose_listings_the_table_is_cleaned_is_told_to_try_again():
    table = made()
    state = table.state()
    for number in range(3, 6):
        table.upsert(batch(number, a="oslo"))
    clean(table.storage, Settings.of({"hoodie.cleaner.commits.retained": "1"}))
    with pytest.raises(WriteConflict, match="try again"):
        state.files(["oslo"])


# --- writes ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", INDEXES, ids=lambda index: index["hoodie.index.type"])
def test_no_write_builds_on_what_is_left(kind, index):
    table = made(kind, **index)
    table.storage.delete(newest(table))
    before = table.storage.snapshot()
    for write in (table.upsert, table.delete, table.insert):
        with pytest.raises(MissingFile, match="takes no upsert"):
            write(batch(3, a="oslo"), IGNORE)
    after = table.storage.snapshot()
    assert {p for p in after if not p.startswith(".hoodie/")} == {p for p in before if not p.startswith(".hoodie/")}
    if index["hoodie.index.type"] != "GLOBAL_SIMPLE":  # which looks into all partitions
        table.upsert(batch(3, b="rome"))


@pytest.mark.parametrize("kind", KINDS)
def test_new_rows_may_take_the_place_of_what_is_left(kind):
    table = made(kind)
    table.storage.delete(newest(table))
    table.insert_overwrite(batch(5, a="oslo"))
    assert rows(table.snapshot()) == {"a": 5, "b": 2}
    table.storage.delete_tree("oslo")
    table.delete_partitions(["oslo"])
    assert rows(table.snapshot()) == {"b": 2}
    table.upsert(batch(6, a="oslo"))
    assert rows(table.snapshot()) == {"a": 6, "b": 2}


def test_a_whole_table_may_be_overwritten_though_files_are_gone():
    table = made()
    table.storage.delete_tree("oslo")
    table.insert_overwrite_table(batch(5, n="bern"))
    assert rows(table.snapshot()) == {"n": 5}


def test_a_rollback_takes_the_commit_of_a_missing_file_back():
    table = made()
    table.storage.delete(newest(table))
    rollback(table.storage, Settings.of({}))
    assert rows(table.snapshot()) == {"a": 1, "b": 1, "c": 1}


# --- services ---


def test_a_file_group_with_a_missing_file_is_not_compacted():
    table = made("MERGE_ON_READ")
    path = newest(table)
    table.upsert(batch(3, a="oslo"))
    kept = table.storage.read(path)
    table.storage.delete(path)
    with pytest.warns(MissingFileIgnored, match="not compacted"):
        planned = schedule_compaction(table.storage, Settings.of({"hoodie.compact.inline.max.delta.commits": "1"}))
    assert planned
    compact(table.storage, Settings.of({}), planned)
    table.storage.write(path, kept)
    assert rows(table.snapshot()) == {"a": 3, "b": 2, "c": 1}


def test_what_cleaning_leaves_is_enough_once_the_file_is_back():
    table = made()
    table.upsert(batch(3, a="oslo"))
    path = newest(table)
    kept = table.storage.read(path)
    table.storage.delete(path)
    clean(table.storage, Settings.of({"hoodie.cleaner.commits.retained": "1"}))
    table.storage.write(path, kept)
    assert rows(table.snapshot()) == {"a": 3, "b": 2, "c": 1}


def test_the_commit_that_knows_of_a_missing_file_is_not_archived():
    table = made()
    table.storage.delete(newest(table))
    for number in range(3, 9):
        table.upsert(batch(number, b="rome"))
    clean(table.storage, Settings.of({"hoodie.cleaner.commits.retained": "1"}))
    for _ in range(2):
        archive(table.storage, Settings.of({"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}))
        with pytest.raises(MissingFile):
            table.snapshot()


def test_a_table_with_a_missing_file_is_not_savepointed():
    table = made()
    table.storage.delete(newest(table))
    with pytest.raises(MissingFile):
        savepoint(table.storage, Settings.of({}))


# --- cost ---


def test_a_read_lists_nothing_more_and_reads_commits_once(tmp_path):
    table = made(storage=LocalStorage(tmp_path))
    for number in range(3, 8):
        table.upsert(batch(number, a="oslo"))
    forget()
    costs = []
    for _ in range(2):
        storage = CountingStorage(LocalStorage(tmp_path))
        read_table(load_state(storage))
        costs.append((storage.count("list"), storage.count("list_tree"), storage.count("read", ".hoodie")))
    # Settings, and once in this process each of the seven.
    assert costs == [(1, 1, 1 + 7), (1, 1, 1)]


def test_a_read_opens_so_many_commits_at_most_and_goes_further_back_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "FRESH_COMMITS", 3)
    table = made(storage=LocalStorage(tmp_path))
    for number in range(3, 9):
        table.upsert(batch(number, a="oslo"))
    table.storage.delete(newest(table, "rome"))  # of the second commit of eight
    forget()
    table.snapshot()
    table.snapshot()
    with pytest.raises(MissingFile):
        table.snapshot()
    with pytest.raises(MissingFile):  # a write looks at all
        table.upsert(batch(9, b="rome"))


def test_an_emptied_log_has_all_commits_looked_at_that_may_have_written_it(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "FRESH_COMMITS", 1)
    table = made("MERGE_ON_READ", storage=LocalStorage(tmp_path))
    log = newest(table)
    table.upsert(batch(3, b="rome"))
    table.storage.write(log, b"")
    forget()
    with (
        pytest.warns(DamagedLog, match=r"the file is empty, but had \d+ bytes"),
        pytest.raises(CorruptFile, match="it has 0 bytes"),
    ):
        table.snapshot()


def test_an_emptied_log_is_told_of_where_more_commits_may_have_written_it_than_are_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "FRESH_COMMITS", 1)
    monkeypatch.setattr("hoodie.timeline.load.COMMITS", Memory(0))
    table = made("MERGE_ON_READ", storage=LocalStorage(tmp_path))
    log = newest(table)
    table.upsert(batch(3, b="rome"))
    table.storage.write(log, b"")
    forget()
    with pytest.warns(DamagedLog, match=r"the file is empty, but had \d+ bytes"):
        table.snapshot()


def assert_same(table: ArrowTable, chosen: random.Random) -> int:
    """What a writer of each partition misses is what all commits say; how many files these are."""
    state, missed = table.state(), 0
    commits = published.all_published(state.storage, state.timeline)
    for parts in (["oslo"], ["rome"], ["oslo", "rome"], ["bern"], None)[:: chosen.choice((1, -1))]:
        view = load_view(state.storage, state.timeline, state.config, parts)
        expected = published.find_missing(state.storage, state.config, view, commits, published.writer_files, parts)
        assert state.missing(view, parts) == expected
        missed += len(expected)
    return missed


@pytest.mark.parametrize(
    ("kind", "seed"), by_day(itertools.product(KINDS, range(4)), lambda case: case[1] == list(KINDS).index(case[0]))
)
def test_a_writer_misses_what_a_new_process_would(tmp_path, kind, seed):
    """Whatever happened to the table, and to its files, since this process looked at it last."""
    chosen, table = random.Random(seed), made(kind, LocalStorage(tmp_path))
    missed = 0
    for step in range(scaled(14, 30)):
        options = Options({"hoodie.compact.inline.max.delta.commits": "1", "hoodie.cleaner.commits.retained": "2"})
        match chosen.randrange(8):
            case 0:
                clean(table.storage, Settings.read(options))
            case 1 if kind == "MERGE_ON_READ" and (
                planned := schedule_compaction(table.storage, Settings.read(options))
            ):
                table.upsert(batch(step, a="oslo"))
                if chosen.random() < 0.7:
                    compact(table.storage, Settings.of({}), planned)
            case 2:
                table.insert_overwrite(batch(step, d="rome"))
            case 3 if not table.state().timeline.pending_compactions:
                rollback(table.storage, Settings.of({}))
            case 4:
                archive(table.storage, Settings.of({"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}))
            case _:
                table.upsert(batch(step, **{key: chosen.choice(["oslo", "rome"]) for key in "ab"[: step % 2 + 1]}))
        paths = sorted(path for path in tmp_path.rglob("*") if path.parent.name in ("oslo", "rome") and path.is_file())
        lost = chosen.choice([path for path in paths if not path.name.endswith("metadata")])
        content = lost.read_bytes()
        assert_same(table, chosen)
        lost.unlink()
        missed += assert_same(table, chosen)
        lost.write_bytes(content)
    assert missed


def test_the_next_write_looks_at_the_files_of_the_commits_since_only(tmp_path, monkeypatch):
    table = made(storage=LocalStorage(tmp_path))
    for number in range(3, 8):
        table.upsert(batch(number, a="oslo"))
    looked = []
    every = published.named_and_absent
    monkeypatch.setattr(
        published,
        "named_and_absent",
        lambda view, commits, parts: looked.append(len(commits)) or every(view, commits, parts),
    )
    read = []
    monkeypatch.setattr(batch_ids, "batches_of", lambda state, instant: read.append(instant) or {})
    for number in range(8, 11):
        table.upsert(batch(number, a="oslo"))
    assert looked == [1, 1, 1]
    assert len(read) == 3


# --- partitions without metafile ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", INDEXES, ids=lambda index: index["hoodie.index.type"])
def test_a_partition_that_lost_its_metafile_is_read_and_the_next_write_restores_it(kind, index):
    table = made(kind, **index)
    table.storage.delete(f"oslo/{METAFILE}")
    with pytest.warns(MetafileMissing, match="'oslo' has lost"):
        assert rows(table.snapshot()) == {"a": 2, "b": 2, "c": 1}
    with pytest.warns(MetafileMissing):
        table.upsert(batch(3, a="oslo", n="oslo"))
    assert rows(table.snapshot()) == {"a": 3, "b": 2, "c": 1, "n": 3}
    assert examine(table.storage, grace=0) == ()


def test_a_table_without_partitions_that_lost_its_metafile_is_read():
    settings = {key: value for key, value in OPTIONS.items() if "partitionpath" not in key}
    table = ArrowTable.create(MemoryStorage(), settings)
    table.upsert(batch(1, a="x"))
    table.storage.delete(METAFILE)
    with pytest.warns(MetafileMissing, match="the base path"):
        assert rows(table.snapshot()) == {"a": 1}
    with pytest.warns(MetafileMissing):
        table.upsert(batch(2, a="x"))
    assert rows(table.snapshot()) == {"a": 2}


def test_the_doctor_restores_a_metafile():
    table = made()
    table.storage.delete(f"oslo/{METAFILE}")
    with pytest.warns(MetafileMissing):
        (found,) = examine(table.storage, grace=0)
    assert (found.fault, found.where) == (Fault.INVISIBLE, "oslo")
    repair(table.storage, dry_run=False, grace=0)
    assert table.storage.exists(f"oslo/{METAFILE}")
    assert rows(table.snapshot()) == {"a": 2, "b": 2, "c": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_rollback_finds_its_files_in_a_partition_without_metafile(kind):
    table = made(kind)
    table.storage.delete(f"oslo/{METAFILE}")
    rollback(table.storage, Settings.of({}))
    with pytest.warns(MetafileMissing):
        assert rows(table.snapshot()) == {"a": 1, "b": 1, "c": 1}


def test_a_folder_that_no_commit_names_is_no_partition_and_not_passed_over_in_silence():
    table = made()
    for path in [path for path in table.storage.snapshot() if path.startswith("oslo/")]:
        if METAFILE not in path:
            table.storage.write(f"copy/{path}", table.storage.read(path))
    with pytest.warns(MetafileMissing, match="it is not read"):
        assert rows(table.snapshot()) == {"a": 2, "b": 2, "c": 1}


def test_a_file_and_the_metafile_beside_it_gone_is_a_missing_file():
    table = made()
    path = newest(table)
    table.storage.delete(path)
    table.storage.delete(f"oslo/{METAFILE}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetafileMissing)
        with pytest.raises(MissingFile) as raised:
            table.snapshot()
    assert raised.value.path == path
