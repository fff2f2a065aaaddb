"""Bulk insert as one stream: how many files it makes, how large they are, how many are open at once."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from threading import Barrier
from typing import TypeVar

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import AccessDenied
from hoodie.model.commit import WriteStat
from hoodie.storage.protocol import Storage
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.create import create
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage
from hoodie.writing.tasks import run as tasks
from hoodie.writing.tasks.run import write_stream
from hoodie.writing.write import check, start, writable_state
from support.trips import table_options

T = TypeVar("T")
OPTIONS = table_options("t", "id", partition="city")


def rows(first: int, count: int, city: str) -> pa.RecordBatch:
    """Rows of about 110 bytes that do not compress."""
    keys = [f"k{i:07d}" for i in range(first, first + count)]
    notes = [hashlib.sha512(key.encode()).hexdigest()[:80] for key in keys]
    cities = [city] * count
    names = ["id", "city", "note", "_hoodie_record_key", "_hoodie_partition_path"]
    return pa.record_batch([keys, cities, notes, keys, cities], names=names)


def bulk_insert(storage: Storage, batches: Iterable[pa.RecordBatch], **options: str) -> list[WriteStat]:
    """Write batches of one schema, each grouped by itself, as files of one task."""
    create(storage, OPTIONS)
    settings = Settings.read(Options({name.replace("_", "."): value for name, value in options.items()}))
    schema = rows(0, 1, "").schema.remove(4).remove(3)
    checked = check(writable_state(storage, settings), WriteOperation.BULK_INSERT, schema, settings)
    job = start(checked).with_plan(None)
    return write_stream(job.spec(), checked.rule, iter(batches), "0-0-0")


class OpenFiles(WrappedStorage):
    """Counts the outputs that are open."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.open = self.most = 0

    def mutate(self, name: str, path: str, call: Callable[[], T]) -> T:
        self.open += {"open_output": 1, "close_output": -1}.get(name, 0)
        self.most = max(self.most, self.open)
        return call()


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch is grouped and written by itself, and few files are open at once."""
    monkeypatch.setattr("hoodie.lookup.batch._GROUP_BYTES", 1)
    monkeypatch.setattr(tasks, "_HOLD_BYTES", 1)
    monkeypatch.setattr(tasks, "_MOST_OPEN", 3)


@pytest.mark.usefixtures("small_steps")
def test_partitions_that_come_one_after_the_other_have_a_file_each_and_few_are_open():
    storage = OpenFiles(MemoryStorage())
    stats = bulk_insert(storage, (rows(100 * city + 10 * i, 10, f"c{city}") for city in range(20) for i in range(3)))
    assert [(stat.partition, stat.num_writes) for stat in stats] == [(f"c{city}", 30) for city in range(20)]
    assert storage.most == 3
    assert storage.open == 0


def test_partitions_that_come_mixed_have_a_file_each_while_their_rows_fit_in_memory(monkeypatch):
    monkeypatch.setattr("hoodie.lookup.batch._GROUP_BYTES", 1)
    monkeypatch.setattr(tasks, "_MOST_OPEN", 3)
    storage = OpenFiles(MemoryStorage())
    stats = bulk_insert(storage, (rows(100 * i + 10 * city, 10, f"c{city}") for i in range(4) for city in range(9)))
    assert sorted((stat.partition, stat.num_writes) for stat in stats) == [(f"c{city}", 40) for city in range(9)]
    assert storage.most == 1


@pytest.mark.usefixtures("small_steps")
def test_partitions_that_come_back_after_many_others_get_another_file():
    storage = OpenFiles(MemoryStorage())
    stats = bulk_insert(storage, (rows(100 * i + 10 * city, 10, f"c{city}") for i in range(2) for city in range(5)))
    assert sorted((stat.partition, stat.num_writes) for stat in stats) == sorted([(f"c{c}", 10) for c in range(5)] * 2)
    assert len({stat.file_id for stat in stats}) == 10
    assert storage.most == 3


@pytest.mark.usefixtures("small_steps")
def test_a_stream_that_fails_leaves_no_file_of_any_partition():
    def failing() -> Iterator[pa.RecordBatch]:
        for city in range(5):
            yield rows(10 * city, 10, f"c{city}")
        raise ConnectionError("the source is gone")

    storage = MemoryStorage()
    with pytest.raises(ConnectionError):
        bulk_insert(storage, failing())
    # Two files were finished before; their markers tell a rollback of them.
    left = sorted(path for path in storage.snapshot() if path.endswith(".parquet"))
    assert [path.partition("/")[0] for path in left] == ["c0", "c1"]
    markers = {path for path in storage.snapshot() if ".marker." in path}
    assert all(any(path in marker for marker in markers) for path in left)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize(("step", "count"), [(1, 1200), (7, 3000), (400, 8000), (20_000, 8000)])
def test_files_have_their_size_however_few_rows_come_at_a_time(step, count):
    limit = 100_000
    options = {"hoodie_parquet_max_file_size": str(limit), "hoodie_parquet_compression_codec": "uncompressed"}
    batches = (rows(first, min(step, count - first), "oslo") for first in range(0, count, step))
    stats = bulk_insert(MemoryStorage(), batches, **options)
    assert sum(stat.num_writes for stat in stats) == count
    sizes = [stat.file_size for stat in stats]
    assert all(size <= 1.2 * limit for size in sizes), sizes
    assert all(size >= 0.7 * limit for size in sizes[:-1]), sizes


class TwoAtOnce(WrappedStorage):
    """Lets no file be opened before a second one is about to be."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.both = Barrier(2)

    def mutate(self, name: str, path: str, call: Callable[[], T]) -> T:
        if name == "open_output" and path.endswith(".parquet"):
            self.both.wait(60)
        return call()


def test_a_bulk_insert_in_this_process_writes_partitions_in_several_threads():
    inner = MemoryStorage()
    hoodie.create_table(storage=inner, record_key="id", partition_by="city")
    table = hoodie.open_table(storage=TwoAtOnce(inner))
    table.bulk_insert(pa.table({"id": [1, 2], "city": ["a", "b"]}), options={"hoodie.spark.driver.threads": 2})
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 2]


class ThirdFails(WrappedStorage):
    """Refuses the third data file."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.numbers = count(1)

    def mutate(self, name: str, path: str, call: Callable[[], T]) -> T:
        if name == "open_output" and path.endswith(".parquet") and next(self.numbers) == 3:
            raise PermissionError(f"{path} is refused")
        return call()


def test_a_bulk_insert_in_threads_that_fails_at_one_file_leaves_none():
    inner = MemoryStorage()
    hoodie.create_table(storage=inner, record_key="id", partition_by="city")
    table = hoodie.open_table(storage=ThirdFails(inner))
    rows = pa.table({"id": range(40), "city": [f"c{number % 20}" for number in range(40)]})
    with pytest.raises(AccessDenied, match="is refused"):
        table.bulk_insert(rows, options={"hoodie.spark.driver.threads": 2})
    assert table.count() == 0
    assert not [path for path in inner.snapshot() if path.endswith(".parquet")]
    assert table.bulk_insert(rows).inserted == 40
