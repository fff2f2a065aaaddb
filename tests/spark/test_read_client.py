"""HoodieReadClient: which keys a table holds, their rows, and their file groups, on both routes and table types."""

import polars as pl
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import hoodie
from hoodie.api import spark_keys
from hoodie.errors import InvalidInput, InvalidOption, SchemaMismatch, TableMismatch, TableNotFound, UnsupportedTable
from support.nightly import nightly
from support.oracles import assert_same_rows
from support.routes import ROUTES, SPREAD
from support.tagging import assert_tagged

INDEX = "hoodie.index.type"
BUCKETS = {"hoodie.bucket.index.num.buckets": 4}  # the table does not say


def rows(spark, low, high, version):
    return spark.range(low, high).selectExpr(
        "concat('k', lpad(id, 4, '0')) as id",
        "cast(id % 3 as string) as p",
        f"{version}L as ts",
        f"id * {version} as v",
    )


def table(spark, path, kind, **options):
    return hoodie.create_table(
        str(path),
        spark=spark,
        name="t",
        record_key="id",
        partition_by="p",
        ordering="ts",
        table_type=kind,
        options=options,
    )


def written(spark, path, kind):
    """90 rows, 30 of them updated, 5 deleted."""
    one = table(spark, path, kind)
    one.bulk_insert(rows(spark, 0, 90, 1))
    one.upsert(rows(spark, 0, 30, 2))
    one.delete(rows(spark, 0, 5, 1))
    return one


@pytest.mark.parametrize(
    ("index", "kind", "route"),
    [
        pytest.param("SIMPLE", "COPY_ON_WRITE", SPREAD, id="SIMPLE-COPY_ON_WRITE-executors"),
        nightly("BLOOM", "MERGE_ON_READ", SPREAD, id="BLOOM-MERGE_ON_READ-executors"),
        nightly("SIMPLE", "MERGE_ON_READ", SPREAD, id="SIMPLE-MERGE_ON_READ-executors"),
        nightly("BLOOM", "COPY_ON_WRITE", SPREAD, id="BLOOM-COPY_ON_WRITE-executors"),
        nightly("BLOOM", "MERGE_ON_READ", {}, id="BLOOM-MERGE_ON_READ-driver"),
    ],
)
def test_a_client_finds_just_the_rows_that_a_snapshot_has(spark, tmp_path, kind, route, index):
    one = written(spark, tmp_path / "t", kind)
    client = hoodie.hudi.HoodieReadClient(one.path, {INDEX: index, **route}, spark=spark)
    batch = rows(spark, 0, 10, 7).unionAll(rows(spark, 85, 95, 7))
    absent = ["k0000", "k0001", "k0002", "k0003", "k0004", "k0090", "k0091", "k0092", "k0093", "k0094"]
    new = client.filter_exists(batch)
    assert new.columns == batch.columns
    assert_same_rows(new.toArrow(), batch.where(batch.id.isin(absent)).toArrow())

    found = client.read(batch.select("p", "id"))
    assert_same_rows(found.rows.toArrow(), one.snapshot().join(batch, ["id", "p"], "left_semi").toArrow())
    assert found.rows.columns == one.snapshot().columns
    assert client.read(batch, columns=["v", "id"]).rows.columns == ["v", "id"]
    assert found.stats.files_opened > 0

    tagged = (row.asDict() for row in client.tag_location(batch).collect())
    assert_tagged(tagged, one.file_slices(), deleted_is_new=kind == "COPY_ON_WRITE")


@ROUTES
def test_only_files_and_row_groups_that_can_hold_a_key_are_opened_and_counted(spark, tmp_path, route):
    small = {
        "hoodie.copyonwrite.insert.auto.split": False,
        "hoodie.copyonwrite.insert.split.size": 100,
        "hoodie.parquet.block.size": 5000,
        "hoodie.bulkinsert.sort.mode": "GLOBAL_SORT",
    }
    one = table(spark, tmp_path / "t", "COPY_ON_WRITE", **small)
    for low in range(0, 900, 300):  # keys of a file are neighbours
        one.insert(rows(spark, low, low + 300, 1).orderBy("id"), options={"hoodie.parquet.small.file.limit": 0})
    files = len(one.file_slices())
    client = hoodie.hudi.HoodieReadClient(one.path, {INDEX: "BLOOM", **route}, spark=spark)
    found = client.read(rows(spark, 300, 303, 0).unionAll(rows(spark, 5000, 5003, 0)))
    assert found.rows.count() == 3
    index = found.stats.index
    assert index.files == files == 9
    assert index.files_pruned_by_range + index.files_pruned_by_filter >= 6
    assert (index.hits, index.false_positives) == (3, index.checked - 3)
    assert found.stats.files_opened == 3
    if not route:  # what Spark's tasks read is not known beforehand
        assert found.stats.rows == 3
        assert 3 <= found.stats.row_groups_read < found.stats.row_groups


