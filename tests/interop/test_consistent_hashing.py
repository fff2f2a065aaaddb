"""Tables of Hudi's bucket index with the engine CONSISTENT_HASHING: keys go where the hashing metadata says."""

import dataclasses
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.config.options import Options
from hoodie.config.table import from_properties
from hoodie.config.write import WriteOperation
from hoodie.doctor.examine import Severity, examine
from hoodie.errors import CorruptFile, HoodieError, InvalidOption, TableMismatch, UnsupportedTable
from hoodie.formats.timeline.plans import encode_replace_plan
from hoodie.index.bucket import HashFields
from hoodie.index.consistent_hashing import (
    INITIAL,
    METADATA,
    BucketNode,
    Ring,
    decode_ring,
    encode_ring,
    first_ring,
    hash_values,
    load_ring,
    nodes_of,
)
from hoodie.index.xxhash32 import xxh32
from hoodie.model.instant import Action
from hoodie.model.plans import ClusteringGroup, ClusteringPlan, ClusteringSlice, ReplacePlan
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.downgrade import downgrade
from hoodie.services.upgrade import upgrade
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage, join
from hoodie.table.settings import Settings
from hoodie.table.state import table_keygen
from hoodie.testing.storage import CountingStorage, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.timeline import LAYOUT_1, Timeline, parse_name
from hoodie.timeline.transition import create_requested
from hoodie.writing import write as write_module
from hoodie.writing.batch.memory import MemoryBatch
from hoodie.writing.write import check
from support.hudi_1_tables import unpack
from support.keyed_rows import keyed
from support.oracles import META, assert_same_rows, read_hudi_rs
from support.trips import table_options

FIXTURES = Path(__file__).parents[1] / "fixtures" / "buckets"
FACTS = json.loads((FIXTURES / "consistent_mor.json").read_text())
NOW = {"hoodie.compact.inline.max.delta.commits": "1"}
ENGINE = "hoodie.index.bucket.engine"


@pytest.fixture
def table(tmp_path: Path) -> ArrowTable:
    """The table as Hudi left it: two buckets in each of three partitions, logs only."""
    with zipfile.ZipFile(FIXTURES / "consistent_mor.zip") as archive:
        archive.extractall(tmp_path)
    return ArrowTable(LocalStorage(tmp_path / "consistent_mor"), {"hoodie.spark.driver.threads": "1"})


@pytest.fixture(params=["logs", "compacted"])
def either(request: pytest.FixtureRequest, table: ArrowTable) -> ArrowTable:
    """The table before and after a compaction."""
    if request.param == "compacted":
        instant = schedule_compaction(table.storage, Settings.of(NOW))
        assert instant is not None
        compact(table.storage, Settings.of({}), instant)
    return table


def ring_of(table: ArrowTable, partition: str) -> Ring:
    path = f"{METADATA}/{partition}/{INITIAL}.hashing_meta"
    return decode_ring(table.storage.read(path), path)


def user_rows(rows: pa.Table) -> pa.Table:
    return rows.drop_columns([name for name in META if name in rows.column_names])


def rows_of(*keys: str, part: str, ts: int = 10, name: str = "new") -> pa.Table:
    count = len(keys)
    return pa.table(
        {"id": keys, "part": [part] * count, "ts": [ts] * count, "v": [1.5] * count, "name": [name] * count}
    )


def files_on_disk(table: ArrowTable) -> dict[str, bytes]:
    root = Path(table.storage.root)
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def data_files(table: ArrowTable) -> set[str]:
    return {path for path in files_on_disk(table) if "/.hoodie/" not in path}


# --- the ring, as Hudi makes it ---


@pytest.mark.parametrize("partition", ["p1", "p2", "p3"])
def test_a_partition_begins_with_the_bytes_that_hudi_writes(partition: str, table: ArrowTable) -> None:
    data = table.storage.read(f"{METADATA}/{partition}/{INITIAL}.hashing_meta")
    assert encode_ring(first_ring(partition, 2)) == data
    assert decode_ring(data, "") == first_ring(partition, 2)


