"""The footer of a base file: what a writer adds to it and a reader finds, whole or damaged."""

import io
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFile, InvalidInput, UnsupportedTable
from hoodie.formats.parquet.base_footer import (
    BLOOM,
    BLOOM_TYPE,
    MAX_KEY,
    MIN_KEY,
    columns_of_file,
    footer_metadata,
    java_min_max,
    read_file_metadata,
    read_footer,
)
from hoodie.formats.parquet.bloom import BloomKind, add_keys, empty_filter

PATH = "city=x/f.parquet"
KEYS = pa.array(["b", "a", "ü"])
FILTER = add_keys(empty_filter(BloomKind.DYNAMIC_V0, 10, 0.01), KEYS, 100)


def parquet(metadata: dict[str, str], table: pa.Table | None = None) -> bytes:
    table = pa.table({"_hoodie_record_key": KEYS, "fare": [1.0, 2.0, 3.0]}) if table is None else table
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(metadata)
    return sink.getvalue()


def test_a_reader_finds_what_a_writer_adds() -> None:
    data = parquet(footer_metadata("a", "ü", FILTER))
    footer = read_footer(io.BytesIO(data), PATH)
    assert (footer.min_key, footer.max_key, footer.rows) == ("a", "ü", 3)
    assert footer.bloom(PATH) == FILTER


def test_the_columns_of_a_file_are_those_that_it_was_written_with() -> None:
    columns = columns_of_file(read_file_metadata(io.BytesIO(parquet({"writer": "é"})), PATH), PATH)
    assert columns == pa.schema({"_hoodie_record_key": pa.string(), "fare": pa.float64()})
    assert columns.metadata is None


def test_a_native_file_is_read_as_a_python_file_is() -> None:
    data = parquet(footer_metadata("a", "ü", FILTER))
    assert read_footer(pa.BufferReader(data), PATH) == read_footer(io.BytesIO(data), PATH)


def test_only_a_dynamic_filter_carries_its_type_code() -> None:
    simple = add_keys(empty_filter(BloomKind.SIMPLE, 10, 0.01), KEYS, 0)
    assert footer_metadata("a", "b", FILTER)[BLOOM_TYPE] == "DYNAMIC_V0"
    values = footer_metadata("a", "b", simple)
    assert BLOOM_TYPE not in values
    assert read_footer(io.BytesIO(parquet(values)), PATH).bloom(PATH) == simple


def test_a_file_without_rows_has_no_key_range_but_a_filter() -> None:
    empty = empty_filter(BloomKind.DYNAMIC_V0, 10, 0.01)
    assert footer_metadata(None, None, empty).keys() == {BLOOM, BLOOM_TYPE}
    none = pa.table({"_hoodie_record_key": pa.array([], pa.string())})
    footer = read_footer(io.BytesIO(parquet(footer_metadata(None, None, empty), none)), PATH)
    assert (footer.rows, footer.min_key, footer.max_key) == (0, None, None)


def test_an_empty_key_is_a_bound_and_not_a_missing_one() -> None:
    footer = read_footer(io.BytesIO(parquet({MIN_KEY: "", MAX_KEY: "b"})), PATH)
    assert (footer.min_key, footer.max_key) == ("", "b")


def test_a_file_of_another_writer_has_neither_filter_nor_range() -> None:
    footer = read_footer(io.BytesIO(parquet({})), PATH)
    assert (footer.min_key, footer.max_key, footer.bloom_text, footer.bloom_code) == (None, None, "", "")
    assert footer.bloom(PATH) is None


def test_the_filter_of_a_very_old_writer_is_found_under_its_old_name() -> None:
    values = footer_metadata("a", "b", add_keys(empty_filter(BloomKind.SIMPLE, 10, 0.01), KEYS, 0))
    footer = read_footer(io.BytesIO(parquet({"com.uber.hoodie.bloomfilter": values[BLOOM]})), PATH)
    assert footer.bloom_text == values[BLOOM]


def test_a_footer_longer_than_the_first_read_is_read_whole() -> None:
    metadata = read_file_metadata(io.BytesIO(parquet({"long": "x" * 2_000_000})), PATH)
    assert metadata.metadata[b"long"] == b"x" * 2_000_000


def test_a_footer_of_default_size_costs_one_read() -> None:
    class Counting(io.BytesIO):
        reads = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.reads += 1
            return super().read(size)

    filter = empty_filter(BloomKind.DYNAMIC_V0, 60000, 1e-9)
    file = Counting(b"x" * 1_000_000 + parquet(footer_metadata("a", "b", filter)))
    read_footer(file, PATH)
    assert file.reads == 1


def test_a_broken_filter_is_no_trouble_until_it_is_asked_for() -> None:
    footer = read_footer(io.BytesIO(parquet({BLOOM: "AAAA"})), PATH)
    with pytest.raises(CorruptFile, match=PATH):
        footer.bloom(PATH)


@pytest.mark.parametrize("keep", [0, 4, 11, 12, 100, -1, -8])
def test_a_file_cut_short_is_corrupt_and_named(keep: int) -> None:
    with pytest.raises(CorruptFile, match=PATH):
        read_footer(io.BytesIO(parquet({})[:keep]), PATH)


def test_a_footer_length_beyond_the_file_is_corrupt() -> None:
    data = parquet({})
    with pytest.raises(CorruptFile, match="in a file of"):
        read_footer(io.BytesIO(data[:-8] + struct.pack("<I4s", len(data), b"PAR1")), PATH)


def test_a_footer_of_zeros_is_corrupt() -> None:
    data = parquet({})
    (length,) = struct.unpack("<I", data[-8:-4])
    with pytest.raises(CorruptFile, match="broken Parquet footer"):
        read_footer(io.BytesIO(data[: -8 - length] + bytes(length) + data[-8:]), PATH)


def test_an_encrypted_file_is_unsupported_and_not_corrupt() -> None:
    with pytest.raises(UnsupportedTable, match=PATH):
        read_footer(io.BytesIO(parquet({})[:-4] + b"PARE"), PATH)


def test_an_error_of_the_storage_passes_through() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise TimeoutError("storage")

    with pytest.raises(TimeoutError):
        read_footer(Broken(parquet({})), PATH)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["b", "a", "ab"], ("a", "b")),
        (["only"], ("only", "only")),
        (["é", "z"], ("z", "é")),
        (["\U0001f600", "z"], ("z", "\U0001f600")),
        (["\uffee", "z"], ("z", "\uffee")),
        (["\uffee", "\U0001f600"], ("\U0001f600", "\uffee")),
        (["a\uffee", "a\U0001f600", "a\ud7ff"], ("a\ud7ff", "a\uffee")),
        (["", "a"], ("", "a")),
    ],
)
def test_bounds_are_taken_in_the_order_of_java(keys: list[str], expected: tuple[str, str]) -> None:
    assert java_min_max(pa.array(keys)) == expected
    assert java_min_max(pa.chunked_array([[key] for key in keys])) == expected


def test_no_keys_have_no_bounds_and_null_is_refused() -> None:
    assert java_min_max(pa.array([], pa.string())) is None
    with pytest.raises(InvalidInput):
        java_min_max(pa.array(["a", None]))
