"""Tables that Hudi wrote are read with the rows that Hudi and hudi-rs see in them, now and as of each instant."""

from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie import open_table
from hoodie.errors import InvalidInput
from support.nightly import by_day
from support.oracles import META, assert_same_rows, expected_rows, fixture_facts, fixture_names, read_hudi_rs
from support.routes import SPREAD

Unpack = Callable[[str], Path]

COPY_ON_WRITE = [name for name in fixture_names() if "cow" in name]
NOT_IN_HUDI_RS = "v5_cow_nonpartitioned"  # it reads versions 6, 8 and 9
TOLD = [name for name in COPY_ON_WRITE if name != NOT_IN_HUDI_RS]


#: By day every other one: all of them are read without Spark, in tests/interop.
@pytest.mark.parametrize("name", by_day(TOLD, TOLD[::2].__contains__))
def test_a_table_of_hudi_is_read_with_its_rows(name: str, spark: SparkSession, fixture_table: Unpack) -> None:
    path = fixture_table(name)
    snapshot = open_table(str(path), spark=spark).snapshot()
    assert_same_rows(snapshot.toArrow(), expected_rows(name))
    assert snapshot.columns == open_table(path).snapshot(meta=True).schema.names


def test_a_table_of_version_5_is_read_from_its_file(spark: SparkSession, fixture_table: Unpack) -> None:
    path = fixture_table(NOT_IN_HUDI_RS)
    (file,) = path.glob("*.parquet")
    snapshot = open_table(str(path), spark=spark).snapshot()
    assert_same_rows(snapshot.toArrow(), pq.read_table(file))
    assert snapshot.columns == [*META, "id", "name", "ts", "dt", "hh"]


#: By day those of which a read as of an instant does something else: columns of then, replaced and cleaned files.
TRAVELLED = ("cow_schema_evolution", "cow_insert_overwrite")


def was_cleaned(path: Path, instant: str) -> bool:
    """Whether reads as of an instant are refused, which hudi-rs answers with the rows that are left."""
    try:
        open_table(path).snapshot(as_of=instant, meta=True).to_arrow()
    except InvalidInput as refused:
        return "cleaning removed" in str(refused)
    return False


@pytest.mark.parametrize("name", by_day(TOLD, TRAVELLED.__contains__))
def test_the_past_of_a_table_of_hudi_is_read_as_of_each_instant(
    name: str, spark: SparkSession, fixture_table: Unpack
) -> None:
    path = fixture_table(name)
    instants = [instant for instant in completed_instants(path) if not was_cleaned(path, instant)]
    table = open_table(str(path), spark=spark)
    seen = tagged_rows([table.as_of(instant) for instant in instants], instants)
    assert len(instants) > 1
    for instant in instants:
        expected = read_hudi_rs(path, as_of=instant)
        # A read as of then has the columns of then; hudi-rs has those of today.
        before = open_table(path).snapshot(as_of=instant, meta=True).to_arrow()
        extra = [column for column in expected.column_names if column not in before.column_names]
        assert extra == (["extra"] if name == "cow_schema_evolution" and instant == instants[0] else [])
        assert_same_rows(before, expected, ignore=extra)
        rows = seen.filter(pc.equal(seen.column("tag"), instant)).drop_columns(["tag"])
        assert_same_rows(rows, expected if "extra" in rows.column_names else expected.drop_columns(extra))


def test_rows_of_replaced_file_groups_are_hidden_but_not_from_the_past(
    spark: SparkSession, fixture_table: Unpack
) -> None:
    path = fixture_table("cow_insert_overwrite")
    steps = {step["op"]: step["instant"] for step in fixture_facts("cow_insert_overwrite")["steps"]}
    before, at = "20261121034623756", steps["insert_overwrite"]
    table = open_table(str(path), spark=spark)
    visible = {slice_.group for slice_ in table.file_slices()}
    on_disk = {(file.parent.name, file.name.split("_")[0]) for file in path.glob("*/*.parquet")}
    assert len(visible) < len(on_disk)
    frames = [table.snapshot(), table.as_of(before), table.as_of(at)]
    counts = tagged_rows([frame.groupBy().count() for frame in frames], ["now", "before", "at"]).to_pylist()
    assert {row["tag"]: row["count"] for row in counts} == {"now": 250, "before": 300, "at": 240}