@pytest.mark.nightly
@ROUTES
def test_duplicates_of_a_batch_stay_and_its_own_columns_do(spark, tmp_path, route):
    one = written(spark, tmp_path / "t", "COPY_ON_WRITE")
    client = hoodie.hudi.HoodieReadClient(one.path, route, spark=spark)
    batch = spark.sql(
        "select * from values ('k0200', '1', map('a', 1), timestamp'2024-01-01 01:02:03'), "
        "('k0200', '1', null, null), ('k0050', '2', null, null) as t(id, p, extra, at)"
    )
    new = client.filter_exists(batch)
    assert new.schema.simpleString() == batch.schema.simpleString()
    assert sorted(map(str, new.collect())) == sorted(map(str, batch.where("id = 'k0200'").collect()))
    assert client.filter_exists(one.snapshot()).count() == 0  # rows of a read come with their keys
    assert client.read(one.snapshot()).rows.count() == 85
    assert client.tag_location(batch).where("id = 'k0200'").count() == 2


def test_keys_without_their_partition_are_refused_by_an_index_that_needs_it(spark, tmp_path):
    one = written(spark, tmp_path / "t", "COPY_ON_WRITE")
    client = hoodie.hudi.HoodieReadClient(one.path, spark=spark)
    keys = rows(spark, 0, 10, 1).select("id")
    for call in (client.filter_exists, client.read, client.tag_location):
        with pytest.raises(SchemaMismatch, match=r"partition column 'p' is missing.*SIMPLE finds a key within"):
            call(keys)
        with pytest.raises(SchemaMismatch, match="record key column 'id' is missing"):
            call(rows(spark, 0, 10, 1).select("p"))


@ROUTES
def test_keys_are_of_the_kind_of_time_that_their_column_holds(spark, tmp_path, route):
    one = hoodie.create_table(tmp_path / "t", spark=spark, name="t", record_key="id")
    one.upsert(spark.sql("select timestamp'2024-01-01 00:00:00' as id, 1 as v"))
    client = hoodie.hudi.HoodieReadClient(one.path, route, spark=spark)
    calls = (client.filter_exists, client.read, client.tag_location, lambda keys: one.delete(keys, options=route))
    for keys in (
        spark.sql("select timestamp_ntz'2024-01-01 00:00:00' as id"),
        spark.sql("select date'2024-01-01' as id"),
    ):
        for call in calls:
            for brought in (keys, keys.toArrow()):
                with pytest.raises(SchemaMismatch, match="the keys do not fit the table: column 'id' has"):
                    call(brought)
    assert one.delete(spark.sql("select timestamp'2024-01-01 00:00:00' as id"), options=route).deleted == 1


@ROUTES
def test_rows_without_a_key_are_refused(spark, tmp_path, route):
    one = written(spark, tmp_path / "t", "COPY_ON_WRITE")
    client = hoodie.hudi.HoodieReadClient(one.path, route, spark=spark)
    bad = rows(spark, 0, 3, 1).unionAll(spark.sql("select null, '1', 1L, 1L"))
    with pytest.raises(InvalidInput, match="1 rows have a record key that is null or empty"):
        client.filter_exists(bad)


def test_what_cannot_be_asked_is_refused_when_it_is(spark, tmp_path, fixture_table):
    with pytest.raises(TableNotFound):
        hoodie.hudi.HoodieReadClient(str(tmp_path / "none"), spark=spark)
    one = written(spark, tmp_path / "t", "COPY_ON_WRITE")
    with pytest.raises(InvalidOption, match=r"unknown option 'hoodie\.index\.typ'"):
        hoodie.hudi.HoodieReadClient(one.path, {"hoodie.index.typ": "BLOOM"}, spark=spark)
    client = hoodie.hudi.HoodieReadClient(one.path, spark=spark)
    with pytest.raises(InvalidInput, match="no column 'w'"):
        client.read(rows(spark, 0, 3, 1), columns=["w"])
    without = hoodie.hudi.HoodieReadClient(str(fixture_table("cow_no_meta_fields")), spark=spark)
    with pytest.raises(UnsupportedTable, match="stores no record keys"):
        without.filter_exists(rows(spark, 0, 3, 1))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["mor_bucket_index", nightly("cow_complex_key_hive_style"), nightly("mor_deletes")])
