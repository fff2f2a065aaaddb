import json
import struct
import time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import CorruptLogBlock, SchemaMismatch, UnsupportedTable
from hoodie.formats.avro.rows import decode_rows, encode_rows
from hoodie.formats.avro.schema import from_avro


def schema_of(*types: Any) -> str:
    fields = [{"name": f"c{index}", "type": kind} for index, kind in enumerate(types)]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def content_of(*rows: str, version: int = 3) -> bytes:
    parts = [struct.pack(">ii", version, len(rows))]
    for row in rows:
        data = bytes.fromhex(row)
        parts.append(struct.pack(">i", len(data)) + data)
    return b"".join(parts)


def column(kind: Any, *rows: str) -> list[Any]:
    values: list[Any] = decode_rows(content_of(*rows), schema_of(kind))["c0"].to_pylist()
    return values


def comes_back(table: pa.Table, schema: str) -> bool:
    """Whether encoding and decoding give the same values; whether a column may hold nulls is the schema's to say."""
    back = decode_rows(encode_rows(table, schema), schema)
    return bool(back.to_pydict() == table.to_pydict() and back.column_names == table.column_names)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_three_content_versions_are_read(version: int) -> None:
    assert decode_rows(content_of("02", version=version), schema_of("int")).to_pylist() == [{"c0": 1}]


def test_no_rows_give_an_empty_table_with_the_schema_s_columns() -> None:
    schema = schema_of("int", ["null", "string"])
    assert decode_rows(content_of(), schema).schema == from_avro(schema, "f")
    assert encode_rows(decode_rows(content_of(), schema), schema) == content_of()


def test_numbers_of_every_length_come_back() -> None:
    edges = sorted({sign * (2**bits + off) for bits in range(63) for off in (-1, 0, 1) for sign in (1, -1)})
    numbers = [*edges, 2**63 - 1, -(2**63)]
    table = pa.table({"c0": pa.array(numbers, pa.int64())})
    assert comes_back(table, schema_of("long"))


def test_either_order_of_null_and_type() -> None:
    assert column(["null", "int"], "00", "0206") == [None, 3]
    assert column(["int", "null"], "02", "0006") == [None, 3]
    assert column(["int"], "0006") == [3]
    for kind in (["null", "int"], ["int", "null"]):
        table = pa.table({"c0": pa.array([None, 3, None], pa.int32())})
        assert comes_back(table, schema_of(kind))


@pytest.mark.parametrize("copies", [1, 40])
def test_arrays_in_several_blocks_with_and_without_sizes(copies: int) -> None:
    rows = [
        "02" + "02" + "04" + "0406" + "00",
        "00",
        "03" + "04" + "0204" + "00",
        "01" + "02" + "02" + "02" + "04" + "00",
    ]
    assert column({"type": "array", "items": "int"}, *rows * copies) == [[1, 2, 3], [], [1, 2], [1, 2]] * copies
    texts = ["02" + "0261" + "03" + "0a" + "0262" + "046363" + "00", "00"]
    assert column({"type": "array", "items": "string"}, *texts * copies) == [["a", "b", "cc"], []] * copies


def test_long_and_short_arrays_side_by_side() -> None:
    rng = np.random.default_rng(3)
    lengths = [0, 1, 5000, 2, *rng.integers(0, 40, 200).tolist(), 3000]
    values = [["x" * (item % 11) if item % 13 else None for item in range(length)] for length in lengths]
    kind = {"type": "array", "items": ["null", "string"]}
    table = pa.table({"c0": pa.array(values, pa.list_(pa.field("element", pa.string())))})
    assert comes_back(table, schema_of(kind))


def test_items_whose_length_changes_are_not_taken_for_equal() -> None:
    # Zeros read from anywhere are an item of no bytes, so a wrong guess finds no malformed bytes, only other lengths.
    for change in (1, 60, 64, 65, 300):
        values = [[b"\0" * 4] * change + [b"\0" * 6] * 90 + [b"\0" * 4] * 400 + [b""] * 10 + [b"\0"]]
        table = pa.table({"c0": pa.array(values, pa.list_(pa.field("element", pa.binary())))})
        assert comes_back(table, schema_of({"type": "array", "items": "bytes"}))


