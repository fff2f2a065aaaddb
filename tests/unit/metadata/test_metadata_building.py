"""Partitions of the metadata table are built and removed where options ask for it, whenever the writer dies."""

import pickle
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.config.metadata import COLUMN_LIST, MetadataOptions
from hoodie.config.options import Options
from hoodie.errors import (
    CorruptFile,
    MetadataTableDropped,
    MetadataTableIgnored,
    OptionIgnored,
    RecordIndexIgnored,
    UnsupportedTable,
    WriteConflict,
)
from hoodie.metadata.changes import of_listing
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.listing import listed_folders
from hoodie.metadata.partitions import kinds
from hoodie.metadata.partitions.bloom_filters import BLOOM_FILTERS
from hoodie.metadata.partitions.column_stats import COLUMN_STATS
from hoodie.metadata.partitions.kind import Building, Change
from hoodie.metadata.read import partition_slices, read_records
from hoodie.metadata.table import MetadataTable
from hoodie.metadata.validate import validate_metadata
from hoodie.model.instant import Action, State
from hoodie.model.table_version import VERSIONS
from hoodie.reading.row_keys import read_keys
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.metadata_table import create_metadata_table, drop_metadata_table
from hoodie.storage.local import LocalStorage
from hoodie.table.properties import update_properties
from hoodie.table.settings import Settings
from hoodie.testing.storage import Crash, CrashAfter, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.view.load import data_files
from support.metadata_tables import METADATA, metadata_of
from support.nightly import WAYS_TO_DIE, by_day, scaled
from unit.metadata.test_metadata_keeping import INDEXES, KINDS, TABLE, assert_kept, rows

STATISTICS, FILTERS = MetadataPartition.COLUMN_STATS, MetadataPartition.BLOOM_FILTERS
BARE = {key: value for key, value in TABLE.items() if key != "hoodie.metadata.enable"}
ENABLE = "hoodie.metadata.index.column.stats.enable"


def opened(made: ArrowTable) -> MetadataTable:
    return metadata_of(made.state())


def columns(made: ArrowTable, file: str = "") -> set[str]:
    records = read_records(opened(made), STATISTICS).to_pylist()
    return {record["column"] for record in records if file in record["file"]}


def written(kind: str = "MOR", **options: str) -> ArrowTable:
    """A table without a metadata table, of two commits."""
    made = ArrowTable.create(MemoryStorage(), {**BARE, **KINDS[kind], **options})
    made.upsert(rows(("a", "oslo"), ("b", "rome")))
    made.upsert(rows(("a", "oslo"), ("c", "oslo"), ts=2))
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_builds_what_its_options_ask_for_from_the_files_that_are_there(kind: str) -> None:
    made = written(kind)
    made.upsert(rows(("d", "bern"), ts=3), INDEXES)
    assert_kept(ArrowTable(made.storage, {**made.options, **INDEXES}))
    times = [instant.requested[-3:] for instant in opened(made).timeline.instants[:3]]
    assert times == ["010", "011", "012"]  # the file lists, filters, statistics


def test_an_index_that_is_asked_for_later_is_added_and_false_takes_it_away_again() -> None:
    made = written()
    made.upsert(rows(("d", "bern"), ts=3), {"hoodie.metadata.enable": "true"})
    assert made.state().config.metadata_partitions == ("files",)
    made.upsert(rows(("e", "bern"), ts=4), {ENABLE: "true"})
    assert made.state().config.metadata_partitions == ("column_stats", "files")
    made.upsert(rows(("f", "bern"), ts=5))  # kept without the option
    told = validate_metadata(made.storage, made.state().config, made.state().timeline)
    assert (told.problems, told.partitions["column_stats"] > 0) == ((), True)
    made.upsert(rows(("g", "bern"), ts=6), {ENABLE: "false"})
    assert made.state().config.metadata_partitions == ("files",)
    assert not made.storage.list(f"{METADATA}column_stats")
    made.upsert(rows(("h", "bern"), ts=7), {ENABLE: "true"})  # built anew
    assert len(columns(made)) > 5


def test_the_file_groups_are_as_many_as_the_options_say() -> None:
    made = written(**{"hoodie.metadata.index.column.stats.file.group.count": "3"})
    made.upsert(rows(("d", "bern"), ts=3), INDEXES)
    made.upsert(rows(("e", "bern"), ts=4))
    groups = [slice_.group.file_id for slice_ in partition_slices(opened(made), STATISTICS)]
    assert groups == ["col-stats-0000-0", "col-stats-0001-0", "col-stats-0002-0"]
    groups = [slice_.group.file_id for slice_ in partition_slices(opened(made), FILTERS)]
    assert groups == [f"bloom-filters-000{number}-0" for number in range(4)]


