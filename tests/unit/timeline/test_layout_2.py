"""Instants of tables of versions 8 and 9: completion times, commits as Avro, and the history."""

import base64
import datetime as dt
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFile, InstantNotFound, WriteConflict
from hoodie.formats.timeline.commit_avro import decode_avro_commit, encode_avro_commit
from hoodie.formats.timeline.commit_json import decode_commit, encode_commit
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.instant import Action, Instant, State, format_time
from hoodie.model.table_version import VERSIONS
from hoodie.testing.storage import Crash, CrashAfter, MemoryStorage
from hoodie.timeline.completions import history_files, history_version
from hoodie.timeline.history import MERGED_FILES, HistoryEntry, add_to_history
from hoodie.timeline.timeline import TimelineLayout
from hoodie.timeline.transition import (
    complete,
    completed_instants,
    create_requested,
    is_pending,
    remove_pending,
    to_inflight,
    uncomplete,
)

LAYOUT = TimelineLayout(VERSIONS[9], ".hoodie/timeline")
FOLDER = ".hoodie/timeline/history"
_VECTORS = Path(__file__).parents[2] / "vectors" / "v8-v9"
COMMITS = [
    case
    for case in json.loads((_VECTORS / "commit_metadata.json").read_text())["files"]
    if not case["file_name"].endswith(("clustering.requested", "compaction.requested", "replacecommit.requested"))
]


def _clock(text: str) -> Any:
    moment = dt.datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=dt.UTC)
    return lambda: moment


def _begun(storage: MemoryStorage, time: str, action: Action = Action.COMMIT) -> Instant:
    requested = create_requested(storage, time, action, layout=LAYOUT)
    return to_inflight(storage, requested, layout=LAYOUT)


def _names(storage: MemoryStorage) -> list[str]:
    return sorted(entry.name for entry in storage.list(LAYOUT.folder))


def test_a_completed_instant_has_the_time_of_its_completion_in_its_name() -> None:
    storage = MemoryStorage()
    begun = _begun(storage, "20250101000000000")
    done = complete(storage, begun, b"x", layout=LAYOUT, clock=_clock("20250101000007"))
    assert done.completed == "20250101000007000"
    assert _names(storage)[-1] == "20250101000000000_20250101000007000.commit"
    assert storage.list(".hoodie/20250101000000000.commit") == []


def test_completion_comes_after_all_that_is_on_the_timeline_though_a_clock_was_set_back() -> None:
    storage = MemoryStorage()
    first = _begun(storage, "20250101000000000")
    _begun(storage, "20250101000009000")  # of a writer whose clock is ahead
    done = complete(storage, first, b"x", layout=LAYOUT, clock=_clock("20240101000000"))
    assert done.completed == "20250101000009001"


def test_an_instant_completes_once_though_names_of_completed_ones_differ() -> None:
    storage = MemoryStorage()
    begun = _begun(storage, "20250101000000000")
    complete(storage, begun, b"x", layout=LAYOUT)
    with pytest.raises(WriteConflict, match="another process has completed"):
        complete(storage, begun, b"y", layout=LAYOUT)
    assert not is_pending(storage, begun, LAYOUT)


def test_an_instant_that_was_rolled_back_does_not_complete() -> None:
    storage = MemoryStorage()
    begun = _begun(storage, "20250101000000000")
    remove_pending(storage, begun, LAYOUT)
    with pytest.raises(InstantNotFound):
        complete(storage, begun, b"x", layout=LAYOUT, just_listed=True)


def test_a_completed_instant_is_taken_back_by_its_request_time() -> None:
    storage = MemoryStorage()
    begun = _begun(storage, "20250101000000000", Action.COMPACTION)
    done = complete(storage, begun, b"x", layout=LAYOUT)
    assert completed_instants(storage, begun, LAYOUT) == [done]
    pending = uncomplete(storage, done, Action.COMPACTION, layout=LAYOUT)
    assert completed_instants(storage, pending, LAYOUT) == []
    assert is_pending(storage, pending, LAYOUT)


def test_a_pending_clustering_is_called_so() -> None:
    storage = MemoryStorage()
    create_requested(storage, "20250101000000000", Action.CLUSTERING, b"plan", layout=LAYOUT)
    assert _names(storage) == ["20250101000000000.clustering.requested"]


@pytest.mark.parametrize("case", COMMITS, ids=lambda case: case["description"])
def test_commits_of_hudi_are_encoded_again_to_the_same_record(case: dict[str, Any]) -> None:
    """But for the fields of which this library keeps nothing, and early releases had not."""
    data, replacing = base64.b64decode(case["base64"]), case["file_name"].endswith("replacecommit")
    metadata = decode_avro_commit(data, case["file_name"], replacing)
    again = encode_avro_commit(metadata, replacing=replacing)
    ours, theirs = _record(again), _record(data)
    for partition, stats in (theirs["partitionToWriteStats"] or {}).items():
        for mine, stat in zip(ours["partitionToWriteStats"][partition], stats, strict=True):
            for name in ("totalLogReadTimeMs", "numUpdates"):
                assert mine.pop(name) == 0
                stat.pop(name, None)
            differing = {name: (mine[name], value) for name, value in stat.items() if mine[name] != value}
            # Zero and null are the same to readers, and early releases wrote null in places.
            assert all(not one and not other for one, other in differing.values()), differing
    for name in theirs.keys() - {"partitionToWriteStats", "version", "compacted"}:
        assert ours[name] == theirs[name]