def test_an_array_of_arrays_of_equal_items_is_guessed_right() -> None:
    values = [[["aaaa"] * 50 + ["bb"] * 50] * 30, [["cccc"]] * 200 + [[]] * 100 + [["dddd"]] * 200]
    kind = {"type": "array", "items": {"type": "array", "items": "string"}}
    inner = pa.list_(pa.field("element", pa.string(), nullable=False))
    table = pa.table({"c0": pa.array(values, pa.list_(pa.field("element", inner, nullable=False)))})
    assert comes_back(table, schema_of(kind))


def test_decimals_take_as_few_bytes_as_java_gives_them() -> None:
    values = [0, 1, -1, 127, 128, -128, -129, 32767, 32768, -32768, 10**37, -(10**37)]
    table = pa.table({"c0": pa.array([Decimal(value) for value in values], pa.decimal128(38, 0))})
    schema = schema_of({"type": "bytes", "logicalType": "decimal", "precision": 38})
    content = encode_rows(table, schema)
    lengths = [(value if value >= 0 else ~value).bit_length() // 8 + 1 for value in values]
    expected = [value.to_bytes(length, "big", signed=True) for value, length in zip(values, lengths, strict=True)]
    assert content == content_of(*(f"{2 * len(data):02x}" + data.hex() for data in expected))
    assert comes_back(table, schema)


@pytest.mark.parametrize("size", [2, 5, 16, 20])
def test_decimals_of_a_fixed_size(size: int) -> None:
    values = [Decimal(text) for text in ("0.00", "-0.01", "12.34", "-99.99")]
    fixed = {"type": "fixed", "name": "f", "size": size, "logicalType": "decimal", "precision": 4, "scale": 2}
    table = pa.table({"c0": pa.array(values, pa.decimal128(4, 2))})
    content = encode_rows(table, schema_of(fixed))
    assert content == content_of(*(int(value * 100).to_bytes(size, "big", signed=True).hex() for value in values))
    assert comes_back(table, schema_of(fixed))


def test_a_type_without_a_namespace_is_found_from_within_one_as_by_java() -> None:
    point = {"type": "record", "name": "point", "fields": [{"name": "x", "type": "int"}]}
    inner = {"type": "record", "name": "inner", "namespace": "n", "fields": [{"name": "c", "type": "point"}]}
    schema = schema_of(point, inner)
    assert decode_rows(content_of("0204"), schema).schema == from_avro(schema, "f")
    assert decode_rows(content_of("0204"), schema).to_pylist() == [{"c0": {"x": 1}, "c1": {"c": {"x": 2}}}]


@pytest.mark.parametrize(("word", "zone"), [("timestamp-millis", "UTC"), ("local-timestamp-millis", None)])
def test_milliseconds_stay_milliseconds(word: str, zone: str | None) -> None:
    kind = {"type": "long", "logicalType": word}
    table = decode_rows(content_of("02", "01"), schema_of(kind))
    assert table["c0"].type == pa.timestamp("ms", zone)
    assert table["c0"].cast(pa.int64()).to_pylist() == [1, -1]
    assert encode_rows(table, schema_of(kind)) == content_of("02", "01")


def test_a_type_that_is_named_again_is_the_same_type() -> None:
    point = {"type": "record", "name": "point", "namespace": "a", "fields": [{"name": "x", "type": "int"}]}
    schema = schema_of(point, ["null", "a.point"])
    assert decode_rows(content_of("020204"), schema).to_pylist() == [{"c0": {"x": 1}, "c1": {"x": 2}}]


def test_many_rows_of_many_sizes_come_back() -> None:
    sizes = [0, 1, 63, 64, 200, 9000]
    rows = 50_000
    text = pa.array(["x" * sizes[row % len(sizes)] if row % 7 else None for row in range(rows)])
    table = pa.table({"c0": text, "c1": pa.array(np.arange(rows))})
    schema = schema_of(["null", "string"], "long")
    assert comes_back(table, schema)


def test_slices_and_other_layouts_of_the_same_values_encode_alike() -> None:
    schema = schema_of(["null", "string"], ["null", {"type": "array", "items": ["null", "int"]}], ["null", "boolean"])
    lists = pa.array([[1], None, [2, None], []] * 5, pa.list_(pa.int32()))
    whole = pa.table({"c0": ["a", None, "ü", ""] * 5, "c1": lists, "c2": pa.array([True, None, False, True] * 5)})
    part = whole.slice(3, 9)
    expected = encode_rows(pa.concat_tables([part.slice(row, 1) for row in range(9)]), schema)
    assert encode_rows(part, schema) == expected
    assert encode_rows(part.select(["c2", "c0", "c1"]), schema) == expected
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        assert encode_rows(part.set_column(0, "c0", part["c0"].cast(pa.string()).cast(kind)), schema) == expected
    assert encode_rows(part.set_column(1, "c1", part["c1"].cast(pa.large_list(pa.int32()))), schema) == expected


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([1, None]), "long"),
        (pa.array([2**40, 1]), "int"),
        (pa.array(["1", "2"]), "int"),
        (pa.array([1, 2]), ["null", "string"]),
        (pa.array([1.0, 2.0]), "long"),
        (pa.array([[1], [None]], pa.list_(pa.int32())), {"type": "array", "items": "int"}),
        (pa.array([b"caf\xe9"]).view(pa.string()), "string"),
        (pa.array(["a", "z"]), {"type": "enum", "name": "e", "symbols": ["a", "b"]}),
        (pa.array([b"ab", b"abc"]), {"type": "fixed", "name": "f", "size": 2}),
        (pa.array([{"x": 1}]), {"type": "record", "name": "p", "fields": [{"name": "y", "type": "int"}]}),
        (pa.array([1, 2]), {"type": "record", "name": "p", "fields": [{"name": "y", "type": "int"}]}),
        (pa.array([1, 2]), {"type": "map", "values": "int"}),
    ],
)
def test_values_that_do_not_fit_the_schema_are_refused_by_name(values: pa.Array, kind: Any) -> None:
    with pytest.raises(SchemaMismatch, match="'c0'"):
        encode_rows(pa.table({"c0": values}), schema_of(kind))


