"""Incremental pulls as DataFrames: equal to those without Spark, pruned by Spark's own reader, asked for by options."""

import io
from contextlib import redirect_stdout

import pytest

import hoodie
from hoodie.errors import InvalidOption
from support.nightly import nightly
from support.oracles import assert_same_rows, expected_changes
from support.spark_tables import rows

INCREMENTAL = {"hoodie.datasource.query.type": "incremental"}


def table(spark, path, kind):
    return hoodie.create_table(
        str(path), spark=spark, name="t", record_key="id", partition_by="p", ordering="ts", table_type=kind
    )


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
    assert one.changes(first, columns=["v"]).columns == ["v"]
    assert one.changes(first, columns=["v"]).count() == 10


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
