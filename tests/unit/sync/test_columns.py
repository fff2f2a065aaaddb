"""Columns as Hive and Spark have them: types, names, and which changes Hive can follow."""

import json

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from hoodie.errors import SyncRefused
from hoodie.sync.columns import changed_columns, hive_columns, hive_type, spark_properties, spark_schema


@pytest.mark.parametrize(
    ("kind", "hive", "spark"),
    [
        (pa.bool_(), "boolean", "boolean"),
        (pa.int32(), "int", "integer"),
        (pa.int64(), "bigint", "long"),
        (pa.float32(), "float", "float"),
        (pa.float64(), "double", "double"),
        (pa.string(), "string", "string"),
        (pa.binary(), "binary", "binary"),
        (pa.binary(16), "binary", "binary"),
        (pa.date32(), "date", "date"),
        (pa.decimal128(20, 3), "decimal(20,3)", "decimal(20,3)"),
        (pa.timestamp("us", "UTC"), "bigint", "timestamp"),
        (pa.timestamp("ms", "UTC"), "bigint", "timestamp"),
        (pa.timestamp("us"), "bigint", "long"),
        (pa.time32("ms"), "int", "integer"),
        (pa.time64("us"), "bigint", "long"),
    ],
)
def test_each_type_has_its_word(kind: pa.DataType, hive: str, spark: str) -> None:
    assert hive_type(kind) == hive
    (field,) = json.loads(spark_schema(pa.schema([("c", kind)]), []))["fields"]
    assert field == {"name": "c", "type": spark, "nullable": True, "metadata": {}}


def test_only_an_instant_in_time_is_a_timestamp_when_asked_for() -> None:
    assert hive_type(pa.timestamp("us", "UTC"), timestamps=True) == "timestamp"
    assert hive_type(pa.list_(pa.timestamp("us", "UTC")), timestamps=True) == "array<timestamp>"
    assert hive_type(pa.timestamp("us"), timestamps=True) == "bigint"


def test_nested_types_are_written_whole_with_names_that_hive_parses() -> None:
    inner = pa.struct([("a-b", pa.int32()), ("c$d", pa.list_(pa.string()))])
    assert hive_type(pa.map_(pa.string(), inner)) == "map<string,struct<a_b:int,c_dollar_d:array<string>>>"


def test_spark_reads_the_schema_of_the_properties_back() -> None:
    nested = pa.struct([pa.field("x", pa.int32(), nullable=False), ("y", pa.map_(pa.string(), pa.float64()))])
    columns = [
        pa.field("id", pa.string(), nullable=False),
        ("city", pa.string()),
        ("l", pa.list_(nested)),
        ("n", nested),
    ]
    properties = spark_properties(pa.schema(columns), ["city", "land"], 50, "4.0.0")
    count = int(properties["spark.sql.sources.schema.numParts"])
    text = "".join(properties[f"spark.sql.sources.schema.part.{number}"] for number in range(count))
    read = StructType.fromJson(json.loads(text))
    assert read.simpleString() == (
        "struct<id:string,l:array<struct<x:int,y:map<string,double>>>,n:struct<x:int,y:map<string,double>>,"
        "city:string,land:string>"
    )
    assert not read["id"].nullable
    assert [properties[f"spark.sql.sources.schema.partCol.{number}"] for number in range(2)] == ["city", "land"]


@pytest.mark.parametrize(
    ("schema", "keys", "problem"),
    [
        ([("id", pa.string()), ("ID", pa.string())], [], "cannot tell it from the column id"),
        ([("a,b", pa.string())], [], "no column names with ','"),
        ([("m", pa.map_(pa.int32(), pa.string()))], [], "a map with keys of int32"),
        ([("i", pa.duration("s"))], [], "has no counterpart in Hive"),
        ([("p", pa.list_(pa.string()))], ["p"], "Hive partitions by simple types alone"),
    ],
)
def test_columns_that_hive_cannot_hold_are_refused(schema: list[object], keys: list[str], problem: str) -> None:
    with pytest.raises(SyncRefused, match=problem):
        hive_columns(pa.schema(schema), keys)


def test_partition_columns_are_keys_and_text_where_the_schema_lacks_them() -> None:
    schema = pa.schema([("_hoodie_commit_time", pa.string()), ("id", pa.string()), ("day", pa.date32())])
    columns, keys = hive_columns(schema, ["day", "hour"])
    assert (list(columns), keys) == (["_hoodie_commit_time", "id"], {"day": "date", "hour": "string"})
    assert list(hive_columns(schema, ["day"], omit_meta=True)[0]) == ["id"]


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ({"a": "int"}, {"A": "int"}, False),
        ({"a": "int", "b": "string"}, {"b": "string", "a": "int"}, False),
        ({"a": "int"}, {"a": "bigint"}, True),
        ({"a": "float"}, {"a": "double"}, True),
        ({"a": "struct<x:int>"}, {"a": "struct<x:string,y:int>"}, True),
        ({"a": "int"}, {"a": "int", "b": "int"}, True),
        ({"a": "int", "b": "int"}, {"a": "int"}, True),
    ],
)
def test_which_columns_are_replaced(old: dict[str, str], new: dict[str, str], changed: bool) -> None:
    assert changed_columns(old, new, "db.t") is changed


@pytest.mark.parametrize(("old", "new"), [("bigint", "int"), ("int", "string"), ("int", "double"), ("date", "bigint")])
def test_a_type_that_hive_cannot_follow_is_refused(old: str, new: str) -> None:
    with pytest.raises(SyncRefused, match=rf"db.t: column a: it is {old} in the metastore and {new} in the table"):
        changed_columns({"a": old}, {"a": new}, "db.t")