def test_missing_and_surplus_columns_are_refused_by_name() -> None:
    table = pa.table({"c0": pa.array([1]), "extra": pa.array([1])})
    with pytest.raises(SchemaMismatch, match="extra"):
        encode_rows(table, schema_of("long"))
    with pytest.raises(SchemaMismatch, match="'c1'"):
        encode_rows(table.select(["c0"]), schema_of("long", "long"))
    with pytest.raises(SchemaMismatch, match="nope"):
        decode_rows(content_of("02"), schema_of("long"), columns=["c0", "nope"])


@pytest.mark.parametrize(
    "schema",
    [
        schema_of(["int", "string"]),
        schema_of(["null", "int", "string"]),
        schema_of({"type": "record", "name": "empty", "fields": []}),
        schema_of({"type": "bytes", "logicalType": "decimal", "precision": 39}),
        json.dumps({"type": "record", "name": "r", "fields": [{"name": "c0", "type": ["null", "r"]}]}),
    ],
)
def test_schemas_without_columns_of_their_own_are_unsupported(schema: str) -> None:
    with pytest.raises(UnsupportedTable):
        decode_rows(content_of("02"), schema)


@pytest.mark.parametrize(
    "schema",
    [
        *("", "{", '"int"', "[]", "7", '{"type":"record"}', '{"type": "record", "name": 7}', "[" * 100_000),
        *map(
            schema_of, ("nope", 7, {"type": "array"}, {"type": "fixed", "name": "f", "size": -1}, [], ["null", "null"])
        ),
    ],
)
def test_text_that_is_no_schema_is_an_error_of_the_block(schema: str) -> None:
    with pytest.raises(CorruptLogBlock, match=r"x\.log at byte 7"):
        decode_rows(content_of("02"), schema, "x.log", 7)
    with pytest.raises(SchemaMismatch):
        encode_rows(pa.table({"c0": [1]}), schema)


