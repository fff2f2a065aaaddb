"""Writes keep and build the whole metadata table of versions 8 and 9: statistics say the types of their values in 9."""

import json
import math
import re
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.metadata import MetadataOptions, requested_partitions
from hoodie.config.options import Options
from hoodie.doctor.examine import examine
from hoodie.doctor.findings import Fault
from hoodie.doctor.repair import repair
from hoodie.errors import MetadataTableDropped, MetadataTableIgnored, OptionIgnored, RecordIndexIgnored
from hoodie.formats.hfile.reader import open_hfile
from hoodie.metadata.changes import of_listing
from hoodie.metadata.definitions import DEFAULT_PATH, IndexDefinition, read_definitions, write_definitions
from hoodie.metadata.keeping.build import build
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.listing import listed_folders
from hoodie.metadata.partitions.kind import Building
from hoodie.metadata.partitions.kinds import partition_kind
from hoodie.metadata.read import read_records
from hoodie.metadata.record_schema import record_schema_text, stored_schema_of
from hoodie.metadata.validate import validate_metadata
from hoodie.model.table_version import VERSIONS
from hoodie.reading.row_keys import read_keys
from hoodie.recovery.restore import restore
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.metadata_table import create_metadata_table, drop_metadata_table
from hoodie.storage.local import LocalStorage
from hoodie.table.properties import update_properties
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state
from hoodie.testing.storage import Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.view.load import data_files
from support.hudi_1_tables import unpack
from support.metadata_tables import FOLDER, METADATA, metadata_of
from support.nightly import by_day, scaled
from unit.metadata.test_metadata_keeping import ACTIONS, INDEXES, TABLE, after_each_death, rows

COLUMN_STATS, PARTITION_STATS = MetadataPartition.COLUMN_STATS, MetadataPartition.PARTITION_STATS
ALL = {**INDEXES, "hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.min.filegroup.count": "2"}
KINDS = {
    "COW": {"hoodie.write.table.version": "9"},
    "MOR": {"hoodie.write.table.version": "9", "hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "MOR 8": {"hoodie.write.table.version": "8", "hoodie.datasource.write.table.type": "MERGE_ON_READ"},
}


@pytest.fixture(autouse=True)
def _nothing_is_ignored() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableIgnored)
        warnings.simplefilter("error", MetadataTableDropped)
        warnings.simplefilter("error", RecordIndexIgnored)
        warnings.simplefilter("ignore", OptionIgnored)
        yield


def table(kind: str = "MOR", **options: str) -> ArrowTable:
    made = ArrowTable.create(MemoryStorage(), {**TABLE, **KINDS[kind], **ALL, **options})
    made.upsert(rows(("a", "oslo"), ("b", "rome")))
    return made


def partitions_of(kind: str) -> set[str]:
    statistics = set() if kind.endswith("8") else {"column_stats", "partition_stats"}
    return {"files", "bloom_filters", "record_index", *statistics}


def assert_kept(made: ArrowTable, kind: str) -> None:
    state = made.state()
    assert set(state.config.metadata_partitions) == partitions_of(kind)
    told = validate_metadata(made.storage, state.config, state.timeline, read_keys=read_keys)
    assert (told.problems, told.unread) == ((), ())


def records(made: ArrowTable, partition: MetadataPartition) -> list[dict[str, Any]]:
    metadata = metadata_of(made.state())
    return list(read_records(metadata, partition).to_pylist())


def bounds(made: ArrowTable, partition: MetadataPartition, column: str) -> dict[str, tuple[Any, Any]]:
    """Least and greatest value of a column, by file or partition."""

    def plain(value: Mapping[str, Any] | None) -> Any:
        return None if value is None else next(member for member in value.values() if member is not None)

    return {
        record["file"]: (plain(record["min"]), plain(record["max"]))
        for record in records(made, partition)
        if record["column"] == column
    }


#: What differs from version 6, and what changes most; the others are kept by the same code.
BY_DAY = ("upsert", "compaction", "a rollback of what is beneath another", "restore")


@pytest.mark.parametrize(
    ("kind", "action"),
    by_day(
        [(kind, action) for kind in KINDS for action in ACTIONS],
        lambda case: (case[0] == "MOR" and case[1] in BY_DAY) or case in {("MOR 8", "compaction"), ("COW", "clean")},
    ),
)
def test_the_metadata_table_follows_every_action(kind: str, action: str) -> None:
    made = table(kind)
    ACTIONS[action](made)
    assert_kept(made, kind)
    made.upsert(rows(("b", "rome"), ("l", "later"), ts=9))
    assert_kept(made, kind)