def test_the_nodes_of_a_first_ring_lie_at_equal_distances_up_to_the_largest_hash() -> None:
    assert [node.value for node in first_ring("", 3).nodes] == [715827883, 1431655766, 2147483647]
    assert [node.value for node in first_ring("", 1).nodes] == [2147483647]


def test_each_key_that_hudi_placed_is_in_its_node() -> None:
    assert len(FACTS["snapshot"]) == 18
    for row in FACTS["snapshot"]:
        nodes = first_ring(row["part"], 2).nodes
        (at,) = nodes_of(hash_values(pa.array([row["id"]]), HashFields(("id",))), nodes)
        assert row["_hoodie_file_name"].startswith(nodes[at].file_id)


def test_a_hash_belongs_to_the_first_node_that_is_not_below_it_and_behind_the_last_to_the_first() -> None:
    nodes = [BucketNode(10, "a"), BucketNode(20, "b")]
    assert nodes_of(pa.array([0, 10, 11, 20, 21]).to_numpy(), nodes).tolist() == [0, 0, 1, 1, 0]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("abc", "abc"),
        ("a:1,b:2", "12"),
        ("a:1,c:3", "1"),
        ("c:3", ""),
        ("a:__null__,b:__empty__", "null"),
        ("a:x:y,lone", "x:ylone"),
    ],
)
def test_the_values_of_a_compound_key_are_hashed_one_after_the_other(key: str, text: str) -> None:
    found = hash_values(pa.array(["z", key, "b:2"]), HashFields(("a", "b")))
    assert found[1] == int(xxh32(pa.array([text]))[0]) & 0x7FFFFFFF


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"partitionPath": "p", "instant": "0", "numBuckets": 1, "seqNo": 0, "nodes": []}',
        b'{"partitionPath": "p", "instant": "0", "numBuckets": 1, "seqNo": 0, "nodes": [{"value": 1}]}',
        b'{"partitionPath": "p", "instant": "0", "numBuckets": 1, "seqNo": 0, "nodes": '
        b'[{"value": 1, "fileIdPrefix": "a"}, {"value": 1, "fileIdPrefix": "b"}]}',
    ],
)
def test_what_is_no_ring_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFile, match="x: "):
        decode_ring(data, "x")


# --- Hudi's table goes on ---


def test_the_table_is_read_as_hudi_saw_it(either: ArrowTable) -> None:
    rows = either.snapshot()
    expected = [{k: r[k] for k in ("id", "part", "ts", "name", "_hoodie_commit_time")} for r in FACTS["snapshot"]]
    assert sorted(rows.select(list(expected[0])).to_pylist(), key=str) == sorted(expected, key=str)
    assert not [f for f in examine(either.storage, grace=1e9) if f.severity is Severity.ERROR]


@pytest.mark.parametrize("options", [{}, {"hoodie.index.type": "BUCKET"}, {ENGINE: "CONSISTENT_HASHING"}])
def test_updates_inserts_and_deletes_go_to_the_buckets_of_their_keys(
    options: dict[str, str], either: ArrowTable
) -> None:
    before = either.snapshot()
    groups = {slice_.group for slice_ in either.slices()}
    changed = user_rows(before.slice(0, 9))
    changed = changed.set_column(changed.schema.get_field_index("ts"), "ts", pa.array([99] * 9, changed["ts"].type))
    keys = [f"n{number}" for number in range(20)]
    result = either.upsert(pa.concat_tables([changed, rows_of(*keys, part="p1").cast(changed.schema)]), options=options)
    assert result.index.hits == 29
    either.delete(before.slice(9, 1).select(["_hoodie_record_key", "_hoodie_partition_path"]), options=options)

    after = either.snapshot()
    assert after.num_rows == before.num_rows + 20 - 1 == len(set(after["id"].to_pylist()))
    assert {slice_.group for slice_ in either.slices()} == groups
    for row in after.to_pylist():
        nodes = ring_of(either, row["part"]).nodes
        (at,) = nodes_of(hash_values(pa.array([row["id"]]), HashFields(("id",))), nodes)
        assert row["_hoodie_file_name"].startswith(nodes[at].file_id) or nodes[at].file_id in row["_hoodie_file_name"]
    assert set(after.filter(pc.is_in(after["id"], changed["id"]))["ts"].to_pylist()) == {99}
    assert_same_rows(read_hudi_rs(Path(either.storage.root)), after, ignore=["_hoodie_file_name"])


