"""Writes keep the record index: after each action its entries are the keys of the rows, each where its row is."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.api.arrow_keys import ArrowKeys
from hoodie.api.write_client import HoodieWriteClient
from hoodie.config.metadata import MetadataOptions
from hoodie.config.options import Options
from hoodie.errors import HoodieError, MetadataTableDropped, RecordIndexIgnored, UnsupportedTable, WriteConflict
from hoodie.lookup.context import lookup_for_read
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.partitions.record_index import groups_for
from hoodie.metadata.read import partition_slices
from hoodie.metadata.validate import validate_metadata
from hoodie.model.files import FileSlice
from hoodie.reading.row_keys import read_keys
from hoodie.recovery.restore import restore
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.metadata_table import create_metadata_table
from hoodie.services.metadata_upkeep import keep_up
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.metadata_tables import metadata_of
from support.nightly import by_day, covering
from support.trips import TRIPS

TABLE = {
    **TRIPS,
    "hoodie.table.services.enabled": "false",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
}
KINDS: Mapping[str, dict[str, str]] = {
    "COW": {},
    "MOR": {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
}
BY = {"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": "true"}
#: Options of a write that choose its index: each has the record index kept.
INDEXES: Mapping[str, dict[str, str]] = {
    "RECORD_INDEX": BY,
    "SIMPLE": {"hoodie.index.type": "SIMPLE"},
    "BLOOM": {"hoodie.index.type": "BLOOM"},
    "GLOBAL_SIMPLE": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "BUCKET": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
}
PARTITION = MetadataPartition.RECORD_INDEX


def rows(*pairs: tuple[str, str], ts: int = 1, deleted: bool = False) -> pa.Table:
    return pa.table(
        {
            "id": [p[0] for p in pairs],
            "city": [p[1] for p in pairs],
            "ts": pa.array([ts] * len(pairs), pa.int64()),
            "_hoodie_is_deleted": pa.array([deleted] * len(pairs)),
        }
    )


def table(kind: str = "COW", storage: Storage | None = None, **options: str) -> ArrowTable:
    made = ArrowTable.create(storage or MemoryStorage(), {**TABLE, **KINDS[kind], **options})
    made.upsert(rows(("a", "oslo"), ("b", "rome"), ("c", "oslo")))
    return made


def assert_kept(made: ArrowTable) -> None:
    """There is an entry for each key of a row, and for no other."""
    state = made.state()
    assert state.config.metadata_partitions == ("files", "record_index")
    told = validate_metadata(made.storage, state.config, state.timeline, read_keys=read_keys)
    assert told.problems == ()
    assert told.partitions["record_index"] == made.snapshot().num_rows


@pytest.fixture(autouse=True)
def nothing_is_dropped() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableDropped)
        warnings.simplefilter("error", RecordIndexIgnored)
        yield


# --- every action ---


def late_delete(made: ArrowTable) -> None:
    """A delete that loses, one that wins, and rows that lose against it and win."""
    made.upsert(rows(("a", "oslo"), ts=5))
    made.upsert(rows(("a", "oslo"), ts=3, deleted=True))
    assert_kept(made)
    made.upsert(rows(("c", "oslo"), ts=7, deleted=True))
    assert_kept(made)
    made.upsert(rows(("c", "oslo"), ts=6))
    assert_kept(made)
    made.upsert(rows(("c", "oslo"), ts=9))


def comes_back(made: ArrowTable) -> None:
    made.delete(rows(("a", "oslo"), ("c", "oslo")))
    assert_kept(made)
    made.upsert(rows(("a", "oslo"), ("x", "oslo"), ts=2))


def moving(made: ArrowTable) -> None:
    made.upsert(rows(("a", "rome"), ("b", "bern"), ts=2))
    assert_kept(made)
    made.upsert(rows(("a", "oslo"), ("b", "rome"), ts=3))


def compaction(made: ArrowTable) -> None:
    made.upsert(rows(("a", "oslo"), ts=2))
    made.delete(rows(("c", "oslo")))
    options = Options({**made.options, "hoodie.compact.inline.max.delta.commits": "1"})
    if made.state().config.merge_on_read:
        assert schedule_compaction(made.storage, Settings.read(options)) is not None
        made.upsert(rows(("b", "rome"), ("c", "oslo"), ("d", "oslo"), ts=3))  # beside the plan
        assert_kept(made)
        assert compact(made.storage, Settings.read(made.options)) is not None


def rolling_back(made: ArrowTable) -> None:
    rollback(made.storage, Settings.read(made.options), made.upsert(rows(("a", "oslo"), ("n", "new"), ts=2)).instant)
    assert_kept(made)
    rollback(made.storage, Settings.read(made.options), made.delete(rows(("a", "oslo"))).instant)


def failing(made: ArrowTable) -> None:
    for calls in (4, 8, 12, 16, 20, 24):
        made.fail_next(calls, None)
        try:
            made.upsert(rows(("a", "oslo"), (f"n{calls}", "new"), ts=calls))
        except (OSError, HoodieError):
            assert_kept(made)


def restoring(made: ArrowTable) -> None:
    saved = make_savepoint(made.storage, Settings.read(made.options)).instant
    made.upsert(rows(("n", "oslo"), ts=2))
    made.delete(rows(("a", "oslo")))
    restore(made.storage, Settings.read(made.options), saved)


def upkeep(made: ArrowTable) -> None:
    options = Options({**made.options, "hoodie.metadata.compact.max.delta.commits": "3"})
    for ts in range(2, 6):
        made.upsert(rows((f"k{ts}", "oslo"), ("a", "oslo"), ts=ts))
        made.delete(rows((f"k{ts - 1}", "oslo")))
        keep_up(made.storage, Settings.read(options))
    assert any(slice_.base for slice_ in index_slices(made))


ACTIONS: Mapping[str, Callable[[ArrowTable], object]] = {
    "upsert": lambda made: made.upsert(rows(("a", "oslo"), ("n", "new"), ts=2)),
    "insert": lambda made: made.insert(rows(("m", "oslo"))),
    "bulk_insert": lambda made: made.bulk_insert(rows(("m", "oslo"), ("n", "new"))),
    "delete": lambda made: made.delete(rows(("a", "oslo"), ("nobody", "oslo"))),
    "delete of all": lambda made: made.delete(rows(("a", "oslo"), ("b", "rome"), ("c", "oslo"))),
    "late delete": late_delete,
    "keys that come back": comes_back,
    "insert_overwrite": lambda made: made.insert_overwrite(rows(("a", "oslo"), ("y", "bern"))),
    "insert_overwrite_table": lambda made: made.insert_overwrite_table(rows(("x", "oslo"), ("b", "rome"))),
    "delete_partitions": lambda made: made.delete_partitions(["rome"]),
    "savepoint": lambda made: make_savepoint(made.storage, Settings.read(made.options)),
    "compaction": compaction,
    "rollback": rolling_back,
    "a failed write": failing,
    "restore": restoring,
    "upkeep": upkeep,
}


#: What each index does in its own way; the rest is done once.
OF_EACH = ("upsert", "late delete", "keys that come back")


#: By day one of both types for each, which compacts where there is a log; of what each index does, one in turn.
CASES = [(a, i) for a in ACTIONS for i in INDEXES if a in OF_EACH or i == "RECORD_INDEX"]


@pytest.mark.parametrize(
    ("action", "index", "kind"),
    by_day(
        [(*case, kind) for case in CASES for kind in KINDS],
        lambda case: (
            (case[2] == "MOR") == (case[0] == "compaction" or CASES.index(case[:2]) % 2 == 0)
            and (case[1] == "RECORD_INDEX" or case[0] == OF_EACH[list(INDEXES).index(case[1]) % 3])
        ),
    ),
)
def test_entries_follow_every_action(kind: str, action: str, index: str) -> None:
    made = table(kind, **INDEXES[index])
    assert_kept(made)
    ACTIONS[action](made)
    assert_kept(made)
    made.upsert(rows(("a", "oslo"), ("z", "bern"), ts=99))
    assert_kept(made)


@pytest.mark.parametrize("kind", KINDS)
def test_entries_follow_rows_that_change_partition(kind: str) -> None:
    made = table(kind, **BY)
    moving(made)
    assert_kept(made)


def index_slices(made: ArrowTable) -> Sequence[FileSlice]:
    metadata = metadata_of(made.state())
    return partition_slices(metadata, PARTITION)


def test_an_update_writes_no_entry() -> None:
    made = table(**BY)
    logs = [log.name for slice_ in index_slices(made) for log in slice_.logs]
    made.upsert(rows(("a", "oslo"), ("b", "rome"), ts=2))
    assert [log.name for slice_ in index_slices(made) for log in slice_.logs] == logs


# --- keys that the index cannot tell apart ---


@pytest.mark.parametrize("operation", ["bulk_insert", "insert"])
def test_a_key_that_is_inserted_twice_ends_the_record_index_before_the_commit(operation: str) -> None:
    made = table(**{"hoodie.parquet.small.file.limit": "0"})
    with pytest.warns(MetadataTableDropped, match="'a' is in file group .* already, and is written to"):
        getattr(made, operation)(rows(("a", "oslo"), ts=2))
    assert made.state().config.metadata_partitions == ("files",)
    assert made.snapshot().num_rows == 4
    again = Options({**made.options, "hoodie.metadata.record.index.enable": "true"})
    with pytest.raises(UnsupportedTable, match=r"the key 'a' is in rows of .* and "):
        create_metadata_table(made.storage, Settings.read(again))
    with pytest.warns(RecordIndexIgnored), pytest.warns(MetadataTableDropped, match="the key 'a' is in rows of"):
        made.upsert(rows(("a", "oslo"), ("b", "bern"), ts=4), options=BY)
    found = {(row["id"], row["city"], row["ts"]) for row in made.snapshot().to_pylist()}
    assert found == {("a", "oslo", 4), ("b", "bern", 4), ("c", "oslo", 1)}


def test_two_rows_of_one_key_in_a_batch_end_the_record_index() -> None:
    made = table()
    with pytest.warns(MetadataTableDropped, match="the key 'x' is in rows of"):
        made.bulk_insert(rows(("x", "oslo"), ("x", "rome")))
    assert made.snapshot().num_rows == 5


def test_a_key_of_another_partition_ends_the_record_index_with_an_index_by_partition() -> None:
    made = table(**{"hoodie.index.type": "SIMPLE"})
    with pytest.warns(MetadataTableDropped, match="a record index holds a key once"):
        made.upsert(rows(("a", "rome"), ts=2))
    assert made.snapshot().num_rows == 4


def test_of_two_writers_that_insert_a_key_the_second_is_refused(tmp_path: Path) -> None:
    """Their file groups differ, so that nothing else tells."""
    locked = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        "hoodie.parquet.small.file.limit": "0",
    }
    made = table("COW", LocalStorage(tmp_path), **BY, **locked)
    options = {**made.options, "hoodie.auto.commit": "false"}
    first, second = (HoodieWriteClient(str(tmp_path), options) for _ in "ab")
    instants = [client.start_commit("upsert") for client in (first, second)]
    results = [
        client.upsert(rows(("n", "oslo"), ts=ts), instant)
        for client, instant, ts in zip((first, second), instants, (2, 3), strict=True)
    ]
    first.commit(instants[0], results[0])
    with pytest.raises(WriteConflict, match="another writer has put the key 'n'"):
        second.commit(instants[1], results[1])
    second.rollback(instants[1])
    assert_kept(made)
    made.upsert(rows(("n", "oslo"), ts=4))
    assert_kept(made)
    assert made.snapshot().num_rows == 4


# --- building, removing ---


def test_the_index_type_builds_the_record_index_of_a_table_without_one() -> None:
    made = table("MOR", **{"hoodie.metadata.record.index.enable": "false"})
    made.upsert(rows(("a", "oslo"), ("d", "new"), ts=2))
    made.delete(rows(("b", "rome")))
    assert made.state().config.metadata_partitions == ()
    by = ArrowTable(
        made.storage, {key: value for key, value in {**made.options, **BY}.items() if "record.index.en" not in key}
    )
    by.upsert(rows(("e", "oslo"), ("b", "rome"), ts=3))
    assert_kept(by)
    assert len(index_slices(by)) == 3
    made.upsert(rows(("e", "oslo"), ts=4))
    assert made.state().config.metadata_partitions == ("files",)


def test_the_number_of_file_groups_is_by_hudis_rule() -> None:
    made = table(**{"hoodie.parquet.small.file.limit": "0"})
    for number in range(8):
        made.insert(rows(*((f"k{number}.{at}", "oslo") for at in range(5))))
    slices = made.slices()
    options = MetadataOptions(fewest_groups=1, most_groups=9, group_bytes=480, growth=2.0)
    assert groups_for(made.storage, slices, options) == 8  # of 43 keys, ten a group: floor(86 / 10)
    assert groups_for(made.storage, slices, replace(options, most_groups=4)) == 4
    assert groups_for(made.storage, slices, replace(options, fewest_groups=10)) == 10
    assert groups_for(made.storage, slices, MetadataOptions()) == 10


def test_a_record_index_is_built_anew_by_one_command() -> None:
    made = table(**BY)
    (base, *_) = [log.path for slice_ in index_slices(made) for log in slice_.logs]
    made.storage.delete(f".hoodie/metadata/{base}")
    assert create_metadata_table(made.storage, Settings.read(made.options), ("record_index",), again=True)
    assert_kept(made)


# --- of no use: keys are looked up in base files ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", ["RECORD_INDEX", "SIMPLE", "GLOBAL_SIMPLE"])
def test_a_write_falls_back_on_base_files_where_the_record_index_is_damaged(kind: str, index: str) -> None:
    made = table(kind, **INDEXES[index])
    made.upsert(rows(("d", "oslo"), ts=2))
    for slice_ in index_slices(made):
        for log in slice_.logs:
            path = f".hoodie/metadata/{log.path}"
            data = bytearray(made.storage.read(path))
            if len(data) > 200:
                data[-4300] ^= 0xFF  # within the compressed block
                made.storage.write(path, bytes(data))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made.upsert(rows(("a", "oslo"), ("d", "oslo"), ("e", "rome"), ts=3))
    assert {warning.category for warning in caught} == {
        MetadataTableDropped,
        *([RecordIndexIgnored] if index == "RECORD_INDEX" else []),
    }
    assert sorted(made.snapshot().column("id").to_pylist()) == ["a", "b", "c", "d", "e"]
    made.upsert(rows(("a" if index == "RECORD_INDEX" else "b", "rome"), ts=4))
    assert_kept(made)


def test_a_write_falls_back_on_base_files_while_the_record_index_cannot_be_built() -> None:
    made = table(**{"hoodie.metadata.record.index.enable": "false"})
    made.storage.create_new(".hoodie/20990101000000000.clean.requested", b"")
    by = ArrowTable(made.storage, {**TABLE, **BY})
    with pytest.warns(RecordIndexIgnored, match="the table has none"):
        by.upsert(rows(("a", "rome"), ("e", "oslo"), ts=3))
    assert sorted(by.snapshot().column("id").to_pylist()) == ["a", "b", "c", "e"]


# --- reads ---


@pytest.mark.parametrize(("kind", "index"), covering(list(KINDS), ["RECORD_INDEX", "SIMPLE", "GLOBAL_SIMPLE"]))
def test_reads_by_key_ask_the_record_index(kind: str, index: str) -> None:
    made = table(kind, **INDEXES[index])
    made.delete(rows(("c", "oslo")))
    asked = ArrowKeys(made.storage, made.options)
    keys = rows(("a", "oslo"), ("b", "rome"), ("c", "oslo"), ("x", "oslo")).select(["id", "city"])
    assert sorted(asked.read(keys).rows.to_arrow().column("id").to_pylist()) == ["a", "b"]
    assert sorted(asked.filter_exists(keys).to_arrow().column("id").to_pylist()) == ["c", "x"]
    context = lookup_for_read(made.state(), Settings.read(made.options))
    assert not context.by_file
    off = Options({**made.options, "hoodie.metadata.enable": "false"})
    assert lookup_for_read(made.state(), Settings.read(off)).by_file or index == "RECORD_INDEX"
