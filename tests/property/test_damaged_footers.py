"""A Parquet footer with any bytes changed is corrupt or readable: nothing else comes out of it."""

import io
import struct

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.formats.parquet.base_footer import base_footer, columns_of_file, footer_metadata, read_file_metadata
from hoodie.formats.parquet.bloom import BloomKind, add_keys, empty_filter


def small_file() -> bytes:
    keys = pa.array(["a", "b"])
    table = pa.table({"_hoodie_record_key": keys, "tags": [["x"], None]})
    filter = add_keys(empty_filter(BloomKind.DYNAMIC_V0, 2, 0.1), keys, 4)
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(footer_metadata("a", "b", filter))
    return sink.getvalue()


FILE = small_file()
FOOTER = struct.unpack("<I", FILE[-8:-4])[0] + 8


@given(st.lists(st.tuples(st.integers(1, FOOTER), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_footer_is_corrupt_or_readable(changes: list[tuple[int, int]]) -> None:
    data = bytearray(FILE)
    for place, value in changes:
        data[-place] = value
    try:
        metadata = read_file_metadata(io.BytesIO(bytes(data)), "p")
        base_footer(metadata, "p").bloom("p")
        columns = columns_of_file(metadata, "p")
    except (CorruptFile, UnsupportedTable):
        return
    assert isinstance(columns, pa.Schema)