@pytest.mark.parametrize(
    ("kind", "dying"), by_day([(kind, dying) for kind in KINDS for dying in Dying], ("MOR", Dying.TORN).__eq__)
)
def test_readers_never_use_records_of_a_write_that_died(kind: str, dying: Dying) -> None:
    for made in after_each_death(table(kind), dying, range(0, 120, scaled(11, 5))):
        assert_kept(made, kind)


def test_it_is_built_on_a_table_that_has_none() -> None:
    made = ArrowTable.create(MemoryStorage(), {**TABLE, **KINDS["MOR"], "hoodie.metadata.enable": "false"})
    made.upsert(rows(("a", "oslo"), ("b", "rome")))
    made.upsert(rows(("a", "oslo"), ts=2))
    state = made.state()
    assert state.config.metadata_partitions == ()
    names = ("column_stats", "bloom_filters", "record_index")
    assert build(made.storage, state.config, state.timeline, names, MetadataOptions(), read_keys)
    assert_kept(made, "MOR")
    defined = read_definitions(made.storage, made.state().config)
    assert (defined["column_stats"].version, defined["record_index"].options) == ("V2", {"isPartitioned": "false"})
    assert defined["column_stats"].fields[3:] == ("id", "city", "ts")
    assert bounds(made, PARTITION_STATS, "ts") == {"oslo": (1, 2), "rome": (1, 1)}


@pytest.mark.parametrize("by_a_write", [False, True])
@pytest.mark.parametrize("version", ["8", "9"])
def test_files_of_archived_commits_are_listed_once_it_is_built(version: str, by_a_write: bool) -> None:
    made = _archived(version)
    if by_a_write:
        made.upsert(rows(("b", "rome"), ts=9), {"hoodie.metadata.enable": "true"})
    else:
        create_metadata_table(made.storage, Settings.of({}))
    assert made.state().config.metadata_partitions
    assert sorted(made.snapshot().column("id").to_pylist()) == ["a", "b"]


@pytest.mark.parametrize("version", ["8", "9"])
def test_files_of_archived_commits_are_listed_once_a_restore_has_built_it_again(version: str) -> None:
    made = _archived(version)
    create_metadata_table(made.storage, Settings.of({}))
    kept = make_savepoint(made.storage, Settings.of({}))
    made.upsert(rows(("c", "oslo")), {"hoodie.metadata.enable": "true"})
    restore(made.storage, Settings.of({}), kept.instant)
    assert made.state().config.metadata_partitions
    assert sorted(made.snapshot().column("id").to_pylist()) == ["a", "b"]


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_file_of_an_archived_commit_that_it_does_not_list_is_a_problem(version: str) -> None:
    made = _archived(version)
    hidden = {f"oslo/{entry.name}": made.storage.read(f"oslo/{entry.name}") for entry in made.storage.list("oslo")}
    for path in hidden:
        made.storage.delete(path)
    create_metadata_table(made.storage, Settings.of({}))
    for path, data in hidden.items():
        made.storage.write(path, data)
    state = made.state()
    validated = validate_metadata(made.storage, state.config, state.timeline)
    assert [problem.split("/")[0] for problem in validated.problems] == ["oslo"]


def _archived(version: str) -> ArrowTable:
    """A table whose row of oslo is of a commit that is in the history alone."""
    none = {"hoodie.write.table.version": version, "hoodie.metadata.enable": "false"}
    made = ArrowTable.create(MemoryStorage(), {**TABLE, **none})
    made.upsert(rows(("a", "oslo")))
    for ts in range(5):
        made.upsert(rows(("b", "rome"), ts=ts))
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
    made.clean(keep)
    made.archive(keep)
    assert min(made.state().timeline.commits).requested > min(slice_.base_instant for slice_ in made.slices())
    return made


def test_a_new_column_is_defined_with_the_first_file_that_has_it() -> None:
    made = table("COW")
    more = rows(("n", "oslo"), ts=2).append_column("fare", pa.array([7], pa.int64()))
    made.upsert(more, {"hoodie.datasource.write.reconcile.schema": "true"})
    assert read_definitions(made.storage, made.state().config)["column_stats"].fields[-1] == "fare"
    assert set(bounds(made, COLUMN_STATS, "fare").values()) == {(7, 7)}
    assert bounds(made, PARTITION_STATS, "fare") == {"oslo": (7, 7)}


