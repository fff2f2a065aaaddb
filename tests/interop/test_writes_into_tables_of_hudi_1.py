"""Writes into tables of versions 8 and 9 that Hudi 1.0.2, 1.1.1 and 1.2.0 made: rows, instants and files after them."""

import hashlib
import io
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import TableMismatch, UnsupportedTable, WriteConflict
from hoodie.formats.log.blocks import HeaderKey, read_block_headers
from hoodie.formats.timeline.schemas import COMMIT_METADATA
from hoodie.metadata.keeping.drop import not_kept
from hoodie.metadata.validate import validate_metadata
from hoodie.model.files import LogFile, parse_data_file
from hoodie.model.instant import Action, State
from hoodie.model.meta import META_COLUMNS
from hoodie.storage.local import LocalStorage
from hoodie.table.state import TableState, load_state
from hoodie.timeline.load import read_commit
from support.hudi_1_tables import Row, noting, sorted_rows, table_names, unpack
from support.nightly import nightly

#: What is refused, and what the error says.
REFUSED = {
    "hudi12_cow_blob": "BLOB",
    "hudi12_cow_vector": "VECTOR",
    "hudi12_mor_blob": "BLOB",
    "v8_cow_virtual_keys": "populate.meta.fields",
    "v8_mor_clustering_pending": "the pending clustering",
}
#: Bucket indexes whose number Hudi does not record.
BUCKETS = {"v8_mor_bucket": "2", "v9_mor_bucket": "2", "v9_mor_nbcc": "1"}
#: Each form of log, plan and setting once; the others are alike.
BY_DAY = {
    "v8_cow_archived",
    "v8_mor_compaction_pending",
    "v9_cow_cdc",
    "v9_mor_bucket",
    "v9_mor_cdc",
    "v9_mor_merge_into_partial",
    "v9_mor_multi_ordering",
    "v9_mor_payload_partial",
    "v9_mor_upgraded",
}
WRITTEN = [name if name in BY_DAY else nightly(name) for name in table_names() if name not in REFUSED]


def plain(rows: pa.Table) -> list[Row]:
    """Rows without the columns of their writer, sorted."""
    return sorted_rows([{k: v for k, v in row.items() if k not in META_COLUMNS} for row in noting(rows)])


def options_of(name: str) -> dict[str, str]:
    return {"hoodie.bucket.index.num.buckets": BUCKETS[name]} if name in BUCKETS else {}


def state_of(path: Path) -> TableState:
    return load_state(LocalStorage(path))


def own_columns(rows: pa.Table) -> pa.Table:
    return rows.drop_columns([column for column in META_COLUMNS if column in rows.column_names])


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.filterwarnings("ignore::hoodie.errors.HoodieWarning")
def test_rows_that_are_written_deleted_and_compacted_are_as_they_were(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    table = hoodie.open_table(path, options=options_of(name))
    before = table.snapshot(meta=True).to_arrow()
    rows = own_columns(before)

    instant = table.upsert(rows.slice(0, 2)).instant
    assert plain(table.snapshot(meta=True).to_arrow()) == plain(before)
    times = table.snapshot(meta=True).to_arrow().column("_hoodie_commit_time").to_pylist()
    assert times.count(instant) == min(2, rows.num_rows)
    if rows.num_rows > 2:
        assert table.delete(rows.slice(2, 1)).deleted == 1
        rest = pa.concat_tables([before.slice(0, 2), before.slice(3)])
        assert plain(table.snapshot(meta=True).to_arrow()) == plain(rest)
        table.upsert(rows.slice(2, 1))
        assert plain(table.snapshot(meta=True).to_arrow()) == plain(before)
    if state_of(path).config.merge_on_read:
        table.schedule_compaction()
        while table.compact() is not None:
            pass
        assert plain(table.snapshot(meta=True).to_arrow()) == plain(before)
    table.rollback()
    assert plain(table.snapshot(meta=True).to_arrow()) == plain(before) or rows.num_rows > 2  # the row that was deleted
    check_files(path)


def check_files(path: Path) -> None:
    """Names and contents of what was written are those of the table's version."""
    state, storage = state_of(path), LocalStorage(path)
    assert not [entry.name for entry in storage.list(".hoodie") if entry.name[:1].isdigit()]
    assert {entry.name for entry in storage.list(".hoodie/metadata")} <= {".hoodie", *state.config.metadata_partitions}
    told = validate_metadata(storage, state.config, state.timeline)
    assert told is None or told.problems == ()
    assert not_kept(storage, state.config) == ()
    times = [time for i in state.timeline.instants for time in (i.requested, i.completed) if time]
    saved = [i for i in state.timeline.instants if i.action is Action.SAVEPOINT]
    assert len(times) - len(saved) == len(set(times))
    newest = state.timeline.commits[-1]
    (record,) = fastavro.reader(io.BytesIO(storage.read(state.timeline.path(newest))))
    fields = next(f for f in COMMIT_METADATA["fields"] if f["name"] == "partitionToWriteStats")["type"][1]
    names = [field["name"] for field in fields["values"]["items"]["fields"]]
    stats = [stat for part in record["partitionToWriteStats"].values() for stat in part]
    assert all(list(stat) == names and len(names) == 31 for stat in stats)
    for commit in state.timeline.commits[-2:]:
        for partition, part in read_commit(storage, state.timeline, commit).stats.items():
            for stat in part:
                check_log(state, commit.requested, partition, stat.path or "")


def check_log(state: TableState, instant: str, partition: str, path: str) -> None:
    """A log is named after its write, and says which base file its positions are of."""
    log = parse_data_file(partition, path.rpartition("/")[2], 0)
    if not isinstance(log, LogFile):
        return
    assert log.base_instant == instant
    data = state.storage.read(path)
    for head in read_block_headers(lambda at, length: data[at : at + length], len(data), path):
        of = head.header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)
        assert head.header.instant == instant
        assert (of is None) == (head.header.get(HeaderKey.RECORD_POSITIONS) is None)


