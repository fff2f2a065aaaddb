"""What actions change in file lists: as real Hudi wrote it for the same commits, cleans and compactions."""

import base64
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hoodie.formats.hfile.cells import HFileCells
from hoodie.formats.hfile.reader import open_hfile
from hoodie.formats.log.blocks import BlockKind, encode_block, read_blocks
from hoodie.formats.timeline.services import decode_clean_metadata, decode_rollback_metadata
from hoodie.metadata.changes import FileChanges, changes_of_commit, of_clean, of_listing, of_rollback
from hoodie.metadata.encode import base_file, data_block
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.listing import listed_folders
from hoodie.metadata.partitions.files import file_list_cells
from hoodie.metadata.record_schema import SCHEMA, STORED_SCHEMA
from hoodie.metadata.records import FILES, decode_records
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.instant import Action, State
from hoodie.model.plans import CleanedPartition, CleanMetadata, RollbackMetadata, RolledBackPartition
from hoodie.table.state import TableState, load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.timeline.load import read_commit
from hoodie.view.load import data_files, list_folders
from support.metadata_tables import ALL, METADATA, metadata_of, table_files

VECTORS = Path(__file__).parents[2] / "vectors"
SCHEMAS = json.loads((VECTORS / "mdt_schema.json").read_text())
#: How gzip begins on Java 16 and later: its last byte is 0 elsewhere.
NEWER_GZIP = bytes.fromhex("1f8b08000000000000ff")
WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)


def blocks_of_files(name: str) -> dict[str, pa.Table]:
    """The records of the partition `files` in log blocks, by instant."""
    blocks = {}
    for path, data in table_files(name).items():
        if path.startswith(METADATA + "files/") and ".log." in path and not path.endswith(".crc"):
            for block in read_blocks(data, path):
                if block.kind is BlockKind.HFILE_DATA:
                    blocks[block.header.instant] = decoded(bytes(block.content), path)
    return blocks


def decoded(content: bytes, path: str) -> pa.Table:
    file = open_hfile(lambda offset, length: content[offset : offset + length], len(content), path)
    return decode_records(file.cells(), MetadataPartition.FILES, file.info["schema"].decode(), path)


def cells_in(content: bytes) -> list[tuple[bytes, bytes]]:
    file = open_hfile(lambda offset, length: content[offset : offset + length], len(content), "f.hfile")
    return [pair for cells in file.cells() for pair in zip(cells.rows, cells.values(), strict=True)]


def entries(records: pa.Table) -> set[tuple[str, str, int, bool]]:
    return {(r["row"], r["name"], r["size"], r["deleted"]) for r in records.to_pylist()}


def changes_of(state: TableState, time: str) -> FileChanges | None:
    """By the table's timeline; None where another action is behind it, or the instant has left it."""
    for instant in state.timeline.instants:
        if instant.requested == time and instant.state is State.COMPLETED:
            if instant.action in WRITES:
                return changes_of_commit(read_commit(state.storage, state.timeline, instant))
            if instant.action is Action.CLEAN:
                path = state.timeline.path(instant)
                return of_clean(decode_clean_metadata(state.storage.read(path), path))
    return None


@pytest.mark.parametrize("name", ALL)
def test_actions_change_file_lists_as_hudi_wrote_it(name: str) -> None:
    state = load_state(MemoryStorage(table_files(name)))
    compared = 0
    for time, records in blocks_of_files(name).items():
        if (changes := changes_of(state, time)) is not None:
            assert entries(changes.records()) == entries(records), time
            compared += 1
    assert compared >= 2


def test_the_fixtures_hold_each_kind_of_action() -> None:
    actions = set()
    for name in ALL:
        state = load_state(MemoryStorage(table_files(name)))
        times = blocks_of_files(name).keys()
        actions |= {
            (i.action, read_commit(state.storage, state.timeline, i).compacted if i.action in WRITES else False)
            for i in state.timeline.instants
            if i.requested in times and i.state is State.COMPLETED
        }
    assert {Action.DELTA_COMMIT, Action.COMMIT, Action.REPLACE_COMMIT, Action.CLEAN} <= {a for a, _ in actions}


def test_the_schema_is_hudis_to_the_character() -> None:
    assert SCHEMAS["with_meta_fields"] == STORED_SCHEMA
    assert SCHEMAS["without_meta_fields"] == SCHEMA


@pytest.mark.parametrize("name", ALL)
def test_base_files_of_one_list_entry_each_are_hudis_bytes(name: str) -> None:
    """Lists with several entries have them in the order of a Java hash map."""
    compared = 0
    for path, content in table_files(name).items():
        if not path.startswith(METADATA + "files/") or not path.endswith(".hfile") or "cow_metadata_table" in name:
            continue
        records = decoded(content, path)
        ours = base_file(*file_list_cells(records, path.rpartition("/")[2]))
        assert entries(decoded(ours, path)) == entries(records)
        rows = records.column("row").to_pylist()
        if len(rows) == len(set(rows)):  # the empty list of partitions of a new table included
            compared += 1
            assert len(ours) == len(content)
            assert cells_in(ours) == cells_in(content)
            assert ours == content or NEWER_GZIP in content
    assert compared or "cow_metadata_table" in name