def test_the_next_upsert_of_all_rows_after_a_compaction_doubles_no_key(either: ArrowTable) -> None:
    before = either.snapshot()
    either.upsert(user_rows(before))
    assert sorted(either.snapshot()["id"].to_pylist()) == sorted(before["id"].to_pylist())


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"hoodie.index.type": "SIMPLE"}, "SIMPLE was asked for"),
        ({"hoodie.index.type": "BLOOM"}, "BLOOM was asked for"),
        ({"hoodie.index.type": "GLOBAL_SIMPLE"}, "GLOBAL_SIMPLE was asked for"),
        ({"hoodie.index.type": "GLOBAL_BLOOM"}, "GLOBAL_BLOOM was asked for"),
        ({"hoodie.index.type": "HBASE"}, "HBASE was asked for"),
        ({"hoodie.index.class": "support.own_indexes:diary"}, "support.own_indexes:diary was asked for"),
        ({"hoodie.index.type": "BUCKET", ENGINE: "SIMPLE"}, "keeps hashing metadata"),
        ({ENGINE: "SIMPLE"}, "keeps hashing metadata"),
    ],
)
def test_any_other_index_is_refused_before_and_after_a_compaction(
    options: dict[str, str], problem: str, either: ArrowTable
) -> None:
    rows, before = user_rows(either.snapshot()), files_on_disk(either)
    for write in (either.upsert, either.insert, either.bulk_insert, either.delete):
        with pytest.raises(TableMismatch, match=problem) as refused:
            write(rows, options)
        assert "unset" in str(refused.value)
    assert files_on_disk(either) == before


def test_operations_that_replace_file_groups_are_refused(either: ArrowTable) -> None:
    rows, before = user_rows(either.snapshot()), files_on_disk(either)
    for write in (either.insert_overwrite, either.insert_overwrite_table):
        with pytest.raises(UnsupportedTable, match="replaces file groups"):
            write(rows)
    with pytest.raises(UnsupportedTable, match="Delete the rows by key"):
        either.delete_partitions(["p1"])
    assert files_on_disk(either) == before


# --- new partitions ---


def test_a_new_partition_gets_the_ring_that_hudi_would_write(table: ArrowTable) -> None:
    result = table.upsert(rows_of(*map(str, range(30)), part="p9"))
    ring = ring_of(table, "p9")
    assert ring == first_ring("p9", 2)  # as the other partitions began
    assert {stat.file_id for stat in result.stats} == set(ring.file_ids)
    table.upsert(rows_of(*map(str, range(30)), part="p9", ts=11))
    after = table.snapshot()
    assert after.filter(pc.equal(after["part"], "p9")).num_rows == 30
    assert_same_rows(read_hudi_rs(Path(table.storage.root)), after, ignore=["_hoodie_file_name"])
    table.upsert(rows_of("1", part="p10"), options={"hoodie.bucket.index.num.buckets": "5"})
    assert ring_of(table, "p10") == first_ring("p10", 5)


