"""The metadata tables of Hudi 1.x, kept by writes of this library."""

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.doctor.examine import Severity, examine
from hoodie.doctor.findings import Fault
from hoodie.errors import HoodieError, MetadataTableDropped, MetadataTableIgnored
from hoodie.metadata.keeping.delta import append
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.records import SCHEMAS
from hoodie.metadata.table import MetadataTable
from hoodie.metadata.validate import validate_metadata
from hoodie.model.files import BaseFile, LogFile, parse_data_file
from hoodie.model.instant import Action, State
from hoodie.model.meta import META_COLUMNS
from hoodie.services.metadata_upkeep import keep_up
from hoodie.storage.local import LocalStorage
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state
from hoodie.testing.storage import Crash, CrashAfter
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.load import read_commit
from support.hudi_1_tables import unpack
from support.metadata_tables import metadata_of
from support.nightly import nightly

#: What is kept beside the file lists: statistics of tables of version 8 have another form.
KEPT = {
    "v9_mor_part": {"column_stats", "partition_stats"},
    "v9_cow_part": {"column_stats", "partition_stats"},
    "v8_mor_record_index": {"record_index"},
}
METADATA = ".hoodie/metadata"
TABLES = ("v8_mor_part", "v9_mor_part", "v8_cow_part", "v9_cow_part", "v8_mor_record_index", "v9_mor_nbcc")


@pytest.fixture(autouse=True)
def _nothing_is_ignored() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableIgnored)
        warnings.filterwarnings("error", ".*: the metadata table was removed", MetadataTableDropped)
        yield


def state_of(path: Path) -> TableState:
    return load_state(LocalStorage(path))


def opened(path: Path) -> MetadataTable:
    state = state_of(path)
    return metadata_of(state)


def problems(path: Path) -> tuple[str, ...]:
    """What its metadata table says otherwise than the storage, or nothing. Raises where it is not whole"""
    state = state_of(path)
    table = opened(path)
    assert table.problem() == ""
    told = validate_metadata(state.storage, state.config, state.timeline)
    return told.problems


def a_row(table: hoodie.HoodieTable) -> pa.Table:
    rows = table.snapshot().to_arrow()
    return rows.drop_columns([name for name in META_COLUMNS if name in rows.column_names]).slice(0, 1)


def write(path: Path, **options: str) -> str:
    """An upsert of a row that is there; its instant."""
    buckets = {"hoodie.bucket.index.num.buckets": "1"} if path.name == "v9_mor_nbcc" else {}
    table = hoodie.open_table(path, options={**buckets, **options})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*: a part of the metadata table", MetadataTableDropped)
        return table.upsert(a_row(table)).instant


@pytest.mark.parametrize("name", ["v9_cow_part", "v9_mor_part"])
def test_a_rollback_that_hudi_did_not_tell_it_of_is_nothing_that_it_lacks(name: str, tmp_path: Path) -> None:
    """Hudi 1.1 and later tell it only of rollbacks of writes that it was told of."""
    path = unpack(name, tmp_path)
    died = hoodie.hudi.HoodieWriteClient(str(path)).start_commit()
    without = tmp_path / "without"
    shutil.copytree(path / METADATA, without)
    hoodie.open_table(path).rollback(died)
    shutil.rmtree(path / METADATA)
    shutil.copytree(without, path / METADATA)
    write(path)
    assert problems(path) == ()
    assert hoodie.open_table(path).snapshot().to_arrow().num_rows > 0
    assert [finding for finding in hoodie.open_table(path).check() if finding.fault is Fault.LISTS] == []