def test_keys_of_tables_that_hudi_wrote_are_found(spark, fixture_table, name):
    path = str(fixture_table(name))
    snapshot = hoodie.open_table(path, spark=spark).snapshot()
    client = hoodie.hudi.HoodieReadClient(path, BUCKETS if name == "mor_bucket_index" else {}, spark=spark)
    user = [column for column in snapshot.columns if not column.startswith("_hoodie_")]
    batch = snapshot.select(*user)
    more = batch.limit(3).withColumn("id", snapshot["id"].substr(1, 2))
    assert client.filter_exists(batch.unionAll(more)).count() == 3
    assert_same_rows(client.read(batch.unionAll(more)).rows.toArrow(), snapshot.toArrow())


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("index", "kind"),
    [
        ("SIMPLE", "COPY_ON_WRITE"),
        nightly("SIMPLE", "MERGE_ON_READ"),
        nightly("BLOOM", "MERGE_ON_READ"),
        nightly("GLOBAL_SIMPLE", "COPY_ON_WRITE"),
        nightly("GLOBAL_BLOOM", "MERGE_ON_READ"),
        nightly("BUCKET", "COPY_ON_WRITE"),
        nightly("HBASE", "MERGE_ON_READ"),
    ],
)
@ROUTES
def test_keys_that_the_table_lacks_give_no_rows_beside_those_that_it_has(request, spark, tmp_path, kind, route, index):
    options = {INDEX: index, **(BUCKETS if index == "BUCKET" else {})}
    if index == "HBASE":
        hbase = request.getfixturevalue("hbase")
        options = hbase.options(hbase.create_table())
    one = table(spark, tmp_path / "t", kind, **options)
    client = hoodie.hudi.HoodieReadClient(one.path, {**options, **route}, spark=spark)
    absent = rows(spark, 100, 103, 2).withColumn("p", F.concat(F.lit("new"), "p")).coalesce(1)
    nothing = absent.where("id is null")

    def finds_none(batch: DataFrame, count: int) -> None:
        found = client.read(batch.select("id", "p"))
        assert (found.rows.toArrow().num_rows, found.stats.files_opened) == (0, 0)
        assert client.filter_exists(batch).toArrow().num_rows == count
        tagged = client.tag_location(batch).toArrow().to_pylist()
        assert len(tagged) == count
        assert all(row["_hoodie_file_id"] is None and row["_hoodie_instant_time"] is None for row in tagged)

    finds_none(absent, 3)  # the table is empty
    one.bulk_insert(rows(spark, 0, 9, 1).coalesce(1))
    finds_none(absent, 3)  # it has no such partitions
    finds_none(nothing, 0)
    present = rows(spark, 7, 12, 2)
    assert [row.id for row in client.read(present).rows.orderBy("id").collect()] == ["k0007", "k0008"]
    assert client.filter_exists(present).count() == 3


def test_a_batch_that_spark_takes_for_small_is_measured(spark, tmp_path, monkeypatch):
    one = written(spark, tmp_path / "t", "COPY_ON_WRITE")
    counted = spark.sparkContext.accumulator(0)

    def count(batches):
        for batch in batches:
            counted.add(batch.num_rows)
            yield batch

    batch = rows(spark, 0, 90, 1)
    large = batch.mapInArrow(count, batch.schema)
    looked_up = []
    monkeypatch.setattr(spark_keys, "estimated_bytes", lambda frame: 1)
    monkeypatch.setattr(spark_keys, "locate_keys", lambda *given: looked_up.append(given))
    client = hoodie.hudi.HoodieReadClient(one.path, {"hoodie.spark.driver.max.batch.bytes": 100}, spark=spark)
    assert client.read(large).rows.count() == 85
    assert (looked_up, counted.value) == ([], 90)  # by Spark's tasks, of the rows that are here by now


@pytest.mark.nightly
def test_a_client_takes_key_generator_options_as_writes_do(spark, tmp_path):
    times = {
        "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    }
    one = hoodie.create_table(
        str(tmp_path / "t"), spark=spark, name="t", record_key="id", partition_by="ts", ordering="ts", options=times
    )
    file = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    file.write_text("".join(line for line in file.open() if "timebased" not in line))  # Hudi leaves them to options
    batch = spark.sql("select * from values ('a', 0L), ('b', 86400000L) as t(id, ts)")
    one.upsert(batch, options=times)
    for route in ({}, SPREAD):
        client = hoodie.hudi.HoodieReadClient(one.path, {**times, **route}, spark=spark)
        assert client.read(batch).rows.count() == 2
        assert client.filter_exists(batch).count() == 0
    with pytest.raises(TableMismatch, match=r"'other' contradicts hoodie.table.recordkey.fields='id'"):
        hoodie.hudi.HoodieReadClient(one.path, {"hoodie.datasource.write.recordkey.field": "other"}, spark=spark).read(
            batch
        )


def test_arrow_rows_that_spark_has_no_types_for_are_asked_about(spark, tmp_path):
    one = table(spark, tmp_path / "t", "COPY_ON_WRITE")
    one.insert(rows(spark, 0, 3, 1))
    kinds = {"id": pl.Categorical, "p": pl.Enum(["0", "1"]), "n": pl.UInt8}
    asked = pl.DataFrame({"id": ["k0000", "k0009"], "p": ["0", "0"], "n": [1, 2]}, schema_overrides=kinds)
    assert one.get(asked).rows.count() == 1
    assert hoodie.hudi.HoodieReadClient(str(tmp_path / "t"), spark=spark).filter_exists(asked).collect() == [
        ("k0009", "0", 2)
    ]
