"""Batches of a base file know where in the file their rows are, whichever part of it is read."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.model.files import BaseFile, FileGroupId
from hoodie.reading.slices.reader import numbered_batches
from hoodie.testing.storage import MemoryStorage


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_rows_of_each_part_have_their_numbers_in_the_file(parts: int) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"n": pa.array(range(100), pa.int64())}), sink, row_group_size=9)
    storage, name = MemoryStorage(), "f-0_0-0-0_1.parquet"
    storage.create_new(name, sink.getvalue().to_pybytes())
    size = sink.getvalue().size
    file, step = BaseFile(FileGroupId("", "f-0"), "1", "0-0-0", size, name), -(-size // parts)
    found = []
    for begin in range(0, size, step):
        part = None if parts == 1 else range(begin, begin + step)
        for start, rows in numbered_batches(storage, file, pa.schema([("n", pa.int64())]), part):
            assert rows.column("n").to_pylist() == list(range(start, start + rows.num_rows))
            found += rows.column("n").to_pylist()
    assert found == list(range(100))