def test_a_log_block_reads_back_as_hudi_wrote_it() -> None:
    for name in ("mdt_cow", "mdt_mor_1group"):
        for path, data in table_files(name).items():
            if path.startswith(METADATA + "files/") and ".log." in path and not path.endswith(".crc"):
                for block in read_blocks(data, path):
                    if block.kind is not BlockKind.HFILE_DATA:
                        continue
                    records = decoded(bytes(block.content), path)
                    ours = data_block(block.header.instant, *file_list_cells(records))
                    assert ours.header == block.header
                    rows = records.column("row").to_pylist()
                    if len(rows) == len(set(rows)):
                        assert len(encode_block(ours)) == len(encode_block(block))
                        assert cells_in(bytes(ours.content)) == cells_in(bytes(block.content))
                    assert entries(decoded(bytes(ours.content), path)) == entries(records)


def test_cells_are_sorted_with_one_for_each_list() -> None:
    changes = FileChanges(("b", ""), ("gone",), {"b": {"y": 2, "x": 1}, "": {"z": 3}}, {"a": ("w",)})
    rows, values = file_list_cells(changes.records())
    assert rows.to_pylist() == [".", "__all_partitions__", "a", "b"]
    joined = b"".join(values.to_pylist())
    ends = np.cumsum([len(v) for v in values.to_pylist()])
    cells = HFileCells(memoryview(joined), tuple(r.encode() for r in rows.to_pylist()), np.append(0, ends[:-1]), ends)
    assert entries(decode_records([cells], MetadataPartition.FILES, STORED_SCHEMA, "f")) == {
        ("__all_partitions__", "b", 0, False),
        ("__all_partitions__", ".", 0, False),
        ("__all_partitions__", "gone", 0, True),
        ("b", "x", 1, False),
        ("b", "y", 2, False),
        (".", "z", 3, False),
        ("a", "w", 0, True),
    }


def test_a_commit_lists_its_files_and_the_change_logs_beside_them() -> None:
    stats = {
        "p": (
            WriteStat(file_id="f", path="p/f_1.parquet", partition="p", file_size=5, cdc_stats={"p/.f.cdc": 7}),
            WriteStat(file_id="g", path="p/.g_1.log.1_0-0-0", partition="p", file_size=3),
            WriteStat(file_id="g", path="p/.g_1.log.1_0-0-0", partition="p", file_size=9),
        )
    }
    changes = changes_of_commit(CommitMetadata(operation=Operation.UPSERT, stats=stats, replaced={"q": ("old",)}))
    assert changes == FileChanges(("p",), (), {"p": {"f_1.parquet": 5, ".f.cdc": 7, ".g_1.log.1_0-0-0": 9}})


def test_a_clean_takes_what_an_earlier_run_of_it_deleted_and_leaves_what_is_saved() -> None:
    part = CleanedPartition(policy="", planned=("a", "b", "c"), deleted=("b",), failed=("a", "c"), removed=True)
    metadata = CleanMetadata(start="1", partitions={"p": part})
    assert of_clean(metadata) == FileChanges(removed=("p",), deleted={"p": ("a", "b", "c")})
    assert of_clean(metadata, saved={"c"}) == FileChanges(removed=("p",), deleted={"p": ("a", "b")})


def test_a_rollback_lists_its_command_blocks_and_the_logs_that_stay() -> None:
    logs = RolledBackPartition(deleted=("x",), command_logs={".l2": 4}, failed_logs={".l1": 8})
    metadata = RollbackMetadata(start="1", partitions={"p": logs, "q": RolledBackPartition(deleted=("y",))})
    assert of_rollback(metadata) == FileChanges(added={"p": {".l1": 8, ".l2": 4}})
    assert of_rollback(metadata, {"p": {"x"}, "q": ("y",)}) == FileChanges(
        added={"p": {".l1": 8, ".l2": 4}}, deleted={"p": ("x",), "q": ("y",)}
    )


def test_a_rollback_by_hudi_is_followed_as_hudi_did() -> None:
    vector = json.loads((VECTORS / "mdt_rollback.json").read_text())
    metadata = decode_rollback_metadata(base64.b64decode(vector["rollback"]), "r.rollback")
    assert entries(of_rollback(metadata).records()) == entries(pa.Table.from_pylist(vector["entries"], schema=FILES))


@pytest.mark.parametrize("name", ALL)
def test_a_listing_makes_the_lists_that_hudi_has(name: str) -> None:
    state = load_state(MemoryStorage(table_files(name)))
    table = metadata_of(state)
    listed = listed_folders(table).marked
    folders = list_folders(state.storage).marked
    changes = of_listing(folders, data_files(folders))
    assert set(changes.partitions) == set(listed)
    assert {p: dict(files) for p, files in changes.added.items()} == {
        partition: {entry.name: entry.size for entry in files} for partition, files in listed.items()
    }


def test_no_change_is_no_record() -> None:
    assert FileChanges().records() == FILES.empty_table()