def test_the_table_keeps_the_columns_that_have_statistics_for_later_writes() -> None:
    made = written("COW")
    made.upsert(rows(("d", "bern"), ts=3), {ENABLE: "true", COLUMN_LIST: "id, ts"})
    made.upsert(rows(("e", "kiel"), ts=4))
    assert columns(made) == {"id", "ts"}
    newest = made.upsert(rows(("f", "lyon"), ts=5), {ENABLE: "true", COLUMN_LIST: "city"}).instant
    assert columns(made, newest) == {"city"}
    assert columns(made) == {"id", "ts", "city"}
    made.upsert(rows(("g", "lyon"), ts=6), {ENABLE: "false"})
    made.upsert(rows(("h", "lyon"), ts=6), {ENABLE: "true"})
    assert columns(made) == {"city"}


@pytest.mark.parametrize("kind", by_day(KINDS, "MOR".__eq__))
def test_tasks_elsewhere_build_the_same_files(kind: str, tmp_path: Path) -> None:
    """What tasks need and give pickles; the keys of the table do not come through the one who calls them. A task that
    runs again, as Spark may have it, changes nothing."""
    made = ArrowTable.create(LocalStorage(tmp_path / "table"), {**BARE, **KINDS[kind]})
    made.upsert(rows(*((f"k{number}", f"city{number % 3}") for number in range(300))))
    made.upsert(rows(*((f"k{number}", f"city{number % 3}") for number in range(0, 300, 7)), ts=2))
    sizes: list[int] = []

    def run(kernel: Any, items: Any) -> Any:
        sent, results = pickle.dumps((kernel, list(items))), []
        for number in range(len(items)):
            for _ in range(2):
                again, share = pickle.loads(sent)
                results.append(pickle.dumps(again(share[number])))
        sizes.extend(map(len, results))
        return [pickle.loads(result) for result in results[::2]]

    options = Options({"hoodie.spark.driver.max.batch.bytes": "0", "hoodie.metadata.record.index.enable": "true"})
    names = [str(kind.partition) for kind in kinds.KINDS if kind.is_of(VERSIONS[6])]

    def files() -> dict[str, bytes]:
        return {
            str(path.relative_to(tmp_path)): path.read_bytes()
            for name in names
            for path in (tmp_path / "table" / METADATA / name).iterdir()
            if not path.name.startswith(".hoodie")
        }

    create_metadata_table(made.storage, Settings.read(options), names)
    here = files()
    drop_metadata_table(made.storage, Settings.read(options))
    create_metadata_table(made.storage, Settings.read(options), names, run=run)
    assert files() == here
    assert max(sizes) < 2000
    assert not made.storage.list(".hoodie/.temp/staged")
    state = made.state()
    told = validate_metadata(made.storage, state.config, state.timeline, read_keys=read_keys)
    assert (told.problems, told.partitions["record_index"]) == ((), 300)


def test_nested_columns_have_statistics_where_they_are_named() -> None:
    batch = pa.table(
        {
            "id": ["a"],
            "city": ["oslo"],
            "ts": pa.array([1], pa.int64()),
            "at": pa.array([{"x": 1, "y": 2}], pa.struct([("x", pa.int64()), ("y", pa.int64())])),
        }
    )
    made = ArrowTable.create(MemoryStorage(), {**BARE, ENABLE: "true", COLUMN_LIST: "at.x,id"})
    made.upsert(batch)
    assert columns(made) == {"at.x", "id"}
    others = ArrowTable.create(MemoryStorage(), {**BARE, ENABLE: "true"})
    others.upsert(batch)
    assert {"id", "city", "ts"} <= columns(others)
    assert not {name for name in columns(others) if name.startswith("at")}


def test_a_savepoint_whose_writer_died_is_no_reason_to_build_nothing() -> None:
    made = written()
    with pytest.raises(Crash):
        make_savepoint(CrashAfter(made.storage, 1), Settings.read(made.options))
    assert [i.state for i in made.state().timeline.instants if i.action is Action.SAVEPOINT] == [State.INFLIGHT]
    assert create_metadata_table(made.storage, Settings.read(made.options))
    assert_kept(made)
    made.upsert(rows(("a", "oslo"), ts=3))
    assert_kept(made)


def test_a_write_that_died_is_said_to_be_in_the_way() -> None:
    made = written()
    with pytest.raises(Crash):
        ArrowTable(CrashAfter(made.storage, 3), made.options).upsert(rows(("a", "oslo"), ts=3))
    with pytest.raises(
        WriteConflict, match=r"is pending: .*Try later; `hoodie check` says what to do if its process died"
    ):
        create_metadata_table(made.storage, Settings.read(made.options))


def test_partitions_are_built_and_removed_by_call() -> None:
    made, options = written(), Options({})
    assert create_metadata_table(made.storage, Settings.read(options), ["column_stats", "bloom_filters"])
    assert not create_metadata_table(made.storage, Settings.read(options), ["column_stats"])
    assert_kept(ArrowTable(made.storage, {**made.options, **INDEXES}))
    assert drop_metadata_table(made.storage, Settings.read(options), ["column_stats"], dry_run=True)
    assert drop_metadata_table(made.storage, Settings.read(options), ["column_stats"])
    assert not drop_metadata_table(made.storage, Settings.read(options), ["column_stats"])
    assert made.state().config.metadata_partitions == ("bloom_filters", "files")
    assert create_metadata_table(made.storage, Settings.read(options), ["column_stats"])
    assert_kept(ArrowTable(made.storage, {**made.options, **INDEXES}))
    assert drop_metadata_table(made.storage, Settings.read(options), ["files"])
    assert made.state().config.metadata_partitions == ()