def test_of_two_writers_that_begin_a_partition_the_first_ring_counts(table: ArrowTable) -> None:
    class Faster(LocalStorage):
        """Another writer begins the partition, with more buckets, in the very moment."""

        def create_new(self, path: str, data: bytes) -> None:
            if path.endswith(".hashing_meta"):
                super().create_new(path, encode_ring(first_ring("p9", 3)))
            super().create_new(path, data)

    ArrowTable(Faster(table.storage.root)).upsert(rows_of(*map(str, range(30)), part="p9"))
    assert ring_of(table, "p9") == first_ring("p9", 3)
    assert {s.group.file_id for s in table.slices() if s.group.partition == "p9"} == set(first_ring("p9", 3).file_ids)


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_table_made_for_the_engine_keeps_its_keys_apart(version: str) -> None:
    options = {
        "hoodie.write.table.version": version,
        **table_options("trips", "id", partition="part", ordering="ts"),
        "hoodie.index.type": "BUCKET",
        ENGINE: "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "3",
    }
    with pytest.raises(InvalidOption, match="for Merge-on-Read tables"):
        ArrowTable.create(MemoryStorage(), options)
    storage = MemoryStorage()
    ArrowTable.create(storage, {**options, "hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    later = ArrowTable(storage)
    for ts in (1, 2):
        later.upsert(rows_of(*map(str, range(50)), part="p", ts=ts))
    later.insert(rows_of(*map(str, range(60)), part="p", ts=3))
    assert later.snapshot().num_rows == 60
    assert ring_of(later, "p") == first_ring("p", 3)
    storage.delete_tree(".hoodie/.bucket_index")
    with pytest.raises(TableMismatch, match="restore it from a copy"):
        later.upsert(rows_of("1", part="p"))


def test_a_table_without_partitions_has_one_ring() -> None:
    options = {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.index.type": "BUCKET",
        ENGINE: "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "3",
    }
    table = ArrowTable.create(MemoryStorage(), options)
    for ts in (1, 2):
        table.upsert(rows_of(*map(str, range(50)), part="p", ts=ts))
    assert table.snapshot().num_rows == 50
    path = f"{METADATA}/{INITIAL}.hashing_meta"
    assert decode_ring(table.storage.read(path), path) == first_ring("", 3)


# --- tables of Hudi 1.x ---

RESIZED = "v9_mor_consistent_hashing"


@pytest.fixture
def resized(tmp_path: Path) -> ArrowTable:
    """A table of version 9. A clustering of Hudi's has split the buckets of `a` into four, and merged those of `b`."""
    return ArrowTable(LocalStorage(unpack(RESIZED, tmp_path)), {"hoodie.spark.driver.threads": "1"})


def test_a_resized_table_of_version_9_goes_on_in_its_new_buckets(resized: ArrowTable) -> None:
    groups = {slice_.group for slice_ in resized.slices()}
    assert sorted(group.partition for group in groups) == ["a", "a", "a", "a", "b"]
    before = resized.snapshot()
    assert before.num_rows == 75
    keys = [f"n{number}" for number in range(20)]
    new = pa.table({"id": keys * 2, "part": ["a"] * 20 + ["b"] * 20, "ts": [9] * 40, "name": keys * 2})
    new = new.append_column("price", pa.array([1.0] * 40)).append_column("qty", pa.array([1] * 40, pa.int32()))
    assert resized.upsert(new).index.hits == 40
    resized.upsert(user_rows(before))
    resized.delete(before.slice(0, 1).select(["_hoodie_record_key", "_hoodie_partition_path"]))
    after = resized.snapshot()
    assert after.num_rows == len(set(zip(after["id"].to_pylist(), after["part"].to_pylist(), strict=True))) == 114
    assert {slice_.group for slice_ in resized.slices()} == groups
    compact(resized.storage, Settings.of(NOW), schedule_compaction(resized.storage, Settings.of(NOW)))
    assert resized.snapshot()["id"].to_pylist() == after["id"].to_pylist()
    assert not [f for f in examine(resized.storage, grace=1e9) if f.severity is Severity.ERROR]


def test_a_clustering_counts_whose_instant_is_in_the_history_alone(resized: ArrowTable) -> None:
    rows = user_rows(resized.snapshot())
    for folder, entries in resized.storage.list_tree(METADATA).items():
        for entry in entries:
            if entry.name.endswith(".commit"):  # by which a writer of Hudi notes that it has seen the clustering
                resized.storage.delete(f"{folder}/{entry.name}")
    often = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.commits.retained": "1"}
    table = ArrowTable(resized.storage, {**resized.options, **often, **NOW, "hoodie.compact.inline": "true"})
    for _ in range(6):
        table.upsert(rows)
    assert not table.state().timeline.completed({Action.REPLACE_COMMIT})
    table.upsert(rows)
    assert table.snapshot().num_rows == rows.num_rows


@pytest.mark.parametrize("to", [6, 8])
def test_buckets_keep_their_keys_when_the_version_changes(to: int, resized: ArrowTable) -> None:
    rows = user_rows(resized.snapshot())
    downgrade(resized.storage, Settings.of({}), to)
    resized.upsert(rows)
    upgrade(resized.storage, Settings.of({}), 9)
    resized.upsert(rows)
    assert sorted(resized.snapshot()["id"].to_pylist()) == sorted(rows["id"].to_pylist())


# --- what counts of several rings ---


def split(ring: Ring, instant: str) -> Ring:
    """The ring after a clustering that split its first bucket."""
    first, *others = ring.nodes
    halves = (BucketNode(first.value // 2, "half-1"), BucketNode(first.value, "half-2"))
    return Ring(ring.partition, instant, ring.began_with, ring.sequence + 1, (*halves, *others))


@pytest.fixture
def kept() -> tuple[Storage, Ring]:
    storage, ring = MemoryStorage(), first_ring("p", 2)
    put(storage, ring)
    return storage, ring


def put(storage: Storage, ring: Ring) -> None:
    storage.write(f"{join(METADATA, ring.partition)}/{ring.instant}.hashing_meta", encode_ring(ring))


AT = "20260101000000000"
LATER = "20270101000000000"
CONFIG = from_properties({"hoodie.table.name": "t", "hoodie.table.type": "MERGE_ON_READ", "hoodie.table.version": "9"})


def timeline(*names: str, layout: int = 1) -> Timeline:
    found = [parse_name(name, layout, ".hoodie") for name in names]
    return Timeline(tuple(instant for instant in found if instant is not None), layout=layout)


@pytest.mark.parametrize(
    ("names", "marked", "groups", "counts"),
    [
        ([f"{AT}.replacecommit"], False, ["half-1-0"], True),
        ([f"{AT}.replacecommit.requested"], False, ["{old}"], False),
        ([f"{AT}.replacecommit.inflight"], False, ["{old}"], False),
        ([f"{LATER}.commit"], True, ["half-1-0"], True),  # archived, with the marker that Hudi leaves
        ([f"{LATER}.commit"], False, ["half-1-0", "{kept}"], True),  # archived
        ([f"{LATER}.commit"], False, ["{old}", "{kept}"], False),  # rolled back, and that is archived
        ([f"{AT[:4]}0000000000000.commit"], False, ["{old}"], False),  # rolled back
    ],
)
def test_the_newest_ring_of_a_completed_clustering_counts(
    names: list[str], marked: bool, groups: list[str], counts: bool, kept: tuple[Storage, Ring]
) -> None:
    storage, ring = kept
    put(storage, split(ring, AT))
    if marked:
        storage.write(f"{METADATA}/p/{AT}.commit", b"")
    live = [name.format(old=ring.nodes[0].file_id, kept=ring.nodes[1].file_id) for name in groups]
    assert load_ring(storage, CONFIG, timeline(*names), "p", live) == (split(ring, AT) if counts else ring)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        (f"{AT}_{LATER}.replacecommit", True),
        (f"{AT}.clustering.requested", False),
        (f"{AT}.clustering.inflight", False),
    ],
)
def test_a_clustering_of_a_later_version_counts_once_it_is_completed(
    name: str, counts: bool, kept: tuple[Storage, Ring]
) -> None:
    storage, ring = kept
    put(storage, split(ring, AT))
    found = load_ring(storage, CONFIG, timeline(name, layout=2), "p", [])
    assert found == (split(ring, AT) if counts else ring)


def test_a_clustering_in_the_history_of_a_later_version_counts(kept: tuple[Storage, Ring]) -> None:
    storage, ring = kept
    put(storage, split(ring, AT))
    live = [node.file_id for node in split(ring, AT).nodes]
    archived = dataclasses.replace(timeline(layout=2), history={AT: LATER})
    assert load_ring(storage, CONFIG, archived, "p", live) == split(ring, AT)


def test_a_partition_with_file_groups_and_no_ring_is_corrupt_and_one_without_begins_anew() -> None:
    assert load_ring(MemoryStorage(), CONFIG, timeline(), "p", []) is None
    with pytest.raises(CorruptFile, match="though partition 'p' has file groups such as x-0"):
        load_ring(MemoryStorage(), CONFIG, timeline(), "p", ["x-0"])


# --- what would lose or double rows ---


def refused(table: ArrowTable, kind: type[HoodieError], problem: str, part: str = "p1") -> None:
    before, rows = data_files(table), table.snapshot()
    with pytest.raises(kind, match=problem):
        table.upsert(rows_of("k000", part=part))
    assert data_files(table) == before
    assert table.snapshot().equals(rows)


def test_a_partition_whose_metadata_was_lost_is_refused_and_the_others_are_written(table: ArrowTable) -> None:
    table.storage.delete_tree(f"{METADATA}/p1")
    refused(table, CorruptFile, "no hashing metadata counts")
    table.upsert(rows_of("new", part="p2"))


def test_a_file_group_of_no_bucket_is_refused(table: ArrowTable) -> None:
    path = f"{METADATA}/p1/{INITIAL}.hashing_meta"
    ring = ring_of(table, "p1")
    table.storage.write(path, encode_ring(Ring("p1", INITIAL, 2, 0, (ring.nodes[1], BucketNode(5, "other")))))
    refused(table, UnsupportedTable, f"{ring.nodes[0].file_id} are of no bucket")


def test_rows_are_not_written_to_buckets_that_a_pending_clustering_resizes(table: ArrowTable) -> None:
    (group, *_) = [slice_.group for slice_ in table.slices() if slice_.group.partition == "p1"]
    clustering = ClusteringPlan(groups=(ClusteringGroup(slices=(ClusteringSlice(group=group, base_file=""),)),))
    plan = encode_replace_plan(ReplacePlan(operation="CLUSTER", clustering=clustering), table.storage.root)
    create_requested(table.storage, LATER, Action.REPLACE_COMMIT, plan, layout=LAYOUT_1)
    refused(table, UnsupportedTable, f"the pending clustering {LATER} resizes buckets")
    table.upsert(rows_of("new", part="p2"))


def test_rows_are_not_written_to_a_bucket_that_was_replaced(table: ArrowTable, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = write_module.choose_index

    def careless(*arguments: object) -> object:
        chosen = choose(*arguments)  # type: ignore[arg-type]
        return dataclasses.replace(chosen, index=dataclasses.replace(chosen.index, replaceable=True))

    monkeypatch.setattr(write_module, "choose_index", careless)  # as a writer that does not know better
    table.delete_partitions(["p1"])
    monkeypatch.undo()
    refused(table, UnsupportedTable, "of a bucket was replaced at")


# --- what it costs ---


def test_a_table_of_another_index_pays_nothing_for_the_look(fixture_table: Callable[[str], Path]) -> None:
    storage = CountingStorage(LocalStorage(fixture_table("mor_bucket_index")))
    table = ArrowTable(storage, {"hoodie.bucket.index.num.buckets": "4"})
    rows = user_rows(table.snapshot())
    storage.reset()
    table.upsert(rows)
    assert not [call for call in storage.calls if ".bucket_index" in str(call)]


def test_reads_and_checks_begin_no_partition(table: ArrowTable) -> None:
    settings, state = Settings.read(Options()), table.state()
    rows = rows_of("1", part="p9")
    checked = check(state, WriteOperation.UPSERT, rows.schema, settings)
    before = files_on_disk(table)
    found = MemoryBatch(keyed(rows, table_keygen(state))).locate(checked, checked.files_of({"p9"}))
    (task,) = found.planned.plan.tasks
    assert task.group.file_id in first_ring("p9", 2).file_ids
    assert files_on_disk(table) == before
