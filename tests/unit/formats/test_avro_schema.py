"""Table schemas as Avro JSON: real ones are read and written back to the letter, strange ones named."""

import json
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from hoodie.errors import CorruptFile, SchemaMismatch, UnsupportedTable
from hoodie.formats.avro.schema import decimal_size, from_avro, record_names, to_avro
from hoodie.formats.parquet.stored_types import in_doubt
from hoodie.schema.conform import conform
from hoodie.schema.schema import AVRO_DEFAULT, COMMENT, with_meta_fields, without_meta_fields
from hoodie.schema.types import TIMESTAMP, TIMESTAMP_MILLIS, TIMESTAMP_NTZ, TIMESTAMP_NTZ_MILLIS

REAL = json.loads((Path(__file__).parents[2] / "fixtures" / "avro_schemas.json").read_text())["schemas"]


def record(*fields: object, **more: object) -> str:
    return json.dumps({"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": list(fields), **more})


def column(kind: object, **more: object) -> str:
    return record({"name": "c", "type": kind, **more})


def only(kind: object) -> pa.Field:
    return from_avro(column(kind), "f").field("c")


def test_a_schema_that_hudi_wrote_is_written_back_to_the_letter() -> None:
    exact = [each for each in REAL if each["from"] in ("commit", "footer") and "hoodie." in each["schema"]]
    assert len(exact) > 85
    for each in exact:
        table = json.loads(each["schema"])["namespace"].removeprefix("hoodie.")
        assert to_avro(from_avro(each["schema"], each["table"]), table) == each["schema"]


@pytest.mark.parametrize("each", REAL, ids=lambda each: f"{each['table']}-{each['from']}")
def test_every_real_schema_keeps_its_columns_on_the_way_through_avro(each: dict[str, str]) -> None:
    schema = from_avro(each["schema"], each["table"])
    assert schema.names == [field["name"] for field in json.loads(each["schema"])["fields"]]
    again = to_avro(schema, "t")
    fastavro.parse_schema(json.loads(again))
    assert from_avro(again, "again").equals(schema, check_metadata=True)


def test_the_footer_schema_is_the_commits_with_the_meta_columns_in_front() -> None:
    by_table = {(each["table"], each["from"]): each["schema"] for each in REAL}
    commit, footer = by_table["cow_types", "commit"], by_table["cow_types", "footer"]
    assert to_avro(with_meta_fields(from_avro(commit, "c")), "cow_types") == footer
    assert without_meta_fields(from_avro(footer, "f")).equals(from_avro(commit, "c"))


def test_schemas_that_differ_in_a_comment_or_a_default_alone_have_texts_of_their_own() -> None:
    column = pa.field("n", pa.int64())
    marks = [None, {COMMENT: b"a"}, {COMMENT: b"b"}, {AVRO_DEFAULT: b"7"}]
    schemas = [pa.schema([column.with_metadata(mark)]) for mark in marks]
    assert all(schema.equals(schemas[0]) for schema in schemas)
    texts = [to_avro(schema, "t") for schema in schemas]
    assert len(set(texts)) == len(texts)
    assert json.loads(texts[2])["fields"][0]["doc"] == "b"


def test_a_table_name_is_made_an_avro_name() -> None:
    assert record_names("hudi-v6-table-complex-keygen_table") == (
        "hudi__v6__table__complex__keygen_table_record",
        "hoodie.hudi__v6__table__complex__keygen_table",
    )
    assert record_names("1a.ü") == ("__a_____record", "hoodie.__a____")


def test_a_decimal_has_as_many_bytes_as_its_digits_need() -> None:
    steps = {
        1: 1,
        2: 1,
        3: 2,
        5: 3,
        7: 4,
        9: 4,
        10: 5,
        12: 6,
        15: 7,
        16: 7,
        18: 8,
        19: 9,
        21: 9,
        31: 13,
        36: 16,
        38: 16,
    }
    assert {precision: decimal_size(precision) for precision in steps} == steps


def test_a_timestamp_without_zone_comes_back_through_an_attribute_that_others_skip() -> None:
    inside = pa.list_(pa.field("element", TIMESTAMP_NTZ))
    schema = pa.schema([pa.field("a", TIMESTAMP_NTZ), pa.field("b", pa.int64()), pa.field("c", inside)])
    text = to_avro(schema, "t")
    assert json.loads(text)["fields"][0]["type"][1] == {"type": "long", "hoodie.type": "timestamp_ntz"}
    assert "local-timestamp" not in text
    assert from_avro(text, "f").equals(schema)


def test_the_unit_and_the_form_of_times_that_others_declared_come_back() -> None:
    words = ["timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros"]
    longs = [{"type": "long", "logicalType": word} for word in words]
    inside = [{"type": "array", "items": ["null", long]} for long in longs]
    inside += [{"type": "map", "values": ["null", long]} for long in longs]
    fields = [{"name": f"c{at}", "type": ["null", kind], "default": None} for at, kind in enumerate([*longs, *inside])]
    text = json.dumps({"type": "record", "name": "t_record", "namespace": "hoodie.t", "fields": fields})
    assert json.loads(to_avro(from_avro(text, "f"), "t"))["fields"] == fields


def test_bytes_and_shorts_are_ints() -> None:
    fields = json.loads(to_avro(pa.schema([("a", pa.int8()), ("b", pa.int16())]), "t"))["fields"]
    assert [field["type"] for field in fields] == [["null", "int"], ["null", "int"]]


def test_a_type_without_an_avro_form_is_refused_with_its_column() -> None:
    schema = pa.schema([("a", pa.struct([("b", pa.list_(pa.duration("us")))]))])
    with pytest.raises(SchemaMismatch, match=r"a\.b\.element is interval"):
        to_avro(schema, "t")


