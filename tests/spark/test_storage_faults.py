"""A storage that refuses: writes and reads through Spark fail as errors of ours that say what to do, on both routes."""

import errno

import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.errors import AccessDenied, InvalidInput, NameTooLong, SchemaMismatch, StorageFull
from hoodie.storage import LocalStorage
from hoodie.testing.storage import RefusingStorage
from support.nightly import nightly
from support.routes import ROUTES
from support.trips import table_options


def rows(spark: SparkSession, low: int, high: int, version: int, partition: str = "cast(id % 2 as string)"):
    return spark.range(low, high).selectExpr(
        "concat('k', id) as id", f"{partition} as p", f"{version}L as ts", f"id * {version} as v"
    )


def made(spark: SparkSession, path: str, **options: object) -> HoodieTable:
    return hoodie.create_table(
        path, spark=spark, name="t", record_key="id", partition_by="p", ordering="ts", options=options
    )


@ROUTES
@pytest.mark.parametrize(
    ("number", "kind", "advice"),
    [(errno.ENOSPC, StorageFull, "Free some"), nightly(errno.EROFS, AccessDenied, "mounted read-only")],
)
def test_a_write_that_storage_refuses_says_what_to_do_and_can_be_done_again(
    spark, tmp_path, route, number, kind, advice
):
    table = made(spark, str(tmp_path / "t"))
    table.upsert(rows(spark, 0, 10, 1))
    before = hoodie.open_table(table.path).snapshot(meta=True).to_arrow()
    whole, table.storage = table.storage, RefusingStorage(table.storage, number, ".parquet")
    with pytest.raises(kind, match=advice) as raised:
        table.upsert(rows(spark, 5, 15, 2), options=route)
    cause = raised.value.__cause__
    assert cause is not None
    assert "[Errno " in str(cause)  # what the storage said: on executors within Spark's own error
    if not route:
        assert isinstance(cause, OSError)
    assert hoodie.open_table(table.path).snapshot(meta=True).to_arrow() == before
    table.storage = whole
    table.upsert(rows(spark, 5, 15, 2), options=route)
    assert hoodie.open_table(table.path).snapshot(meta=True).to_arrow().num_rows == 15


@ROUTES
def test_a_partition_whose_name_is_too_long_for_a_folder(spark, tmp_path, route):
    table = made(spark, str(tmp_path / "t"))
    table.upsert(rows(spark, 0, 4, 1))
    with pytest.raises(NameTooLong, match="Shorten the partition value"):
        table.upsert(rows(spark, 4, 8, 1, "repeat('x', 300)"), options=route)
    assert hoodie.open_table(table.path).snapshot(meta=True).to_arrow().num_rows == 4
    table.upsert(rows(spark, 4, 8, 1), options=route)
    assert hoodie.open_table(table.path).snapshot(meta=True).to_arrow().num_rows == 8


def test_reads_keys_and_services_say_what_to_do(spark, tmp_path, monkeypatch):
    table = made(spark, str(tmp_path / "t"))
    table.upsert(rows(spark, 0, 4, 1))
    client = hoodie.hudi.HoodieReadClient(table.path, spark=spark)
    writer = hoodie.hudi.HoodieWriteClient(table.path, spark=spark)

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "somewhere")

    monkeypatch.setattr(LocalStorage, "list", refuse)
    monkeypatch.setattr(LocalStorage, "list_some", refuse)
    for act in (
        table.snapshot,
        lambda: table.changes("earliest"),
        table.clean,
        table.history,
        table.rollback,
        lambda: client.read(rows(spark, 0, 4, 1)),
        lambda: client.filter_exists(rows(spark, 0, 4, 1)),
        writer.start_commit,
        lambda: hoodie.hudi.read(table.path, spark=spark),
        lambda: hoodie.hudi.write(rows(spark, 0, 4, 1), table.path),
        lambda: hoodie.hudi.HoodieReadClient(table.path, spark=spark),
        lambda: hoodie.open_table(table.path).snapshot(meta=True).to_arrow(),
    ):
        with pytest.raises(AccessDenied, match="who owns the folder") as raised:
            act()
        assert isinstance(raised.value.__cause__, PermissionError)


@pytest.mark.nightly
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", nightly("HBASE")])
def test_a_global_index_does_not_lead_driver_threads_past_their_limit(request, spark, tmp_path, index):
    options = {"hoodie.index.type": index, "hoodie.spark.driver.max.rewrite.bytes": 1}
    if index == "HBASE":
        hbase = request.getfixturevalue("hbase")
        options |= hbase.options(hbase.create_table())
    table = made(spark, str(tmp_path / "t"), **options)
    assert table.upsert(rows(spark, 0, 10, 1)).route == "driver"  # nothing to rewrite
    explained = table.explain_upsert(rows(spark, 0, 2, 2))
    assert explained.route == "executors"
    deleted = table.delete(rows(spark, 0, 2, 2).select("id"))
    assert (deleted.route, deleted.deleted) == ("executors", 2)
    moved = rows(spark, 2, 4, 2, "'new'")  # of this batch's own partition there is nothing to rewrite
    assert table.upsert(moved).route == "executors"
    assert sorted(row["id"] for row in hoodie.open_table(table.path).snapshot(meta=True).to_arrow().to_pylist()) == [
        f"k{n}" for n in range(2, 10)
    ]
    within = table.delete(rows(spark, 4, 5, 2).select("id"), options={"hoodie.spark.driver.max.rewrite.bytes": 2**30})
    assert (within.route, within.deleted) == ("driver", 1)


NEW = table_options("t", "id", partition="p", ordering="ts")


@ROUTES
@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        (["id", "p", "v"], SchemaMismatch),
        (["cast(null as string) as id", "p", "ts", "v"], InvalidInput),
        nightly(["id", "p", "cast(null as long) as ts", "v"], InvalidInput),
    ],
    ids=["a column lacks", "a key is null", "an ordering value is null"],
)
def test_a_first_batch_that_does_not_fit_makes_no_table(spark, tmp_path, route, columns, kind):
    path = tmp_path / "t"
    with pytest.raises(kind):
        hoodie.hudi.write(rows(spark, 0, 3, 1).selectExpr(*columns), str(path), {**NEW, **route})
    assert not (path / ".hoodie" / "hoodie.properties").exists()
    assert [file for file in path.rglob("*") if file.is_file()] == []
    other = {**NEW, **route, "hoodie.datasource.write.recordkey.field": "v"}  # nothing is settled yet
    assert hoodie.hudi.write(rows(spark, 0, 3, 1), str(path), other).inserted == 3
    assert hoodie.open_table(str(path)).snapshot(meta=True).to_arrow().num_rows == 3


def test_deleting_partitions_of_no_table_makes_none(spark, tmp_path):
    options = {
        **NEW,
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "a",
    }
    with pytest.raises(hoodie.HoodieError, match="no table here"):
        hoodie.hudi.write(rows(spark, 0, 3, 1), str(tmp_path / "t"), options)
    assert not (tmp_path / "t").exists()