@pytest.mark.parametrize("dying", WAYS_TO_DIE)
@pytest.mark.parametrize("before", [{}, {"hoodie.metadata.enable": "true"}], ids=["nothing", "file lists"])
def test_a_writer_that_dies_as_it_builds_leaves_nothing_that_is_read(before: Mapping[str, str], dying: Dying) -> None:
    start = written("COW", **before)
    names = set(start.snapshot()["id"].to_pylist())
    for call in range(0, 120, scaled(17, 9)):
        storage = start.storage.copy()  # type: ignore[attr-defined]
        try:
            create_metadata_table(CrashAfter(storage, call, dying), Settings.of({}), ["column_stats", "bloom_filters"])
        except Crash:
            pass
        else:
            return
        made = ArrowTable(storage, {**start.options, **INDEXES})
        with warnings.catch_warnings():
            warnings.simplefilter("error", MetadataTableIgnored)
            warnings.simplefilter("error", MetadataTableDropped)
            assert set(made.snapshot()["id"].to_pylist()) == names
            made.upsert(rows(("z", "rome"), ts=9))
        assert_kept(made)
        assert all(instant.state is State.COMPLETED for instant in opened(made).timeline.instants)
    pytest.fail("the building has more calls than were tried")


def test_a_partition_that_cannot_follow_is_removed_and_the_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ArrowTable.create(MemoryStorage(), {**TABLE, **INDEXES})
    made.upsert(rows(("a", "oslo")))

    def damaged(change: Change) -> pa.Table:
        raise CorruptFile("oslo/f.parquet", "broken Parquet footer")

    broken = replace(COLUMN_STATS, records=damaged)
    monkeypatch.setattr(kinds, "KINDS", tuple(broken if kind is COLUMN_STATS else kind for kind in kinds.KINDS))
    plain = ArrowTable(made.storage, TABLE)
    with pytest.warns(MetadataTableDropped, match=r"metadata table \(column_stats\) was removed: oslo/f.parquet"):
        plain.upsert(rows(("b", "rome"), ts=2))
    assert plain.state().config.metadata_partitions == ("bloom_filters", "files")
    assert not made.storage.list(f"{METADATA}column_stats")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain.upsert(rows(("c", "rome"), ts=3))
        assert set(plain.snapshot()["id"].to_pylist()) == {"a", "b", "c"}


def test_what_partitions_say_differently_from_the_files_is_told() -> None:
    made = ArrowTable.create(MemoryStorage(), {**TABLE, **INDEXES})
    made.upsert(rows(("a", "oslo"), ("b", "rome")))
    state = made.state()
    files = data_files(listed_folders(opened(made)).marked)
    building = Building(state.storage, state.config, state.timeline, "", of_listing((), files), MetadataOptions())
    statistics, filters = read_records(opened(made), STATISTICS), read_records(opened(made), FILTERS)
    assert [*COLUMN_STATS.differences(building, statistics), *BLOOM_FILTERS.differences(building, filters)] == []
    assert [*COLUMN_STATS.differences(building, statistics.slice(3))] == []  # a record may be missing
    other = statistics.set_column(6, "nulls", pa.array([1] * len(statistics), pa.int64()))
    told = [*COLUMN_STATS.differences(building, other)]
    assert len(told) == len(statistics)
    assert "column_stats of _hoodie_commit_seqno in oslo/" in min(told)
    (missing,) = BLOOM_FILTERS.differences(building, filters.slice(1))
    assert missing.endswith("in bloom_filters is missing")
    swapped = filters.set_column(3, "filter", filters.column("filter").take(pa.array([1, 0])))
    assert all(line.endswith("is not that of its footer") for line in BLOOM_FILTERS.differences(building, swapped))


def test_statistics_of_version_8_are_not_built() -> None:
    """Hudi 1.0 has another form of them."""
    made = ArrowTable.create(MemoryStorage(), {**BARE, "hoodie.write.table.version": "8"})
    made.upsert(rows(("a", "oslo")))
    with pytest.raises(
        UnsupportedTable, match="column_stats of the metadata table of a table of version 8 is not built"
    ):
        create_metadata_table(made.storage, Settings.of({}), ["column_stats"])
    made = ArrowTable(made.storage, {**made.options, **INDEXES})
    with pytest.warns(OptionIgnored, match="column_stats .*version 8 is not built here"):
        made.upsert(rows(("b", "oslo")))
    assert made.state().config.metadata_partitions == ("bloom_filters", "files")


def test_a_record_index_is_not_kept_in_an_upgraded_table() -> None:
    options = {**BARE, "hoodie.write.table.version": "9", "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX"}
    made = ArrowTable.create(MemoryStorage(), options)
    update_properties(made.storage, {"hoodie.table.initial.version": "6"})
    with pytest.warns(RecordIndexIgnored, match="version 9.*hoodie.index.type=GLOBAL_SIMPLE"):
        made.upsert(rows(("a", "oslo")))