def _record(data: bytes) -> dict[str, Any]:
    (record,) = fastavro.reader(io.BytesIO(data))
    return dict(record)  # type: ignore[arg-type]


# --- history ---


def _entry(number: int, action: Action = Action.COMMIT) -> HistoryEntry:
    moment = dt.datetime(2025, 1, 1) + dt.timedelta(seconds=number)
    requested, completed = format_time(moment), format_time(moment + dt.timedelta(milliseconds=500))
    return HistoryEntry(Instant(requested, action, State.COMPLETED, completed), b"x%d" % number, {})


def _instants(storage: MemoryStorage) -> list[str]:
    times: list[str] = []
    for name in history_files(storage, FOLDER):
        times += pq.read_table(io.BytesIO(storage.read(f"{FOLDER}/{name}")))["instantTime"].to_pylist()
    return sorted(times)


def test_files_of_the_history_become_fewer_as_it_grows_and_old_ones_go() -> None:
    storage = MemoryStorage()
    for number in range(MERGED_FILES * MERGED_FILES + 3):
        add_to_history(storage, FOLDER, [_entry(number)])
    names = history_files(storage, FOLDER)
    assert sorted(name.rsplit("_")[-1] for name in names) == ["0.parquet"] * 3 + ["2.parquet"]
    assert len(_instants(storage)) == MERGED_FILES * MERGED_FILES + 3
    entries = [entry.name for entry in storage.list(FOLDER)]
    manifests = [name for name in entries if name.startswith("manifest_")]
    assert len(manifests) == 3
    current = history_version(storage, FOLDER)
    assert f"manifest_{current}" in manifests
    assert len([name for name in entries if name.endswith(".parquet")]) <= 4


def test_what_the_history_has_is_not_put_there_twice() -> None:
    storage = MemoryStorage()
    assert add_to_history(storage, FOLDER, [_entry(1), _entry(2)])
    assert add_to_history(storage, FOLDER, [_entry(1), _entry(2)]) == ""
    assert add_to_history(storage, FOLDER, [_entry(2), _entry(3)])
    assert len(_instants(storage)) == 3


def test_a_history_that_lost_a_file_is_not_added_to() -> None:
    storage = MemoryStorage()
    storage.delete(add_to_history(storage, FOLDER, [_entry(1)]))
    with pytest.raises(CorruptFile, match="missing, though the history's manifest lists it"):
        add_to_history(storage, FOLDER, [_entry(2)])


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("number", [2, 5])
def test_a_history_that_was_set_back_goes_on_from_the_newest_manifest(version: int, number: int) -> None:
    storage = MemoryStorage()
    for instant in range(3):
        add_to_history(storage, FOLDER, [_entry(instant)])
    storage.write(f"{FOLDER}/_version_", str(version).encode())
    add_to_history(storage, FOLDER, [_entry(number)])  # the history had 2: it is about to leave the timeline again
    assert len(_instants(storage)) == (3 if number == 2 else 4)


def test_a_manifest_that_a_writer_died_in_is_written_again() -> None:
    storage = MemoryStorage()
    add_to_history(storage, FOLDER, [_entry(0)])
    storage.write(f"{FOLDER}/manifest_2", b'{"files" : [ {"fileName"')
    add_to_history(storage, FOLDER, [_entry(1)])
    assert len(_instants(storage)) == 2


def test_an_archiver_that_dies_anywhere_leaves_the_history_whole_and_the_next_goes_on() -> None:
    before = MemoryStorage()
    for number in range(MERGED_FILES - 1):
        add_to_history(before, FOLDER, [_entry(number)])
    for calls in range(100):
        storage = before.copy()
        try:
            add_to_history(CrashAfter(storage, calls), FOLDER, [_entry(50)])
        except Crash:
            assert len(_instants(storage)) in (MERGED_FILES - 1, MERGED_FILES)
            add_to_history(storage, FOLDER, [_entry(50)])
            assert len(_instants(storage)) == MERGED_FILES
        else:
            break
    assert calls > 8


def test_the_plan_of_a_clean_is_kept_and_that_of_a_commit_is_not() -> None:
    plans = {(State.REQUESTED, Action.CLEAN): b"plan", (State.INFLIGHT, Action.CLEAN): b""}
    clean = HistoryEntry(_entry(1, Action.CLEAN).instant, b"done", plans)
    commit = HistoryEntry(_entry(2).instant, b"done", {(State.INFLIGHT, Action.COMMIT): b"profile"})
    overwrite = HistoryEntry(
        _entry(3, Action.REPLACE_COMMIT).instant,
        b"done",
        {(State.REQUESTED, Action.REPLACE_COMMIT): b"request", (State.INFLIGHT, Action.REPLACE_COMMIT): b"profile"},
    )
    assert (clean.plan, commit.plan, overwrite.plan) == (b"plan", None, b"profile")


def test_tasks_tell_the_driver_which_base_file_theirs_replaces() -> None:
    stat = WriteStat(file_id="f", path="p/new.parquet", partition="p", prev_base_file="old.parquet")
    told = CommitMetadata(operation=Operation.UPSERT, stats={"p": (stat,)})
    ((again,),) = decode_commit(encode_commit(told, whole=True), "report").stats.values()
    assert again.prev_base_file == "old.parquet"
    assert b"prevBaseFile" not in encode_commit(told)