@pytest.mark.parametrize("name", ["v9_cow_part", "v9_mor_part"])
def test_a_rollback_of_what_it_has_is_noticed_where_it_was_not_told(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    undone = write(path, **{"hoodie.compact.inline": "false"})
    with_it = tmp_path / "with"
    shutil.copytree(path / METADATA, with_it)
    hoodie.open_table(path).rollback(undone)
    shutil.rmtree(path / METADATA)
    shutil.copytree(with_it, path / METADATA)
    assert "it is behind: 1 instants" in opened(path).problem()


def test_keys_are_found_beside_a_record_index_by_partition(tmp_path: Path) -> None:
    """It may have a key several times, each in a file group of its partition, by whose number alone keys are hashed."""
    table = hoodie.open_table(unpack("v9_cow_record_index_by_partition", tmp_path))
    for row in table.snapshot().to_arrow().to_pylist():
        keys = pa.table({"id": [row["id"]], "part": [row["part"]]})
        assert table.get(keys).rows.to_arrow().to_pylist() == [row]
        assert table.absent(keys).to_arrow().num_rows == 0
    assert table.check() == ()
    everywhere = table.get(["k4"], options={"hoodie.index.type": "GLOBAL_SIMPLE"})
    assert everywhere.rows.to_arrow().column("part").to_pylist() == ["b"]


@pytest.mark.parametrize("name", TABLES)
def test_a_write_keeps_the_file_lists(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    before = hoodie.open_table(path).snapshot().to_arrow()
    instants = [write(path), write(path)]
    assert problems(path) == ()
    table = opened(path)
    assert table.ready == {"files"} | KEPT.get(name, set())
    done = [i for i in table.timeline.completed({Action.DELTA_COMMIT}) if i.requested in instants]
    data = state_of(path).timeline
    assert [i.requested for i in done] == instants
    for instant in done:
        own = data.find(instant.requested, instant.action)
        own = own or next(i for i in data.commits if i.requested == instant.requested)
        assert instant.requested < instant.completed <= own.completed  # within one millisecond perhaps
        (stat,) = read_commit(table.storage, table.timeline, instant).stats["files"]
        log = parse_data_file("files", (stat.path or "").rpartition("/")[2], 0)
        assert isinstance(log, LogFile)
        assert (log.base_instant, log.version, stat.log_files, stat.base_file) == (
            instant.requested,
            1,
            (log.name,),
            "",
        )
    assert hoodie.open_table(path).snapshot().to_arrow().num_rows == before.num_rows


def test_partitions_that_are_not_kept_are_removed_before_the_write(tmp_path: Path) -> None:
    path = unpack("v8_mor_part", tmp_path)
    table = hoodie.open_table(path)
    with pytest.warns(
        MetadataTableDropped,
        match=r"metadata table \(column_stats, partition_stats\) was removed.*Hudi's next write all that is defined",
    ):
        table.upsert(a_row(table))
    assert state_of(path).config.metadata_partitions == ("files",)
    assert not (path / ".hoodie" / "metadata" / "column_stats").exists()


@pytest.mark.parametrize("name", ["v8_mor_part", nightly("v9_mor_part"), "v9_cow_part"])
def test_compactions_cleans_and_archives_of_it_leave_it_whole(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    options = {
        "hoodie.metadata.compact.max.delta.commits": "3",
        "hoodie.clean.commits.retained": "2",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "2",
    }
    if "cow" in name:
        options = {key: text for key, text in options.items() if "inline" not in key}
    for _ in range(9):
        write(path, **options)
        assert problems(path) == ()
    table = opened(path)
    compactions = table.timeline.completed({Action.COMMIT})
    assert len(compactions) >= 2
    files = [parse_data_file("files", e.name, e.size, "hfile") for e in table.storage.list("files") if not e.is_dir]
    bases = {file.instant for file in files if isinstance(file, BaseFile)}
    assert compactions[-1].requested in bases
    assert all(instant.state is State.COMPLETED for instant in table.timeline.instants)


@pytest.mark.parametrize("compacted", [False, True])
def test_a_rollback_is_told_and_takes_the_logs_of_its_target_away(compacted: bool, tmp_path: Path) -> None:
    path = unpack("v9_mor_part", tmp_path)
    options = {"hoodie.metadata.compact.max.delta.commits": "1" if compacted else "50"}
    write(path, **options)
    target = write(path, **options)
    hoodie.open_table(path).rollback(target)
    assert problems(path) == ()
    table = opened(path)
    assert table.timeline.find(target, Action.DELTA_COMMIT) is None
    assert bool(table.compacted) is compacted
    assert bool(list(path.rglob(f".files-*_{target}.log*"))) is compacted  # then no reader looks at it
    write(path, **options)
    assert problems(path) == ()


@pytest.mark.parametrize("name", [nightly("v9_mor_part"), "v8_cow_part"])
def test_a_writer_that_dies_anywhere_leaves_lists_that_the_next_one_makes_right(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    write(path)
    rows = a_row(hoodie.open_table(path))
    calls, died = 0, True
    while died:
        storage = CrashAfter(LocalStorage(path), calls)
        try:
            ArrowTable(storage, {"hoodie.spark.driver.threads": "1"}).upsert(rows)
            died = False
        except (Crash, HoodieError):
            pass
        seen = hoodie.open_table(path).snapshot().to_arrow()  # whatever is in the lists, as good as a listing
        assert seen.num_rows == hoodie.open_table(path).snapshot(as_of=None).to_arrow().num_rows
        write(path)
        assert problems(path) == ()
        calls += 3
    assert calls > 12


def test_a_delta_commit_of_a_write_that_was_given_up_is_taken_back(tmp_path: Path) -> None:
    path = unpack("v9_mor_part", tmp_path)
    write(path)
    table = opened(path)
    orphan = table.time("")
    lost = pa.Table.from_pylist(
        [{"row": "a", "name": "lost.parquet", "size": 1, "deleted": False}],
        schema=SCHEMAS[MetadataPartition.FILES],
    )
    append(table, orphan, {MetadataPartition.FILES: lost})
    write(path)
    assert problems(path) == ()
    assert opened(path).timeline.find(orphan, Action.DELTA_COMMIT) is None


def test_a_restore_builds_it_again(tmp_path: Path) -> None:
    path = unpack("v9_mor_part", tmp_path)
    saved = write(path)
    hoodie.open_table(path).savepoint(saved)
    write(path)
    hoodie.open_table(path).restore(saved)
    assert set(state_of(path).config.metadata_partitions) == {"column_stats", "files", "partition_stats"}
    assert problems(path) == ()
    write(path)
    assert problems(path) == ()


def test_upkeep_by_itself_changes_nothing_where_nothing_is_due(tmp_path: Path) -> None:
    path = unpack("v9_mor_part", tmp_path)
    write(path)
    before = opened(path).timeline
    keep_up(LocalStorage(path), Settings.of({}))
    assert opened(path).timeline == before


def test_the_doctor_finds_lists_that_lack_files(tmp_path: Path) -> None:
    path = unpack("v9_mor_part", tmp_path)
    assert [found for found in examine(LocalStorage(path)) if found.fault is Fault.LISTS] == []
    newest = sorted((path / ".hoodie" / "metadata" / "files").glob(".files-*.log*"))[-1]
    newest.unlink()
    (found,) = (found for found in examine(LocalStorage(path)) if found.fault is Fault.LISTS)
    assert found.severity is Severity.ERROR


def test_that_of_an_upgraded_table_is_removed_as_it_may_lack_logs(tmp_path: Path) -> None:
    path = unpack("v9_mor_upgraded", tmp_path)
    table = hoodie.open_table(path)
    with pytest.warns(MetadataTableDropped, match="was upgraded, and Hudi may have left log files"):
        table.upsert(a_row(table))
    assert state_of(path).config.metadata_partitions == ()
    assert not (path / ".hoodie" / "metadata").exists()
