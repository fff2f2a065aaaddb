"""Incremental pulls as DataFrames: equal to those without Spark, pruned by Spark's own reader, asked for by options."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest

import hoodie
from hoodie.errors import InvalidOption
from support.nightly import nightly
from support.oracles import assert_same_rows, expected_changes
from support.spark_tables import rows

NOW = {"hoodie.compact.inline.max.delta.commits": 1}
INCREMENTAL = {"hoodie.datasource.query.type": "incremental"}


def table(spark, path, kind):
    return hoodie.create_table(
        str(path), spark=spark, name="t", record_key="id", partition_by="p", ordering="ts", table_type=kind
    )


@pytest.mark.nightly  # beside changes of real tables
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_changes_equal_those_without_spark_over_writes_deletes_compaction_and_overwrite(spark, tmp_path, kind):
    one = table(spark, tmp_path / "t", kind)
    instants = [one.bulk_insert(rows(spark, 0, 90, 1)).instant, one.upsert(rows(spark, 0, 30, 2)).instant]
    instants.append(one.delete(rows(spark, 0, 5, 1)).instant)
    if kind == "MERGE_ON_READ":
        assert one.schedule_compaction(options=NOW) is not None
    instants.append(one.upsert(rows(spark, 20, 100, 3)).instant)
    if kind == "MERGE_ON_READ":
        one.compact()
    instants.append(one.insert_overwrite(rows(spark, 0, 30, 4).where("p = '1'")).instant)
    ranges = [(instants[0], None), (instants[2], instants[3]), ("earliest", instants[1])]
    for begin, end in ranges:
        found = one.changes(begin, end)
        assert_same_rows(found.toArrow(), hoodie.open_table(one.path).changes(begin, end, meta=True).to_arrow())
        assert found.columns == one.snapshot().columns
    expected = rows(spark, 20, 100, 3).where("p != '1'").unionAll(rows(spark, 0, 30, 4).where("p = '1'"))
    assert_same_rows(one.changes(instants[2]).select("id", "p", "ts", "v").toArrow(), expected.toArrow())
    assert one.changes(instants[0], columns=["v"]).columns == ["v"]
    assert one.changes(instants[0], columns=["v"]).count() == one.changes(instants[0]).count() > 0
    assert one.changes(instants[4]).count() == 0


def test_the_filter_on_commit_times_goes_down_to_the_files_of_the_change(spark, tmp_path):
    one = table(spark, tmp_path / "t", "COPY_ON_WRITE")
    first = one.bulk_insert(rows(spark, 0, 90, 1)).instant
    one.upsert(rows(spark, 0, 30, 2).where("p = '1'"))
    text = io.StringIO()
    with redirect_stdout(text):
        one.changes(first).explain()
    assert "GreaterThan(_hoodie_commit_time" in text.getvalue()
    assert "MapInArrow" not in text.getvalue()
    files = {row[0] for row in one.changes(first).select("_metadata.file_path").distinct().collect()}
    assert len(files) == 1


@pytest.mark.parametrize("name", [nightly("cow_clustering"), "mor_event_time", nightly("cow_complex_key_hive_style")])
def test_changes_of_real_tables_are_those_that_hudi_gives(spark, fixture_table, name):
    path = fixture_table(name)
    for change in expected_changes(name)[:3]:
        found = hoodie.open_table(str(path), spark=spark).changes(change.after, change.up_to)
        assert_same_rows(found.select(change.rows.column_names).toArrow(), change.rows)


def test_a_path_is_read_by_the_options_of_hudis_data_source(spark, tmp_path):
    one = table(spark, tmp_path / "t", "MERGE_ON_READ")
    first = one.bulk_insert(rows(spark, 0, 9, 1)).instant
    second = one.upsert(rows(spark, 0, 3, 2)).instant
    one.upsert(rows(spark, 2, 4, 3))
    begin, end = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"
    assert hoodie.hudi.read(one.path, spark=spark).where("ts > 1").count() == 4
    assert (
        hoodie.hudi.read(one.path, {"hoodie.datasource.query.type": "read_optimized"}, spark=spark)
        .where("ts > 1")
        .count()
        == 0
    )
    assert hoodie.hudi.read(one.path, {"as.of.instant": second}, spark=spark).where("ts > 1").count() == 3
    assert hoodie.hudi.read(one.path, {**INCREMENTAL, begin: first}, spark=spark).count() == 4
    assert hoodie.hudi.read(one.path, {**INCREMENTAL, begin: first, end: second}, spark=spark).count() == 3
    for wrong, told in (
        (INCREMENTAL, "needs hoodie.datasource.read.begin.instanttime"),
        ({"hoodie.datasource.query.type": "latest"}, "one of SNAPSHOT, READ_OPTIMIZED, INCREMENTAL"),
        ({**INCREMENTAL, "hoodie.datasource.query.incremental.format": "cdc"}, "needs hoodie.datasource.read.begin"),
        ({"hoodie.datasource.query.incremental.format": "cdc"}, "hoodie.datasource.query.type=incremental"),
        ({**INCREMENTAL, "hoodie.datasource.query.incremental.format": "avro"}, "one of LATEST_STATE, CDC"),
        ({"hoodie.datasource.read.begin.instant": first}, "Did you mean 'hoodie.datasource.read.begin.instanttime'"),
    ):
        with pytest.raises(InvalidOption, match=told):
            hoodie.hudi.read(one.path, wrong, spark=spark)