@pytest.mark.parametrize(
    ("kind", "arrow"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, TIMESTAMP_MILLIS),
        ({"type": "long", "logicalType": "timestamp-micros"}, TIMESTAMP),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, TIMESTAMP_NTZ_MILLIS),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, TIMESTAMP_NTZ),
        ({"type": "int", "logicalType": "date"}, pa.date32()),
        ({"type": "int", "logicalType": "time-millis"}, pa.time32("ms")),
        ({"type": "long", "logicalType": "time-micros"}, pa.time64("us")),
        ({"type": "long", "logicalType": "no-such"}, pa.int64()),
        ({"type": "string", "logicalType": "uuid"}, pa.string()),
        ({"type": "string", "avro.java.string": "String"}, pa.string()),
        ({"type": {"type": "string"}}, pa.string()),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.string()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}, pa.decimal128(20, 3)),
        ({"type": "fixed", "name": "F", "size": 5, "logicalType": "decimal", "precision": 9}, pa.decimal128(9, 0)),
        ({"type": "fixed", "name": "F", "size": 16}, pa.binary(16)),
    ],
)
def test_avro_types_of_other_writers_have_a_column_type(kind: object, arrow: pa.DataType) -> None:
    assert only(kind) == pa.field("c", arrow, nullable=False)
    assert only(["null", kind]) == only([kind, "null"]) == pa.field("c", arrow)


def test_a_named_type_may_be_used_again_by_name() -> None:
    point = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
    again = from_avro(
        record(
            {"name": "a", "type": point},
            {"name": "b", "type": ["null", "Point"]},
            {"name": "c", "type": {"type": "array", "items": "hoodie.t.Point"}},
            {"name": "d", "type": {"type": "fixed", "name": "x.y.Id", "size": 4}},
            {"name": "e", "type": "x.y.Id"},
        ),
        "f",
    )
    kind = pa.struct([pa.field("x", pa.int32(), False)])
    assert again.field("a").type == again.field("b").type == again.field("c").type.value_type == kind
    assert again.field("e").type == pa.binary(4)
    assert to_avro(again, "t").count('"name":"x"') == 3  # written inline each time


def test_a_default_other_than_null_is_kept_and_fills_rows_of_files_without_the_column() -> None:
    text = record(
        {"name": "id", "type": "string"},
        {"name": "_hoodie_is_deleted", "type": "boolean", "default": False},
        {"name": "grade", "type": ["string", "null"], "default": "B"},
    )
    schema = from_avro(text, "f")
    assert json.loads(to_avro(schema, "t")) == json.loads(text)
    rows = conform(pa.table({"id": ["k"]}), schema)
    assert rows.to_pylist() == [{"id": "k", "_hoodie_is_deleted": False, "grade": "B"}]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (["null", "int", "string"], "union of null, int, string"),
        (["int", "string"], "union of int, string"),
        ("null", "type null"),
        (["null"], "union of null"),
        ({"type": "record", "name": "R", "fields": [{"name": "r", "type": ["null", "R"]}]}, r"c\.r holds its own"),
        ({"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}, "duration"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, "nanoseconds"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 0}, "39 digits"),
    ],
)
def test_an_avro_type_that_is_no_column_type_names_file_and_column(kind: object, words: str) -> None:
    with pytest.raises(UnsupportedTable, match=rf"some/file: column c.*{words}|some/file: column {words}"):
        from_avro(column(kind), "some/file")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]" * 3,
        '"string"',
        "{}",
        '{"type":"record","name":"r"}',
        '{"type":"record","name":"r","fields":[1]}',
        '{"type":"record","name":"r","fields":[{"type":"int"}]}',
        '{"type":"record","name":"r","fields":[{"name":"a"}]}',
        '{"type":"record","fields":[]}',
        record({"name": "a", "type": "int"}, {"name": "a", "type": "int"}),
        column("NoSuchType"),
        column(7),
        column({"type": "array"}),
        column([]),
        column(["null", "null", "int"]),
        column({"type": "fixed", "name": "F"}),
        column({"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 2, "scale": 3}),
        column({"type": "bytes", "logicalType": "decimal"}),
        "[" * 100_000,
    ],
)
def test_what_is_no_avro_record_schema_is_a_corrupt_file(text: str) -> None:
    with pytest.raises(CorruptFile, match="some/file"):
        from_avro(text, "some/file")


def test_endless_nesting_is_refused() -> None:
    kind: object = "int"
    for _ in range(100):
        kind = {"type": "array", "items": kind}
    with pytest.raises(UnsupportedTable, match="nested more than"):
        from_avro(column(kind), "f")


def test_times_without_a_zone_of_later_versions_are_local_timestamps_of_our_own() -> None:
    inside = pa.list_(pa.field("element", TIMESTAMP_NTZ))
    schema = pa.schema([pa.field("a", TIMESTAMP_NTZ), pa.field("b", pa.int64()), pa.field("c", inside)])
    text = to_avro(schema, "t", local_times=True)
    local = {"type": "long", "logicalType": "local-timestamp-micros", "hoodie.type": "timestamp_ntz"}
    fields = json.loads(text)["fields"]
    assert [fields[0]["type"][1], fields[2]["type"][1]["items"][1]] == [local, local]
    assert from_avro(text, "f").equals(schema, check_metadata=True)
    assert not any(map(in_doubt, from_avro(text, "f")))  # no footer is read for them
    assert to_avro(from_avro(text, "f"), "t") == to_avro(schema, "t")  # as after a downgrade