def test_a_hidden_file_is_not_even_opened(spark: SparkSession, fixture_table: Unpack) -> None:
    path = fixture_table("cow_insert_overwrite")
    table = open_table(str(path), spark=spark)
    wanted = {slice_.base.name for slice_ in table.file_slices() if slice_.base is not None}
    hidden = [file for file in path.glob("*/*.parquet") if file.name not in wanted]
    for file in hidden:
        file.write_bytes(b"")
    assert hidden
    assert_same_rows(table.snapshot().toArrow(), expected_rows("cow_insert_overwrite"))


def test_columns_and_filters_reach_the_parquet_reader(spark: SparkSession, fixture_table: Unpack) -> None:
    frame = open_table(str(fixture_table("cow_upserts_delete")), spark=spark).snapshot()
    asked = frame.where("qty > 5").select("id")
    plan = physical_plan(asked)
    assert "PushedFilters: [IsNotNull(qty), GreaterThan(qty,5)]" in plan
    assert "ReadSchema: struct<id:string,qty:int>" in plan
    expected = expected_rows("cow_upserts_delete")
    wanted = expected.filter(pc.greater(expected.column("qty"), 5)).select(["id"])
    assert_same_rows(asked.toArrow(), wanted)


def test_a_bloom_filter_of_hudi_finds_every_key_of_its_file(spark: SparkSession, fixture_table: Unpack) -> None:
    table = open_table(str(fixture_table("cow_upserts_delete")), spark=spark)
    there = table.snapshot().drop(*META)
    profile = table.explain_upsert(there).profile.values()
    assert sum(sum(rows.updates.values()) for rows in profile) == expected_rows("cow_upserts_delete").num_rows
    assert sum(rows.inserts for rows in profile) == 0


WRITTEN = {
    "cow_complex_key_hive_style": ({"qty": 4242}, "new"),
    "cow_types": ({"c_int": 4242, "c_str": "geändert", "c_bin": b"\x00\xff"}, "new"),
    "cow_url_encoded": ({"qty": 4242, "note": "geändert"}, "new"),
    "v6_cow_timestamp_keygen": ({"intField": 4242}, 99),
}
TIMES = {"hoodie.keygen.timebased.timestamp.type": "DATE_STRING"}


@pytest.mark.parametrize("name", by_day(WRITTEN, lambda name: name == "cow_complex_key_hive_style"))
def test_executors_write_into_it_as_the_driver_does(name: str, spark: SparkSession, fixture_table: Unpack) -> None:
    change, new = WRITTEN[name]
    results, rows = [], []
    for route in ({}, SPREAD):
        path = fixture_table(name)
        table = open_table(str(path), spark=spark, options={**route, **(TIMES if "timestamp" in name else {})})
        row = table.snapshot(meta=False).orderBy("id").limit(1)
        row = row.withColumns({key: F.lit(value).cast(row.schema[key].dataType) for key, value in change.items()})
        results.append(table.upsert(row.unionByName(row.withColumn("id", F.lit(new).cast(row.schema["id"].dataType)))))
        rows.append(open_table(path).snapshot(meta=True).to_arrow())
        for theirs in (table.snapshot().toArrow(), read_hudi_rs(path)):
            assert_same_rows(theirs, rows[-1])
    assert [result.route for result in results] == ["driver", "executors"]
    assert [(result.inserted, result.updated) for result in results] == [(1, 1)] * 2
    assert_same_rows(*rows, ignore=["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"])


# --- what the tests ask with ---


def completed_instants(path: Path) -> list[str]:
    """Instants of the active timeline as hudi-rs lists them: commits and replace commits, oldest first."""
    timeline = HudiTableBuilder.from_base_uri(str(path)).build().get_timeline()
    found = [*timeline.get_completed_commits(), *timeline.get_completed_replacecommits()]
    return sorted(instant.timestamp for instant in found)


def tagged_rows(frames: Sequence[DataFrame], tags: Sequence[str]) -> pa.Table:
    """The rows of all frames with a column `tag`, by one Spark job."""
    tagged = [frame.withColumn("tag", F.lit(tag)) for frame, tag in zip(frames, tags, strict=True)]
    return reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), tagged).toArrow()


def physical_plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())
