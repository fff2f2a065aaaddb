"""Keys are looked up in the record index: in the file groups that they hash to, and nothing that does not count."""

import pickle
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.metadata.keys import file_groups_of
from hoodie.metadata.locations import RecordLocator, open_locator
from hoodie.reading.snapshot import read_table
from hoodie.storage.protocol import Storage
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from support.metadata_tables import METADATA, table_files

T = TypeVar("T")

INDEX = f"{METADATA}record_index/"


class Recording(WrappedStorage):
    """Keeps the paths of all calls."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.paths: list[str] = []

    def observe(self, name: str, path: str, call: Callable[[], T]) -> T:
        self.paths.append(path)
        return call()


def locator_of(storage: Storage) -> RecordLocator:
    state = load_state(storage)
    locator = open_locator(storage, state.config, state.timeline)
    assert isinstance(locator, RecordLocator), locator
    return locator


@pytest.mark.parametrize(
    "name", ["mdt_cow", "mdt_mor_1group", "hudi-0.15/cow_metadata_table", "hudi-tables/v6_mor_nested_types"]
)
def test_each_row_of_a_real_table_is_where_its_record_index_says(name: str) -> None:
    storage = MemoryStorage(table_files(name))
    rows = read_table(load_state(storage))
    keys = pa.concat_arrays([rows.column("_hoodie_record_key").combine_chunks(), pa.array(["no such key"])])
    paths, file_ids = locator_of(storage).locate(keys)
    files = [file.lstrip(".").split("_")[0] for file in rows.column("_hoodie_file_name").to_pylist()]
    assert paths.to_pylist() == [*rows.column("_hoodie_partition_path").to_pylist(), None]
    assert file_ids.to_pylist() == [*files, None]


def test_only_file_groups_that_the_keys_hash_to_are_read() -> None:
    storage = Recording(MemoryStorage(table_files("hudi-0.15/cow_metadata_table")))
    locator = locator_of(storage)
    assert len(locator.slices) == 2
    key = "k00001"
    group = file_groups_of(pa.array([key]), 2)[0]
    storage.paths.clear()
    assert locator.locate(pa.array([key]))[0].to_pylist() == ["2024-03-02"]
    assert storage.paths
    assert all(INDEX in path and f"record-index-000{group}-0" in path for path in storage.paths)


def test_entries_of_an_instant_that_the_table_has_not_completed_do_not_count() -> None:
    files = dict(table_files("hudi-0.15/cow_metadata_table"))
    now = load_state(MemoryStorage(files))
    keys = pa.array([f"k{number:05}" for number in range(400)])
    counts = [len(read_table(now))]
    for newest in reversed([instant.requested for instant in now.timeline.commits][1:]):
        files = {path: data for path, data in files.items() if not is_completed(path, newest)}
        storage = MemoryStorage(files)
        there = read_table(load_state(storage)).column("_hoodie_record_key")
        paths, _ = locator_of(storage).locate(keys)
        assert pc.is_valid(paths).equals(pc.is_in(keys, value_set=there.combine_chunks()))
        counts.append(len(there))
    assert len(set(counts)) > 1


def is_completed(path: str, instant: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder == ".hoodie" and name.startswith(f"{instant}.") and name.count(".") == 1


def test_a_table_without_the_partition_says_so() -> None:
    storage = MemoryStorage(table_files("hudi-tables/v6_mor_with_services"))
    state = load_state(storage)
    assert open_locator(storage, state.config, state.timeline) == "the table has none"


def test_a_damaged_or_stale_record_index_says_why_it_is_of_no_use() -> None:
    files = dict(table_files("mdt_cow"))
    state = load_state(MemoryStorage(files))
    lost = {path: data for path, data in files.items() if not path.startswith(INDEX)}
    assert "no file group" in str(open_locator(MemoryStorage(lost), state.config, state.timeline))
    newest = state.timeline.commits[-1].requested
    behind = {path: data for path, data in files.items() if not path.startswith(f"{METADATA}.hoodie/{newest}.")}
    assert "behind" in str(open_locator(MemoryStorage(behind), state.config, state.timeline))


def test_a_locator_can_be_pickled() -> None:
    storage = MemoryStorage(table_files("mdt_cow"))
    locator = pickle.loads(pickle.dumps(locator_of(storage)))
    key = read_table(load_state(storage)).column("_hoodie_record_key")[0].as_py()
    assert locator.locate(pa.array([key]))[0].null_count == 0