def test_bounds_hold_what_footers_do_not_know() -> None:
    """Hudi takes a file without bounds for one without values, and NaN for less than all numbers; Parquet knows no NaN,
    and drops long texts."""
    made = ArrowTable.create(MemoryStorage(), {**TABLE, **KINDS["COW"], **ALL})
    long = "x" * 10_000
    batch = rows(("a", "oslo"), ("b", "oslo"))
    batch = batch.append_column("fare", pa.array([1.5, math.nan])).append_column("note", pa.array(["a", long]))
    made.upsert(batch)
    assert set(bounds(made, COLUMN_STATS, "fare").values()) == {(1.5, math.inf)}
    assert set(bounds(made, COLUMN_STATS, "note").values()) == {("a", long)}
    assert bounds(made, PARTITION_STATS, "fare") == {"oslo": (1.5, math.inf)}


def test_a_base_file_without_rows_has_no_statistics_of_columns() -> None:
    """Hudi writes none, and its BLOOM index fails on a file whose least key is null."""
    made = table("COW")
    made.delete(rows(("a", "oslo"), ts=2))
    assert set(bounds(made, COLUMN_STATS, "_hoodie_record_key").values()) == {("a", "a"), ("b", "b")}
    assert_kept(made, "COW")
    create_metadata_table(made.storage, Settings.read(Options(ALL)), ["column_stats"], again=True)
    assert set(bounds(made, COLUMN_STATS, "_hoodie_record_key").values()) == {("a", "a"), ("b", "b")}
    assert_kept(made, "COW")


def test_statistics_of_other_columns_are_removed() -> None:
    made = table("COW")
    config = made.state().config
    defined = read_definitions(made.storage, config)
    gone = IndexDefinition("column_stats", "column_stats", "column_stats", ("id", "gone"), version="V2")
    write_definitions(made.storage, config, {**defined, "column_stats": gone})
    with pytest.warns(MetadataTableDropped, match="the table no longer has the column gone"):
        made.upsert(rows(("a", "oslo"), ts=2))
    assert set(made.state().config.metadata_partitions) == {"files", "bloom_filters", "record_index"}


def test_a_record_index_by_partition_and_statistics_of_another_form_are_removed() -> None:
    made = table("COW")
    config = made.state().config
    defined = read_definitions(made.storage, config)
    parted = IndexDefinition("record_index", "record_index", options={"isPartitioned": "true"}, version="V1")
    older = IndexDefinition("column_stats", "column_stats", "column_stats", ("id",), version="V1")
    write_definitions(made.storage, config, {**defined, "record_index": parted, "column_stats": older})
    made = ArrowTable(made.storage, {**made.options, "hoodie.index.type": "BLOOM"})
    with pytest.warns(MetadataTableDropped, match=r"\(column_stats, partition_stats, record_index\) was removed"):
        made.upsert(rows(("a", "oslo"), ts=2), dict.fromkeys(INDEXES, "false"))
    assert "partition_stats" not in made.state().config.metadata_partitions


def test_an_expression_index_goes_with_its_definition_and_a_secondary_index_without() -> None:
    """Hudi reads by what is defined, be it there or not; a secondary index it makes again."""
    made = table("COW")
    config = made.state().config
    indexes = ("expr_index_day", "secondary_index_city")
    defined = {**read_definitions(made.storage, config), **{name: IndexDefinition(name, "") for name in indexes}}
    write_definitions(made.storage, config, defined)
    update_properties(
        made.storage, {"hoodie.table.metadata.partitions": ",".join((*config.metadata_partitions, *indexes))}
    )
    with pytest.warns(MetadataTableDropped, match=r"expr_index_day, secondary_index_city\) was removed.*CREATE INDEX"):
        made.upsert(rows(("a", "oslo"), ts=2))
    assert set(made.state().config.metadata_partitions) == {*config.metadata_partitions}
    assert set(read_definitions(made.storage, config)) == {*defined} - {"expr_index_day"}


def test_a_metadata_table_that_is_built_again_has_no_definition_of_an_expression_index() -> None:
    made = table("COW")
    config = made.state().config
    defined = read_definitions(made.storage, config)
    write_definitions(made.storage, config, {**defined, "expr_index_day": IndexDefinition("expr_index_day", "")})
    drop_metadata_table(made.storage, Settings.of({}))
    assert "expr_index_day" in read_definitions(made.storage, config)  # Hudi's next write builds it again
    create_metadata_table(made.storage, Settings.of({}))
    assert set(read_definitions(made.storage, config)) == {*defined}


def lose(made: ArrowTable) -> None:
    made.storage.delete(DEFAULT_PATH)


def cut(made: ArrowTable) -> None:
    made.storage.write(DEFAULT_PATH, made.storage.read(DEFAULT_PATH)[:100])


