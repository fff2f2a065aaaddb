"""Files of the metadata table are read with few requests, which a remote storage gets at once."""

import threading
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pytest

from hoodie.formats.hfile.reader import open_hfile
from hoodie.formats.hfile.writer import encode_hfile
from hoodie.metadata.file_ranges import FileRanges, joined_ranges, open_ranges
from hoodie.metadata.listing import FileList, listed_folders
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Entry, Storage
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from support.metadata_tables import table_files

T = TypeVar("T")
KIB = 1024


class Remote(WrappedStorage):
    """Keeps the requests, and makes as many of them wait for each other as `meeting` says."""

    def __init__(self, inner: Storage, meeting: int = 1) -> None:
        super().__init__(inner)
        self.requests: list[tuple[str, str]] = []
        self.meeting = threading.Barrier(meeting)

    @property
    def remote(self) -> bool:
        return True

    def observe(self, name: str, path: str, call: Callable[[], T]) -> T:
        self.requests.append((name, path))
        if name == "read_range":
            self.meeting.wait(20)
        return call()


def metadata_of(storage: Storage) -> MetadataTable:
    state = load_state(storage)
    table = open_metadata(storage, state.config, state.timeline)
    assert table is not None
    return table


@pytest.mark.parametrize(
    ("ranges", "requests"),
    [
        ([(0, 10)], 1),
        ([(0, 10), (10, 10), (20 + 64 * KIB, 10)], 1),  # what lies between costs less than a request
        ([(0, 10), (11 + 64 * KIB, 10)], 2),
        ([(at * 1000 * KIB, 1000 * KIB) for at in range(9)], 3),  # long requests take long
        ([(100, 10), (0, 10)], 2),  # of a damaged index
    ],
)
def test_ranges_that_lie_near_each_other_are_one_request(ranges: list[tuple[int, int]], requests: int) -> None:
    groups = joined_ranges(ranges)
    assert len(groups) == requests
    assert [range_ for group in groups for range_ in group] == ranges


def test_ranges_are_read_at_once_where_each_waits_for_a_network() -> None:
    data = bytes(range(256)) * 2 * KIB
    storage = Remote(MemoryStorage({"f": data}), meeting=3)  # with one after the other the barrier breaks
    ranges = [(100, 50), (200, 7), (200 * KIB, 30), (400 * KIB, 30)]
    assert FileRanges(storage, "f").many(ranges) == [data[at : at + length] for at, length in ranges]
    assert storage.requests == [("read_range", "f")] * 3


def test_a_part_of_a_file_is_read_from_where_it_begins(tmp_path) -> None:  # type: ignore[no-untyped-def]
    storage = LocalStorage(tmp_path)
    storage.write("f", bytes(range(200)))
    for whole in (0, 1000):
        part = open_ranges(storage, "f", 200, whole=whole).part(50)
        assert part(3, 2) == bytes([53, 54])
        assert part.many([(0, 1), (9, 2)]) == [bytes([50]), bytes([59, 60])]


def test_blocks_of_an_hfile_come_with_requests_at_once_and_nothing_else_of_it() -> None:
    keys = pa.array([f"{number:06}" for number in range(20_000)]).cast(pa.binary())
    values = pa.array([value.tobytes() for value in np.random.default_rng(0).integers(0, 255, (20_000, 100), np.uint8)])
    content = encode_hfile(keys, values, {}, block_size=8 * KIB)
    storage = Remote(MemoryStorage({"f": content}))
    read = open_ranges(storage, "f", len(content))
    file = open_hfile(read, len(content), "f", read.many)
    opening = len(storage.requests)
    storage.meeting = threading.Barrier(4)
    rows = [b"000003", b"000100", b"005000", b"010000", b"015000"]  # the first two are 10 KiB apart
    cells = list(file.rows(rows))
    assert [row for part in cells for row in part.rows] == rows
    assert [value for part in cells for value in part.values()] == [values[int(row)].as_py() for row in rows]
    assert len(storage.requests) - opening == 4


def test_all_files_of_a_table_are_listed_with_a_request_a_file_of_the_metadata_table() -> None:
    storage = Remote(MemoryStorage(table_files("mdt_cow")))
    table = metadata_of(storage)
    storage.requests.clear()
    folders = listed_folders(table)
    assert sum(map(len, folders.marked.values())) > 3
    names = [entry.name for entry in table.storage.list("files") if ".hfile" in entry.name or ".log." in entry.name]
    (_, listing), *reads, _ = storage.requests
    assert listing == ".hoodie/metadata/files"
    assert {name for name, _ in reads} == {"read"}
    assert len(reads) == len({path for _, path in reads}) <= len(names)


def test_a_file_list_gives_entries_by_name() -> None:
    listed = FileList(pa.array(["b", "c", "a"]), np.array([2, 3, 1]))
    entries = [Entry("a", 1, 0), Entry("b", 2, 0), Entry("c", 3, 0)]
    assert len(listed) == 3
    assert list(listed) == entries == listed[:]
    assert listed[-1] == entries[-1]
    assert listed == entries
    assert listed != entries[:2]