def test_a_schema_that_unfolds_without_end_is_refused_at_once() -> None:
    kind: Any = {"type": "record", "name": "r0", "fields": [{"name": "x", "type": "null"}]}
    for level in range(1, 60):
        fields = [{"name": "a", "type": kind}, {"name": "b", "type": f"r{level - 1}"}]
        kind = {"type": "record", "name": f"r{level}", "fields": fields}
    with pytest.raises(UnsupportedTable, match="columns"):
        decode_rows(content_of(""), schema_of(kind))


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("int", ""),  # nothing
        ("int", "0202"),  # too much
        ("int", "80"),  # runs out
        ("int", "feffffff1f"),  # 33 bits
        ("long", "ffffffffffffffffff02"),  # 65 bits
        ("long", "ffffffffffffffffffff01"),  # 11 bytes
        ("boolean", "02"),
        ("float", "000000"),
        ("double", "00000000000000"),
        ("string", "01"),  # negative length
        ("string", "0461"),  # runs out
        ("string", "02ff"),  # no UTF-8
        ("string", "feffffffffffffffff01"),  # 2^63 - 1 bytes
        ("bytes", "06"),
        (["null", "int"], "04"),  # branch 2
        (["null", "int"], "01"),  # branch -1
        (["int"], "02"),  # branch 1 of 1
        ({"type": "fixed", "name": "f", "size": 3}, "0000"),
        ({"type": "fixed", "name": "f", "size": 2**30}, "0000"),
        ({"type": "enum", "name": "e", "symbols": ["a"]}, "02"),
        ({"type": "enum", "name": "e", "symbols": ["a"]}, "01"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, "00"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, "22" + "00" * 17),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, "0627100f"),
        ({"type": "fixed", "name": "f", "size": 17, "logicalType": "decimal", "precision": 4}, "01" + "00" * 16),
        ({"type": "fixed", "name": "f", "size": 2, "logicalType": "decimal", "precision": 4}, "7fff"),
        ({"type": "array", "items": "int"}, "02"),
        ({"type": "array", "items": "int"}, "0202"),
        ({"type": "array", "items": "double"}, "0200"),
        ({"type": "array", "items": "null"}, "feffffffffffffffff01"),
        ({"type": "array", "items": "null"}, "feffffff0f00"),
        ({"type": "array", "items": ["null", "int"]}, "feffffff0f00"),
        ({"type": "array", "items": "double"}, "ffffffffffffffffff010000"),
        ({"type": "map", "values": "int"}, "02" + "02ff" + "02" + "00"),
        ({"type": "map", "values": ["null", "int"]}, "02" + "0261" + "04" + "00"),
    ],
)
@pytest.mark.parametrize("copies", [1, 40])
def test_malformed_rows_are_an_error_that_says_where(kind: Any, row: str, copies: int) -> None:
    schema = schema_of("int", kind)
    content = content_of(*["02" + row] * copies)
    with pytest.raises(CorruptLogBlock) as caught:
        decode_rows(content, schema, "x.log", 100)
    assert caught.value.path == "x.log"
    assert caught.value.offset is not None
    assert 100 <= caught.value.offset <= 100 + len(content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        content_of("02")[:7],
        content_of("02")[:-1],
        content_of("02") + b"\0",
        content_of("02", version=0),
        struct.pack(">ii", 3, -1),
        struct.pack(">ii", 3, 2**31 - 1),
        struct.pack(">iii", 3, 1, -1),
        struct.pack(">iii", 3, 1, 2**31 - 1) + b"\x02",
    ],
)
def test_a_content_whose_rows_do_not_fill_it_is_an_error(content: bytes) -> None:
    with pytest.raises(CorruptLogBlock):
        decode_rows(content, schema_of("int"), "x.log")


def test_a_newer_content_is_unsupported() -> None:
    with pytest.raises(UnsupportedTable, match=r"x\.log at byte 9: data block version 4"):
        decode_rows(content_of("02", version=4), schema_of("int"), "x.log", 9)


def test_a_string_that_reaches_into_the_next_row_is_an_error() -> None:
    for count in (2, 50):
        with pytest.raises(CorruptLogBlock):
            column("string", *["0861"] * count)


def test_an_array_of_many_small_blocks_takes_time_in_proportion() -> None:
    row = "0202" * 50_000 + "00"
    begin = time.monotonic()
    assert column({"type": "array", "items": "int"}, row) == [[1] * 50_000]
    assert time.monotonic() - begin < 10
