"""Reads list files from the metadata table where it tells the state of the table, and from the storage where not."""

import builtins
import warnings
from collections.abc import Callable, Collection
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.metadata import MetadataOptions
from hoodie.config.read import DEFAULT_READ, MissingFileOptions, ReadSettings
from hoodie.errors import HoodieError, MetadataTableIgnored, MissingFileIgnored
from hoodie.reading.complete_view import listed_view
from hoodie.reading.snapshot import read_table
from hoodie.storage import Entry, Storage, WrappedStorage
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.view.published import snapshot_files
from support.metadata_tables import ALL, METADATA, facts, table_files

OFF = ReadSettings(metadata=MetadataOptions(enable=False))
V8 = "hudi-tables/v8_mor_avro_8_inserts_3_updates_1_delete"
NEWEST = "20261122021825272"


class Requests(WrappedStorage):
    """Counts what a storage without recursive listing is asked: a tree is one listing a folder."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.listed: list[str] = []
        self.calls = 0

    def observe(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        self.calls += 1
        return call()

    def list(self, folder: str = "") -> list[Entry]:
        self.listed.append(folder)
        return super().list(folder)

    def list_tree(self, folder: str = "", skip: Collection[str] = ()) -> dict[str, builtins.list[Entry]]:
        tree = super().list_tree(folder, skip)
        self.listed += tree
        self.calls += len(tree)
        return tree


def rows_of(storage: Storage, settings: ReadSettings = DEFAULT_READ) -> list[dict[str, Any]]:
    return sorted(read_table(load_state(storage), settings=settings).to_pylist(), key=str)


@pytest.fixture(autouse=True)
def _warnings_are_errors() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableIgnored)
        yield


@pytest.mark.parametrize("name", [*ALL, V8])
def test_rows_are_the_same_with_the_metadata_table_on_and_off(name: str) -> None:
    storage = MemoryStorage(table_files(name))
    found = listed_view(load_state(storage), None, snapshot_files())
    assert found.metadata is not None
    assert listed_view(load_state(storage), None, snapshot_files(), OFF).metadata is None
    assert rows_of(storage) == rows_of(storage, OFF)


@pytest.mark.parametrize("name", ["mdt_cow", "mdt_mor_1group"])
def test_rows_are_those_that_hudi_read(name: str) -> None:
    rows = rows_of(MemoryStorage(table_files(name)))
    expected = facts(name)["snapshot"]
    columns = ["id", "part", "ts", "name", "_hoodie_commit_time", "_hoodie_file_name"]
    assert sorted([row[column] for column in columns] for row in rows) == sorted(
        [row[column] for column in columns] for row in expected
    )


@pytest.mark.parametrize("name", ["mdt_cow", "mdt_mor_1group"])
def test_rows_as_of_every_commit_are_the_same_on_and_off(name: str) -> None:
    storage = MemoryStorage(table_files(name))
    for instant in load_state(storage).timeline.commits:
        tables = [read_table(load_state(storage), as_of=instant.requested, settings=how) for how in (DEFAULT_READ, OFF)]
        assert sorted(tables[0].to_pylist(), key=str) == sorted(tables[1].to_pylist(), key=str)


def test_no_folder_of_data_is_listed() -> None:
    storage = Requests(MemoryStorage(table_files("mdt_cow")))
    rows_of(storage)
    assert {folder for folder in storage.listed if not folder.startswith(".hoodie")} == set()
    storage.listed.clear()
    rows_of(storage, OFF)
    assert set(storage.listed) >= {"p1", "p2", "p3"}
    assert not any(folder.startswith(METADATA[:-1]) for folder in storage.listed)


def test_a_table_of_many_partitions_is_listed_with_fewer_calls() -> None:
    storage, folders = MemoryStorage(), 60
    many(storage, folders)
    counts = {}
    for how in (DEFAULT_READ, OFF):
        counting = Requests(storage)
        state = load_state(counting)
        counting.calls = 0
        view = listed_view(state, None, snapshot_files(), how).view
        assert len(view.groups) == folders
        counts[how is OFF] = counting.calls
    assert counts[False] < 10
    assert counts[True] >= folders


def many(storage: MemoryStorage, folders: int) -> None:
    """Make a table with a file in each of many partitions, and its metadata table."""
    from hoodie.formats.hfile.writer import encode_hfile
    from hoodie.formats.log.blocks import BlockKind, BlockMap, HeaderKey, LogBlock, encode_block
    from support.metadata_writing import SCHEMA, file_list_record

    base = table_files("mdt_cow")
    kept = (".hoodie/hoodie.properties", f".hoodie/{NEWEST}.commit")
    for path in kept:
        storage.write(path, base[path])
    storage.write(f".hoodie/{NEWEST}.commit", b'{"partitionToWriteStats": {}}')
    names = {f"part-{n:03d}": f"{n:08d}-0000-0000-0000-000000000000-0_0-1-1_{NEWEST}.parquet" for n in range(folders)}
    for partition, name in names.items():
        storage.write(f"{partition}/.hoodie_partition_metadata", b"commitTime=0\npartitionDepth=1\n")
        storage.write(f"{partition}/{name}", b"x" * 100)
    records = {"__all_partitions__": file_list_record(1, dict.fromkeys(names, (0, False)))}
    records |= {partition: file_list_record(2, {name: (100, False)}) for partition, name in names.items()}
    keys = sorted(records)
    content = encode_hfile(
        pa.array(keys).cast(pa.binary()), pa.array([records[key] for key in keys]), {"schema": SCHEMA.encode()}
    )
    header = BlockMap(((HeaderKey.INSTANT_TIME, NEWEST), (HeaderKey.SCHEMA, SCHEMA)))
    log = encode_block(LogBlock(BlockKind.HFILE_DATA, header, content))
    storage.write(f"{METADATA}files/.files-0000-0_00000000000000010.log.1_0-1-1", log)
    first = next(path for path in base if "files/files-0000-0_0-5-4_00000000000000010" in path)
    storage.write(first, base[first])
    for time in ("00000000000000010", NEWEST):
        storage.write(f"{METADATA}.hoodie/{time}.deltacommit", b"{}")


# --- never trusted blindly ---


def without(*words: str) -> Callable[[dict[str, bytes]], object]:
    def change(files: dict[str, bytes]) -> None:
        chosen = [path for path in files if any(word in path for word in words)]
        assert chosen
        for path in chosen:
            del files[path]

    return change


def replaced(word: str, content: Callable[[bytes], bytes]) -> Callable[[dict[str, bytes]], object]:
    def change(files: dict[str, bytes]) -> None:
        chosen = [path for path in files if word in path]
        assert chosen
        for path in chosen:
            files[path] = content(files[path])

    return change


def flipped(data: bytes) -> bytes:
    middle = len(data) // 3
    return data[:middle] + bytes([data[middle] ^ 0x40]) + data[middle + 1 :]


DAMAGE = {
    "gone": (without(METADATA), "no completed instant"),
    "behind": (without(f"{METADATA}.hoodie/{NEWEST}.deltacommit"), "behind"),
    "ahead": (
        lambda files: [files.pop(p) for p in list(files) if p.startswith(".hoodie/20261122021814939")],
        "no longer has",
    ),
    "without its file group": (without("files/files-0000", "files/.files-0000"), "no file group"),
    "a base file cut off": (replaced("files/files-0000-0_0-271", lambda data: data[:-9]), "no HFile"),
    "a base file with a bit turned over": (replaced("files/files-0000-0_0-271", flipped), "checksum"),
    "a log cut off": (replaced("files/.files-0000-0_20261122021804014001.log.2", lambda d: d[:-9]), "cut short"),
    "a log with a bit turned over": (replaced("files/.files-0000-0_20261122021804014001.log.2", flipped), ""),
    "a log gone": (without("files/.files-0000-0_20261122021804014001.log.2"), "lacks p1/"),
    "the first of its logs gone": (without("files/.files-0000-0_20261122021804014001.log.1"), "log file 1 beside"),
    "the newest base file gone": (without("files/files-0000-0_0-271"), "the base file of instant .* is gone"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_one_that_is_damaged_or_out_of_date_gives_a_warning_and_the_right_rows(what: str) -> None:
    change, word = DAMAGE[what]
    files = dict(table_files("mdt_cow"))
    change(files)
    storage = MemoryStorage(files)
    with pytest.warns(MetadataTableIgnored, match=word) as caught:
        rows = rows_of(storage)
    assert len(caught) == 1
    assert rows == rows_of(storage, OFF)


def test_each_byte_turned_over_gives_a_warning_or_the_same_files() -> None:
    """In the files of the metadata table that a listing reads."""
    files = table_files("mdt_cow")
    right = rows_of(MemoryStorage(files), OFF)
    chosen = [path for path in files if f"{METADATA}files/" in path and "20261122021804014001" in path]
    assert len(chosen) == 3
    for path in chosen:
        for at in range(0, len(files[path]), 211):
            data = bytearray(files[path])
            data[at] ^= 1 << (at % 8)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MetadataTableIgnored)
                view = listed_view(load_state(MemoryStorage({**files, path: bytes(data)})), None, snapshot_files()).view
            listed = {base.path for group in view.groups.values() for base in group.bases}
            assert listed >= {f"{row['_hoodie_partition_path']}/{row['_hoodie_file_name']}" for row in right}


def test_a_write_of_ours_that_left_it_behind_is_noticed(tmp_path: Any) -> None:
    """As a library would that knows nothing of metadata tables; ours removes it, or refuses to write."""
    path = tmp_path / "table"
    for name, data in table_files("mdt_cow").items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    kept = {name: data for name, data in table_files("mdt_cow").items() if name.startswith(METADATA)}
    properties = (path / ".hoodie/hoodie.properties").read_bytes()
    table = hoodie.open_table(str(path), options={"hoodie.metadata.enable": False})
    changed = table.snapshot().to_arrow().select(["id", "ts", "v", "name", "part"])
    table.upsert(
        changed.slice(0, 3).set_column(3, "name", pa.array(["x", "y", "z"])).set_column(1, "ts", pa.array([99] * 3))
    )
    table.delete(changed.slice(4, 1).select(["id", "part"]))
    for name, data in kept.items():  # bring it back, with the properties that name it
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    (path / ".hoodie/hoodie.properties").write_bytes(properties)
    with pytest.warns(MetadataTableIgnored, match="behind: 2 instants"):
        rows = hoodie.open_table(str(path)).snapshot().to_arrow()
    assert {"x", "y", "z"} <= set(rows.column("name").to_pylist())
    assert len(rows) == len(changed) - 1
    off = hoodie.open_table(str(path), options={"hoodie.metadata.enable": "false"}).snapshot().to_arrow()
    assert sorted(rows.to_pylist(), key=str) == sorted(off.to_pylist(), key=str)


def test_a_missing_file_that_is_to_be_ignored_is_looked_for_on_the_storage() -> None:
    """The metadata table still lists it."""
    files = dict(table_files("mdt_cow"))
    gone = next(path for path in files if path.startswith("p3/") and "20261122021814939" in path)
    del files[gone]
    ignoring = ReadSettings(missing=MissingFileOptions(ignore=True))
    with pytest.warns(MissingFileIgnored, match=gone):
        rows = rows_of(MemoryStorage(files), ignoring)
    assert gone not in {f"{row['_hoodie_partition_path']}/{row['_hoodie_file_name']}" for row in rows}
    with pytest.raises((FileNotFoundError, HoodieError)):
        rows_of(MemoryStorage(files))


def test_warnings_can_be_made_errors() -> None:
    files = dict(table_files("mdt_cow"))
    without(METADATA)(files)
    with pytest.raises(MetadataTableIgnored):
        rows_of(MemoryStorage(files))
    assert not issubclass(MetadataTableIgnored, HoodieError)