@pytest.mark.parametrize("harm", [lose, cut])
@pytest.mark.parametrize("index", ["RECORD_INDEX", "BLOOM"])
def test_what_damaged_definitions_are_about_is_removed_and_rows_are_written(harm: Any, index: str) -> None:
    """Without them nobody knows what the records are: of which columns, or whether keys are found by partition."""
    made = table("COW")
    harm(made)
    made = ArrowTable(made.storage, {**made.options, "hoodie.index.type": index})
    removed = r"\(column_stats, partition_stats, record_index\) was removed: .*index.json"
    with pytest.warns(MetadataTableDropped, match=removed):
        made.upsert(rows(("a", "oslo"), ("c", "oslo"), ts=2))
    kept = made.snapshot().sort_by("id")
    assert kept.select(["id", "ts"]).to_pydict() == {"id": ["a", "b", "c"], "ts": [2, 1, 2]}
    built = {"column_stats"} | ({"record_index"} if index == "RECORD_INDEX" else set())
    assert set(read_definitions(made.storage, made.state().config)) == built
    told = validate_metadata(made.storage, made.state().config, made.state().timeline, read_keys=read_keys)
    assert (told.problems, told.unread) == ((), ())


@pytest.mark.parametrize("harm", [lose, cut])
def test_a_repair_makes_a_table_with_damaged_definitions_one_that_is_written(harm: Any) -> None:
    made = table("COW")
    harm(made)
    (finding,) = examine(made.storage, rows=False, grace=0)
    assert (finding.fault, finding.where) == (Fault.LISTS, DEFAULT_PATH)
    repair(made.storage, dry_run=False, grace=0)
    assert examine(made.storage, grace=0) == ()
    assert not made.storage.exists(DEFAULT_PATH)
    made.upsert(rows(("a", "oslo"), ts=2))
    assert_kept(made, "COW")
    assert examine(made.storage, grace=0) == ()


def test_a_metadata_table_of_file_lists_needs_no_definitions() -> None:
    made = table("COW", **dict.fromkeys(INDEXES, "false"), **{"hoodie.index.type": "BLOOM"})
    update_properties(made.storage, {"hoodie.table.index.defs.path": DEFAULT_PATH})
    made.upsert(rows(("a", "oslo"), ts=2))
    assert examine(made.storage, grace=0) == ()


@pytest.mark.parametrize("partition", [MetadataPartition.RECORD_INDEX, COLUMN_STATS])
def test_a_lost_base_file_of_a_compaction_is_missed(partition: MetadataPartition) -> None:
    """Names of logs do not have it, as those of version 6 do: what it holds would be taken for not there."""
    services = {"hoodie.table.services.enabled": "true", "hoodie.metadata.compact.max.delta.commits": "3"}
    made = table("COW", **services)
    for ts in range(2, 7):
        made.upsert(rows(("a", "oslo"), ("b", "rome"), (f"c{ts}", "oslo"), ts=ts))
    instants = {
        f"{METADATA}{partition}/{entry.name}": re.findall(r"_(\d{17})\b", entry.name)[0]
        for entry in made.storage.list(f"{METADATA}{partition}")
        if not entry.name.startswith(".hoodie")
    }
    compacted = max(instant for path, instant in instants.items() if path.endswith(".hfile"))
    assert any(instant > compacted for instant in instants.values())
    for path, instant in instants.items():  # the base files, and what a cleaning would have left out
        if instant <= compacted:
            made.storage.delete(path)
    problems = [finding.problem for finding in examine(made.storage, rows=False, grace=0)]
    assert [problem for problem in problems if f"{partition} cannot be read" in problem and "is gone" in problem]
    with pytest.warns((MetadataTableDropped, RecordIndexIgnored)):
        made.upsert(rows(("b", "rome"), ("e", "oslo"), ts=7))
    made.upsert(rows(("a", "oslo"), ts=8))
    assert_kept(made, "COW")
    assert len(made.snapshot()) == 8


def test_that_of_an_upgraded_table_is_not_built() -> None:
    made = ArrowTable.create(MemoryStorage(), {**TABLE, **KINDS["COW"], "hoodie.metadata.enable": "false"})
    update_properties(made.storage, {"hoodie.table.initial.version": "6"})
    with pytest.warns(OptionIgnored, match="that was upgraded to version 9 is not built here"):
        made.upsert(rows(("a", "oslo")), {"hoodie.metadata.enable": "true"})
    assert made.state().config.metadata_partitions == ()


