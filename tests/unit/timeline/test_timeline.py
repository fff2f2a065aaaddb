"""The names of instants, which instants there are, and what a reader sees of them."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.config.table import TableConfig, TimelineZone
from hoodie.errors import CorruptFile
from hoodie.formats.timeline.commit_json import encode_commit
from hoodie.model.commit import CommitMetadata, Operation
from hoodie.model.instant import Action, Instant, State
from hoodie.testing.storage import CountingStorage, MemoryStorage
from hoodie.timeline.completions import with_history
from hoodie.timeline.load import load_timeline, read_commit, read_replace_plan
from hoodie.timeline.timeline import Timeline, instant_file_name, parse_name

V6 = TableConfig(name="t", version=6, layout=1)
V8 = TableConfig(name="t", version=8, layout=2, timezone=TimelineZone.UTC)

REQUESTED, INFLIGHT, COMPLETED = State

NAMES = {
    "1.commit.requested": Instant("1", Action.COMMIT, REQUESTED),
    "1.inflight": Instant("1", Action.COMMIT, INFLIGHT),
    "1.commit": Instant("1", Action.COMMIT, COMPLETED),
    "1.deltacommit.requested": Instant("1", Action.DELTA_COMMIT, REQUESTED),
    "1.deltacommit.inflight": Instant("1", Action.DELTA_COMMIT, INFLIGHT),
    "1.deltacommit": Instant("1", Action.DELTA_COMMIT, COMPLETED),
    "1.compaction.requested": Instant("1", Action.COMPACTION, REQUESTED),
    "1.compaction.inflight": Instant("1", Action.COMPACTION, INFLIGHT),
    "1.logcompaction.requested": Instant("1", Action.LOG_COMPACTION, REQUESTED),
    "1.logcompaction.inflight": Instant("1", Action.LOG_COMPACTION, INFLIGHT),
    "1.replacecommit.requested": Instant("1", Action.REPLACE_COMMIT, REQUESTED),
    "1.replacecommit.inflight": Instant("1", Action.REPLACE_COMMIT, INFLIGHT),
    "1.replacecommit": Instant("1", Action.REPLACE_COMMIT, COMPLETED),
    "1.clustering.requested": Instant("1", Action.CLUSTERING, REQUESTED),
    "1.clustering.inflight": Instant("1", Action.CLUSTERING, INFLIGHT),
    "1.clean.requested": Instant("1", Action.CLEAN, REQUESTED),
    "1.clean.inflight": Instant("1", Action.CLEAN, INFLIGHT),
    "1.clean": Instant("1", Action.CLEAN, COMPLETED),
    "1.rollback.requested": Instant("1", Action.ROLLBACK, REQUESTED),
    "1.rollback.inflight": Instant("1", Action.ROLLBACK, INFLIGHT),
    "1.rollback": Instant("1", Action.ROLLBACK, COMPLETED),
    "1.savepoint.inflight": Instant("1", Action.SAVEPOINT, INFLIGHT),
    "1.savepoint": Instant("1", Action.SAVEPOINT, COMPLETED),
    "1.restore.requested": Instant("1", Action.RESTORE, REQUESTED),
    "1.restore.inflight": Instant("1", Action.RESTORE, INFLIGHT),
    "1.restore": Instant("1", Action.RESTORE, COMPLETED),
    "1.indexing.requested": Instant("1", Action.INDEXING, REQUESTED),
    "1.indexing.inflight": Instant("1", Action.INDEXING, INFLIGHT),
    "1.indexing": Instant("1", Action.INDEXING, COMPLETED),
}


@pytest.mark.parametrize(("name", "instant"), NAMES.items())
def test_every_state_of_every_action_has_its_name(name, instant):
    assert instant_file_name(instant) == name
    assert parse_name(name, 1, ".hoodie") == instant


def test_layout_two_puts_the_completion_time_into_the_name():
    instant = Instant("1", Action.COMMIT, COMPLETED, "3")
    assert instant_file_name(instant, 2) == "1_3.commit"
    assert parse_name("1_3.commit", 2, "f") == instant
    assert parse_name("1.commit", 2, "f") == Instant("1", Action.COMMIT, COMPLETED)
    assert instant_file_name(Instant("1", Action.CLUSTERING, INFLIGHT), 2) == "1.clustering.inflight"


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.properties",
        "hoodie.properties.backup",
        ".1.commit.crc",
        "._1.commit",
        ".DS_Store",
        "1.commit.0d2a7f3e-1b2c-4d5e-8f90-0123456789ab",
    ],
)
def test_companions_are_not_instants(name):
    assert parse_name(name, 1, ".hoodie") is None


@pytest.mark.parametrize(
    "name",
    [
        "1.frobnicate",
        "1.commit.frobnicated",
        "1.commit.inflight",  # it is 1.inflight
        "1.compaction",  # it completes as a commit
        "1.logcompaction",
        "1.clustering",
        "1.savepoint.requested",
        "1.inflight.requested",
        "1_2.commit",  # of layout 2
        "1",
        "1.commit.tmp1",
        "1commit",
        "1.COMMIT",
    ],
)
def test_what_looks_like_an_instant_and_is_none_is_corrupt(name):
    with pytest.raises(CorruptFile, match="looks like an instant"):
        load_timeline(MemoryStorage({f".hoodie/{name}": b""}), V6)


@pytest.mark.parametrize("name", ["1_2.commit.requested", "1_2.inflight", "1_.commit"])
def test_a_pending_instant_has_no_completion_time(name):
    with pytest.raises(CorruptFile):
        parse_name(name, 2, "f")


def timeline(*names, config=V6, extra=()):
    folder = config.timeline_folder
    return load_timeline(MemoryStorage({f"{folder}/{name}": b"" for name in [*names, *extra]}), config)


def test_the_highest_state_of_an_instant_counts():
    found = timeline(
        "2.deltacommit.requested",
        "2.deltacommit.inflight",
        "1.deltacommit",
        "1.deltacommit.inflight",
        "1.deltacommit.requested",
        "3.compaction.requested",
        "3.compaction.inflight",
        "3.commit",
        "4.compaction.requested",
    )
    assert found.instants == (
        Instant("1", Action.DELTA_COMMIT, COMPLETED),
        Instant("2", Action.DELTA_COMMIT, INFLIGHT),
        Instant("3", Action.COMMIT, COMPLETED),
        Instant("4", Action.COMPACTION, REQUESTED),
    )
    assert [instant.requested for instant in found.pending_compactions] == ["4"]


def test_actions_of_one_time_are_instants_of_their_own():
    found = timeline("1.commit", "1.savepoint", "1.savepoint.inflight")
    assert [instant.action for instant in found.instants] == [Action.COMMIT, Action.SAVEPOINT]
    assert found.find("1", Action.SAVEPOINT) == Instant("1", Action.SAVEPOINT, COMPLETED)
    assert found.find("1", Action.COMPACTION) == Instant("1", Action.COMMIT, COMPLETED)
    assert found.find("1", Action.CLEAN) is None
    assert found.find("0", Action.COMMIT) is None


def test_folders_and_temporary_files_are_passed_over():
    storage = MemoryStorage({".hoodie/archived/x": b"", f".hoodie/.{'0' * 32}.tmp": b"", ".hoodie/20240101/x": b""})
    assert load_timeline(storage, V6) == Timeline()


def test_loading_lists_once_and_opens_nothing():
    storage = CountingStorage(MemoryStorage({".hoodie/1.commit": b"", ".hoodie/2.commit": b""}))
    load_timeline(storage, V6)
    assert storage.count() == storage.count("list") == 1


def test_queries_by_state_and_action():
    found = timeline("1.commit", "2.replacecommit.requested", "3.clean.inflight", "4.inflight", "5.clean")
    assert [instant.requested for instant in found.commits] == ["1"]
    assert [instant.requested for instant in found.pending()] == ["2", "4"]
    assert [instant.requested for instant in found.pending({Action.CLEAN})] == ["3"]
    assert [instant.requested for instant in found.pending_replaces] == ["2"]
    assert (found.newest_commit, found.newest) == ("1", "5")
    assert (Timeline().newest_commit, Timeline().newest) == ("", "")


# --- what counts ---


def counts(found, instant, as_of=None):
    """Whether the rows that an instant wrote are seen by readers."""
    visible = found.visible(as_of)
    return visible.committed(instant) and instant not in visible.open


def test_completed_instants_and_those_before_the_active_timeline_count():
    found = timeline("3.commit", "4.inflight", "5.commit", "6.commit.requested")
    seen = [time for time in "12345678" if counts(found, time)]
    assert seen == ["1", "2", "3", "5"]


def test_as_of_cuts_the_timeline_inclusively():
    found = timeline("3.commit", "5.commit", "7.commit")
    assert [time for time in "12345678" if counts(found, time, "5")] == ["1", "2", "3", "5"]
    assert not any(counts(found, time, "2") for time in "12345678")


def test_the_base_instant_of_a_pending_compaction_counts_though_it_is_not_completed():
    found = timeline("1.deltacommit", "2.compaction.requested", "3.deltacommit")
    assert found.visible().committed("2")
    assert not counts(found, "2")
    assert not found.visible("1").committed("2")


def test_an_oldest_instant_that_is_pending_does_not_count_as_archived():
    found = timeline("1.inflight", "2.commit", "3.commit")
    assert [time for time in "0123" if counts(found, time)] == ["0", "2", "3"]


def test_nothing_counts_on_an_empty_timeline():
    assert not any(counts(Timeline(), time) for time in ("", "0", "1"))


def test_services_do_not_open_the_active_timeline():
    found = timeline("1.clean", "3.commit", "2.rollback")
    assert found.visible().first == "3"


def test_layout_two_counts_what_has_a_completion_time():
    found = timeline("3_4.commit", "5.inflight", config=V8)
    assert [time for time in "12345" if counts(found, time)] == ["3"]
    assert found.completions() == {"3": "4"}
    assert found.newest == "5"
    assert timeline("3_8.commit", "5.inflight", config=V8).newest == "8"


# --- contents ---


def test_an_empty_completed_instant_is_a_commit_without_stats():
    storage = MemoryStorage({".hoodie/1.commit": b""})
    found = load_timeline(storage, V6)
    assert read_commit(storage, found, found.commits[0]).stats == {}


def test_an_empty_requested_replace_commit_is_no_clustering():
    storage = MemoryStorage({".hoodie/1.replacecommit.requested": b"", ".hoodie/1.replacecommit.inflight": b""})
    found = load_timeline(storage, V6)
    plan = read_replace_plan(storage, found, found.pending_replaces[0])
    assert (plan.operation, plan.clustering) == ("", None)


def test_a_commit_that_version_six_completed_is_read_in_layout_two():
    wrote = CommitMetadata(operation=Operation.UPSERT, extra={"a": "b"})
    moment = 1_700_000_000_123
    storage = MemoryStorage({".hoodie/timeline/1.commit": encode_commit(wrote)}, clock=lambda: moment)
    found = load_timeline(storage, V8)
    assert found.commits == (Instant("1", Action.COMMIT, COMPLETED, "20231114221320123"),)
    assert found.path(found.commits[0]) == ".hoodie/timeline/1.commit"
    assert read_commit(storage, found, found.commits[0]) == wrote


# --- history ---

HISTORY = ".hoodie/timeline/history"


def history_file(rows):
    sink = io.BytesIO()
    columns = {
        "instantTime": [time for time, _ in rows],
        "completionTime": [completed for _, completed in rows],
        "action": ["commit"] * len(rows),
    }
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def history(**more):
    files = {
        f"{HISTORY}/_version_": b"2",
        f"{HISTORY}/manifest_1": manifest("01_02_0.parquet"),
        f"{HISTORY}/manifest_2": manifest("01_04_1.parquet", "05_09_0.parquet"),
        f"{HISTORY}/01_02_0.parquet": history_file([("01", "99")]),
        f"{HISTORY}/01_04_1.parquet": history_file([("01", "02"), ("03", "06"), ("04", "05")]),
        f"{HISTORY}/05_09_0.parquet": history_file([("05", "07"), ("09", "10")]),
        ".hoodie/timeline/20_21.commit": b"",
    } | {f"{HISTORY}/{name}": data for name, data in more.items()}
    return MemoryStorage({path: data for path, data in files.items() if data is not None})


def manifest(*names):
    return json.dumps({"files": [{"fileName": name, "fileLen": 1} for name in names]}).encode()


def completions(storage, *instants):
    return dict(with_history(storage, V8, load_timeline(storage, V8), instants).history)


def test_the_history_tells_when_instants_completed_that_left_the_timeline():
    assert completions(history(), "03", "09", "08", "20") == {"03": "06", "09": "10"}


def test_the_first_and_last_instant_of_a_file_are_found():
    assert completions(history(), "01", "04", "05") == {"01": "02", "04": "05", "05": "07"}


@pytest.mark.parametrize("name", ["03_04_1.parquet", "04_03_0.parquet"])
def test_an_instant_is_found_in_a_file_whose_name_does_not_cover_it(name: str):
    """Hudi 1.0 gives such names when it upgrades a table, and when it merges the files of an upgrade."""
    rows = history_file([("04", "05"), ("01", "02"), ("03", "06")])
    more = {"manifest_2": manifest(name, "05_09_0.parquet"), "01_04_1.parquet": None, "01_02_0.parquet": None}
    assert completions(history(**more, **{name: rows}), "01", "09") == {"01": "02", "09": "10"}


def test_only_files_that_may_hold_the_instants_are_opened():
    storage = CountingStorage(history())
    assert completions(storage, "03") == {"03": "06"}
    assert storage.count("open_input") == 1
    storage.reset()
    assert completions(storage, "20") == {}
    assert storage.count("read") == storage.count("open_input") == 0


def test_without_a_version_file_the_newest_manifest_counts():
    more = {"_version_": None, "manifest_10": manifest("01_04_1.parquet"), "manifest_11.tmp": b"half"}
    more |= {"05_09_0.parquet": None}
    assert completions(history(**more), "03", "05") == {"03": "06"}


def test_a_table_without_history_has_none():
    assert completions(MemoryStorage({".hoodie/timeline/20_21.commit": b""}), "25") == {}


def test_a_table_with_files_older_than_its_timeline_has_lost_its_history():
    with pytest.raises(CorruptFile, match="files of instant 03 are older than the timeline, which begins at 20"):
        completions(MemoryStorage({".hoodie/timeline/20_21.commit": b""}), "03", "25")
    begun = {".hoodie/timeline/03.commit.requested": b"", ".hoodie/timeline/20_21.commit": b""}
    assert completions(MemoryStorage(begun), "03") == {}


@pytest.mark.parametrize(
    "more",
    [
        {"_version_": b"x"},
        {"_version_": b"../7"},
        {"_version_": b"7"},
        {"manifest_2": b"{"},
        {"manifest_2": b"[]"},
        {"manifest_2": b'{"files":[{}]}'},
        {"manifest_2": manifest("../../x.parquet")},
        {"01_04_1.parquet": None},
        {"01_04_1.parquet": b"PAR1"},
        {"01_04_1.parquet": history_file([("01", "02"), ("03", None), ("04", "05")])},
    ],
)
def test_a_damaged_history_is_corrupt(more):
    with pytest.raises(CorruptFile):
        completions(history(**more), "03")
