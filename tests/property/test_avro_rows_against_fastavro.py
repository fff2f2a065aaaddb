"""Random schemas and rows: the same bytes and the same values as fastavro, an independent implementation."""

import datetime as dt
import io
import itertools
import json
import struct
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptLogBlock
from hoodie.formats.avro.rows import decode_rows, encode_rows
from hoodie.formats.avro.schema import from_avro

Typed = tuple[Any, st.SearchStrategy[Any]]  # an Avro schema, and its values as fastavro takes them

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=70)
MOMENTS = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1))
MILLIS = MOMENTS.map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))


def utc(moments: st.SearchStrategy[dt.datetime]) -> st.SearchStrategy[dt.datetime]:
    return moments.map(lambda moment: moment.replace(tzinfo=dt.UTC))


LEAVES: list[Typed] = [
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("string", TEXT),
    ("bytes", st.binary(max_size=70)),
    ({"type": "string", "avro.java.string": "String"}, TEXT),
    ({"type": "int", "logicalType": "date"}, st.dates()),
    ({"type": "int", "logicalType": "time-millis"}, MILLIS.map(dt.datetime.time)),
    ({"type": "long", "logicalType": "time-micros"}, MOMENTS.map(dt.datetime.time)),
    ({"type": "long", "logicalType": "timestamp-millis"}, utc(MILLIS)),
    ({"type": "long", "logicalType": "timestamp-micros"}, utc(MOMENTS)),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, MILLIS),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, MOMENTS),
]


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    # fastavro spends a byte too many on -128, -32768...; Java does not, nor do we.
    unscaled = st.integers(-(10**precision) + 1, 10**precision - 1)
    odd = unscaled.filter(lambda value: value >= 0 or (-value) & (-value - 1) != 0)
    return odd.map(lambda value: Decimal((value < 0, tuple(map(int, str(abs(value)))), -scale)))


@st.composite
def typed(draw: st.DrawFn, names: Any, depth: int) -> Typed:
    def below() -> Typed:
        return draw(typed(names, depth - 1))

    kinds = ["leaf", "fixed", "enum", "decimal", "fixed decimal"] + ["record", "array", "map"] * (depth > 0)
    kind, name = draw(st.sampled_from(kinds)), f"n{next(names)}"
    schema: Any
    if kind == "leaf":
        schema, values = draw(st.sampled_from(LEAVES))
    elif kind == "fixed":
        size = draw(st.integers(1, 20))
        schema, values = {"type": "fixed", "name": name, "size": size}, st.binary(min_size=size, max_size=size)
    elif kind == "enum":
        symbols = [f"s{index}" for index in range(draw(st.integers(1, 70)))]
        schema, values = {"type": "enum", "name": name, "symbols": symbols}, st.sampled_from(symbols)
    elif kind in ("decimal", "fixed decimal"):
        precision = draw(st.integers(1, 38))
        scale = draw(st.integers(0, precision))
        logical = {"logicalType": "decimal", "precision": precision, "scale": scale}
        size = draw(st.integers(int(10**precision - 1).bit_length() // 8 + 1, 20))
        plain = {"type": "bytes"} if kind == "decimal" else {"type": "fixed", "name": name, "size": size}
        schema, values = {**plain, **logical}, decimals(precision, scale)
    elif kind == "array":
        item, values = below()
        schema, values = {"type": "array", "items": item}, st.lists(values, max_size=6)
    elif kind == "map":
        item, values = below()
        schema, values = {"type": "map", "values": item}, st.dictionaries(TEXT, values, max_size=4)
    else:
        fields = [(f"f{index}", below()) for index in range(draw(st.integers(1, 3)))]
        schema = {"type": "record", "name": name, "fields": [{"name": field, "type": one[0]} for field, one in fields]}
        values = st.fixed_dictionaries({field: one[1] for field, one in fields})
    nullable = draw(st.sampled_from(["no", "null first", "null last"]))
    if nullable == "no":
        return schema, values
    return (["null", schema] if nullable == "null first" else [schema, "null"]), st.none() | values


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    """A schema and rows; few different ones, repeated, since what matters is how many stand side by side."""
    names = itertools.count()
    fields = [(f"c{index}", draw(typed(names, 2))) for index in range(draw(st.integers(1, 4)))]
    schema = {
        "type": "record",
        "name": "row",
        "namespace": "hoodie.test",
        "fields": [{"name": name, "type": one[0]} for name, one in fields],
    }
    kinds = draw(st.lists(st.fixed_dictionaries({name: one[1] for name, one in fields}), min_size=1, max_size=4))
    order = draw(st.lists(st.integers(0, len(kinds) - 1), max_size=5))
    return json.dumps(schema), [kinds[index] for index in order * draw(st.sampled_from([1, 20]))]


def content_by_fastavro(schema_json: str, rows: list[dict[str, Any]]) -> bytes:
    schema = fastavro.parse_schema(json.loads(schema_json))
    parts = [struct.pack(">ii", 3, len(rows))]
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, row)
        parts.append(struct.pack(">i", len(out.getvalue())) + out.getvalue())
    return b"".join(parts)


@given(tables())
def test_values_and_bytes_are_those_of_fastavro(case: tuple[str, list[dict[str, Any]]]) -> None:
    schema, rows = case
    content = content_by_fastavro(schema, rows)
    table = decode_rows(content, schema)
    table.validate(full=True)
    assert table.schema.equals(from_avro(schema, "f"))
    assert table.to_pylist(maps_as_pydicts="strict") == rows
    assert encode_rows(table, schema) == content


@given(tables(), st.integers(0, 99), st.integers(0, 99))
def test_a_slice_of_a_table_is_encoded_as_its_rows_alone(
    case: tuple[str, list[dict[str, Any]]], start: int, length: int
) -> None:
    schema, rows = case
    table = decode_rows(content_by_fastavro(schema, rows), schema).slice(start, length)
    assert encode_rows(table, schema) == content_by_fastavro(schema, rows[start : start + length])


@given(tables(), st.data())
def test_damaged_bytes_give_rows_or_a_corrupt_block_and_nothing_else(
    case: tuple[str, list[dict[str, Any]]], data: st.DataObject
) -> None:
    schema, rows = case
    content = bytearray(content_by_fastavro(schema, rows))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(4, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(8, len(content))) :]
    found: pa.Table | CorruptLogBlock
    try:
        found = decode_rows(bytes(content), schema, "f.log", 50)
    except CorruptLogBlock as error:
        found = error
    if isinstance(found, CorruptLogBlock):
        assert found.offset is not None
        assert 50 <= found.offset <= 50 + len(content)
    else:
        found.validate()