def test_the_names_of_hudi_1_1_name_the_record_index() -> None:
    named = {"hoodie.metadata.global.record.level.index.enable": "true"}
    assert requested_partitions(Options(named)).build == ("files", "record_index")
    made = ArrowTable.create(
        MemoryStorage(), {**TABLE, **KINDS["COW"], "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX"}
    )
    made.upsert(rows(("a", "oslo")))
    assert "record_index" in made.state().config.metadata_partitions
    assert made.state().config.properties["hoodie.index.type"] == "GLOBAL_RECORD_LEVEL_INDEX"


# --- beside Hudi ---


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> TableState:
    """A Merge-on-Read table of Hudi 1.1.1 with columns of all types: upserts, a delete, an insert overwrite."""
    folder = tmp_path_factory.mktemp("types")
    with zipfile.ZipFile(FOLDER / "v9_mor_statistics.zip") as archive:
        archive.extractall(folder)
    return load_state(LocalStorage(folder / "v9_mor_statistics"))


def first_records(state: TableState, partition: MetadataPartition) -> dict[str, dict[str, Any]]:
    """What the partition of a table would be built with, by key."""
    metadata = metadata_of(state)
    files = of_listing((), data_files(listed_folders(metadata).marked))
    building = Building(state.storage, state.config, state.timeline, "", files, MetadataOptions())
    first = partition_kind(partition).first(building)
    found = [record for share in first.shares for part in first.records(share) for record in part.to_pylist()]
    return {record["row"]: record for record in found}


def hudis_records(state: TableState, partition: MetadataPartition) -> dict[str, dict[str, Any]]:
    metadata = metadata_of(state)
    return {record["row"]: record for record in read_records(metadata, partition).to_pylist()}


def test_statistics_of_files_are_those_of_hudi(types: TableState) -> None:
    ours, theirs = (read(types, COLUMN_STATS) for read in (first_records, hudis_records))
    assert len(ours) == 240
    assert ours == theirs
    classes = {record["type"]["typeOrdinal"] for record in ours.values()}
    assert classes == {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 19}


def test_statistics_of_partitions_are_those_of_hudi(types: TableState) -> None:
    ours, theirs = (read(types, PARTITION_STATS) for read in (first_records, hudis_records))
    assert ours.keys() == theirs.keys()
    assert {row: r for row, r in ours.items() if r["file"] != "b"} == {
        row: r for row, r in theirs.items() if r["file"] != "b"
    }
    for row, record in ours.items():  # Hudi has what the insert overwrite replaced in there once more
        assert record["values"] <= theirs[row]["values"]


@pytest.mark.parametrize("name", ["v9_mor_part", "v9_cow_part"])
def test_statistics_of_plain_tables_are_those_of_hudi(name: str, tmp_path: Path) -> None:
    state = load_state(LocalStorage(unpack(name, tmp_path)))
    for partition in (COLUMN_STATS, PARTITION_STATS):
        assert first_records(state, partition) == hudis_records(state, partition)


@pytest.mark.parametrize(("name", "number"), [("v9_mor_part", 9), ("v8_mor_part", 8)])
def test_records_are_written_by_the_schema_of_hudi(name: str, number: int, tmp_path: Path) -> None:
    folder = unpack(name, tmp_path) / ".hoodie" / "metadata" / "files"
    base = next(path for path in folder.iterdir() if path.suffix == ".hfile").read_bytes()
    schema = stored_schema_of(VERSIONS[number])
    assert open_hfile(lambda at, length: base[at : at + length], len(base), name).info["schema"].decode() == schema
    fields = [field for field in json.loads(schema)["fields"] if not field["name"].startswith("_hoodie")]
    assert json.loads(record_schema_text(VERSIONS[number]))["fields"] == fields


@pytest.mark.parametrize("word", [b'"isDeleted"', b'"fields"', b'"size"'])
def test_a_schema_that_is_damaged_in_a_log_costs_the_metadata_table_and_no_row(word: bytes, tmp_path: Path) -> None:
    table = hoodie.create_table(
        tmp_path / "t",
        record_key="id",
        options={
            "hoodie.write.table.version": "9",
            "hoodie.metadata.enable": "true",
            "hoodie.clean.automatic": "false",
        },
    )
    for number in range(2):
        table.upsert(pa.table({"id": [number], "n": [number]}))
    log = max((tmp_path / "t/.hoodie/metadata/files").glob(".files-*.log.*"))
    content = log.read_bytes()
    assert word in content
    log.write_bytes(content.replace(word, word[:2] + b"~" + word[3:]))
    with pytest.warns(MetadataTableIgnored):
        assert table.to_arrow().num_rows == 2
    with pytest.warns(MetadataTableDropped):
        table.upsert(pa.table({"id": [2], "n": [2]}))
    assert table.to_arrow().num_rows == 3