def digest(path: Path) -> dict[str, str]:
    files = [file for file in path.rglob("*") if file.is_file()]
    return {str(file.relative_to(path)): hashlib.md5(file.read_bytes()).hexdigest() for file in files}


@pytest.mark.parametrize("name", sorted(REFUSED))
@pytest.mark.filterwarnings("ignore::hoodie.errors.HoodieWarning")
def test_a_table_that_cannot_be_written_is_refused_and_stays_as_it_is(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    table = hoodie.open_table(path)
    rows = own_columns(table.snapshot(meta=True).to_arrow()).slice(0, 1)
    before = digest(path)
    with pytest.raises((UnsupportedTable, WriteConflict), match=REFUSED[name]):
        table.upsert(rows)
    if name == "v8_mor_clustering_pending":  # what was begun is taken back, on the record
        state = state_of(path)
        assert state.timeline.instants[-1].action is Action.ROLLBACK
        assert state.timeline.pending({Action.DELTA_COMMIT}) == ()
        return
    assert digest(path) == before


def test_a_write_without_it_removes_the_metadata_table_with_both_of_its_properties(tmp_path: Path) -> None:
    path = unpack("v9_mor_part", tmp_path)
    table = hoodie.open_table(path, options={"hoodie.metadata.enable": "false"})
    rows = own_columns(table.snapshot(meta=True).to_arrow()).slice(0, 1)
    assert (path / ".hoodie" / "metadata").exists()
    table.upsert(rows)
    text = (path / ".hoodie" / "hoodie.properties").read_text()
    assert "hoodie.table.metadata.partitions" not in text
    assert not (path / ".hoodie" / "metadata").exists()
    assert not (path / ".hoodie" / ".hoodie.properties.crc").exists()


def test_reads_and_dry_runs_keep_the_metadata_table(tmp_path: Path) -> None:
    path = unpack("v9_mor_part", tmp_path)
    before = digest(path)
    table = hoodie.open_table(path)
    table.clean(dry_run=True)
    table.rollback(dry_run=True)
    table.snapshot(meta=True).to_arrow()
    assert digest(path) == before


def test_a_failed_write_of_hudi_is_rolled_back_by_deleting_its_logs(tmp_path: Path) -> None:
    path = unpack("v9_mor_failed_write", tmp_path)
    state = state_of(path)
    failed = state.timeline.pending({Action.DELTA_COMMIT})
    table = hoodie.open_table(path)
    rows = table.snapshot(meta=True).to_arrow()
    table.upsert(own_columns(rows).slice(0, 1))
    now = state_of(path)
    assert plain(table.snapshot(meta=True).to_arrow()) == plain(rows)
    for instant in failed:
        assert now.timeline.find(instant.requested, instant.action) is None
        assert not list(path.rglob(f"*_{instant.requested}.*"))
    assert all(i.state is State.COMPLETED for i in now.timeline.instants)


def test_a_table_keeps_its_version_whatever_a_write_names(tmp_path: Path) -> None:
    path = unpack("v8_cow_part", tmp_path)
    before = digest(path)
    with pytest.raises(TableMismatch, match=r"hoodie\.table\.version is '8' in the table, not '9'"):
        hoodie.open_table(path, options={"hoodie.write.table.version": "9"})
    assert digest(path) == before
