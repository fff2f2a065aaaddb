"""A file of an object store, read by ranges: what is requested, and that the bytes are right whatever is asked for."""

import os
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.storage.ranged_input import RangedInput

BIG = os.urandom(3 << 20)


class Store:
    """One file, and the ranges that were requested of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.ranges: list[tuple[int, int]] = []
        self.asked = 0
        self.lock = threading.Lock()

    def fetch(self, start: int, end: int) -> bytes:
        with self.lock:
            self.ranges.append((start, end))
        return self.data[start:end]

    def ask(self) -> int:
        self.asked += 1
        return len(self.data)

    def open(self, size: int | None = None) -> RangedInput:
        return RangedInput("f", self.fetch, self.ask, size)

    def listed(self) -> RangedInput:
        return self.open(len(self.data))


def test_nothing_is_requested_before_the_first_read():
    store = Store(BIG)
    with store.listed() as file:
        file.seek(5)
        assert file.tell() == 5
        assert file.seek(-1, 2) == len(BIG) - 1
    assert store.ranges == []
    assert not store.asked


def test_the_size_is_asked_for_once_where_no_listing_told_it():
    store = Store(BIG)
    with store.open() as file:
        assert file.seek(-4, 2) == len(BIG) - 4
        assert file.read() == BIG[-4:]
        assert file.read() == b""
    assert store.asked == 1


def test_a_small_file_comes_with_one_request():
    store = Store(BIG[:700_000])
    with store.listed() as file:
        file.seek(-8, 2)
        assert file.read(8) == BIG[699_992:700_000]
        file.seek(0)
        assert file.read() == BIG[:700_000]
    assert store.ranges == [(0, 700_000)]


def test_an_empty_file_needs_no_request():
    store = Store(b"")
    assert store.listed().read() == b""
    assert store.ranges == []


def test_a_whole_file_in_small_pieces_takes_few_requests():
    data = os.urandom(20 << 20)
    store = Store(data)
    with store.listed() as file:
        pieces = list(iter(lambda: file.read(10_000), b""))
    assert b"".join(pieces) == data
    assert len(store.ranges) <= 10
    assert sum(end - start for start, end in store.ranges) <= len(data) * 1.05


def test_two_columns_of_a_file_take_its_footer_and_a_request_each():
    columns = {f"c{n}": np.random.default_rng(n).random(400_000) for n in range(6)}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, row_group_size=400_000, compression="none", use_dictionary=False)
    store = Store(sink.getvalue().to_pybytes())
    with store.listed() as file:
        read = pq.ParquetFile(file, pre_buffer=True).read(["c1", "c4"])
    assert read.equals(pa.table(columns).select(["c1", "c4"]))
    assert len(store.ranges) == 3
    assert sum(end - start for start, end in store.ranges) < 0.5 * len(store.data)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 3 << 20),
    st.lists(st.tuples(st.integers(0, 3 << 20), st.one_of(st.integers(0, 1 << 20), st.just(-1))), max_size=12),
    st.booleans(),
)
def test_any_reads_give_what_a_file_in_memory_gives(size, reads, sequential):
    store = Store(BIG[:size])
    with store.listed() as file:
        for position, count in reads:
            if not sequential:
                file.seek(position)
            begin = file.tell()
            expected = BIG[begin:size] if count < 0 else BIG[begin : min(size, begin + count)]
            assert file.read(count) == expected
            assert file.tell() == begin + len(expected)
    assert all(0 <= start < end <= size for start, end in store.ranges)


def test_several_threads_read_columns_at_once():
    sink = pa.BufferOutputStream()
    table = pa.table({f"c{n}": np.arange(300_000) * (n + 1) for n in range(6)})
    pq.write_table(table, sink, row_group_size=50_000, compression="none")
    store = Store(sink.getvalue().to_pybytes())
    with store.listed() as file:  # one reader, whose own threads read columns: a reader is not for several callers
        assert pq.ParquetFile(file, pre_buffer=False).read(use_threads=True).equals(table)


@pytest.mark.parametrize("size", [600_000, 2_000_000])
def test_a_file_that_is_shorter_than_listed_is_damaged_and_not_cut(size):
    store = Store(BIG[: size // 2])
    file = store.open(size)
    file.seek(-8, 2)
    with pytest.raises(OSError, match=f"f ends at byte .*, and {size} bytes were listed") as raised:
        file.read(8)
    assert raised.value.errno is None


def test_a_missing_file_is_not_found_at_the_first_read():
    def gone(*_: int) -> bytes:
        raise FileNotFoundError("f")

    file = RangedInput("f", gone, lambda: 0, 10)
    with pytest.raises(FileNotFoundError):
        file.read(3)


def test_a_closed_file_is_not_read():
    file = Store(BIG).listed()
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.read(1)
    with pytest.raises(ValueError, match="no position -1"):
        Store(BIG).listed().seek(-1)
