"""The HBase index on Spark: keys are asked for and entries put by driver threads, or by executors."""

import pytest

import hoodie
from hoodie.errors import IndexOutOfDate, IndexUnavailable
from hoodie.testing.hbase import HBaseServer
from support.nightly import nightly
from support.spark_tables import rows
from support.spark_tables import table as made

MOVES = {"hoodie.hbase.index.update.partition.path": "true"}
SPREAD = {"hoodie.spark.driver.max.batch.bytes": 0}


@pytest.mark.nightly
@pytest.mark.parametrize("table_type", [nightly("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_executors_keep_an_index_that_names_all_rows_and_no_others(spark, tmp_path, hbase, table_type):
    name = hbase.create_table()
    table = made(spark, tmp_path / "t", table_type, **hbase.options(name), **MOVES)
    table.upsert(rows(spark, 0, 60, 1))  # by driver threads
    changed = rows(spark, 50, 70, 2).union(rows(spark, 0, 10, 2, "(id + 1) % 3"))
    result = table.upsert(changed, options=SPREAD)
    assert (result.route, result.index.checked, result.index.hits) == ("executors", 30, 20)
    table.delete(rows(spark, 20, 25, 1).select("id", "p"), options=SPREAD)
    expected = {f"k{n}": (str(n % 3), n) for n in range(60)}
    expected |= {f"k{n}": (str(n % 3), n * 2) for n in range(50, 70)}
    expected |= {f"k{n}": (str((n + 1) % 3), n * 2) for n in range(10)}
    for n in range(20, 25):
        del expected[f"k{n}"]
    found = table.snapshot().toArrow().to_pylist()
    assert {row["id"]: (row["p"], row["v"]) for row in found} == expected
    assert len(found) == len(expected)
    entries = hbase.dump(name)
    assert {key.decode(): cells[b"_s:partition_path"].decode() for key, cells in entries.items()} == {
        key: partition for key, (partition, _) in expected.items()
    }
    assert {cells[b"_s:file_name"].decode() for cells in entries.values()} <= {
        slice_.group.file_id for slice_ in table.file_slices()
    }
    assert all(len(cells) == 3 for cells in entries.values())


def test_executors_that_cannot_reach_hbase_fail_the_write_and_nothing_is_published(spark, tmp_path):
    with HBaseServer() as server:
        options = {**server.options(server.create_table()), "hoodie.index.hbase.thrift.max.retries": 0, **SPREAD}
        table = hoodie.create_table(str(tmp_path / "t"), spark=spark, name="t", record_key="id", options=options)
        server.faults.calls, server.faults.errors = frozenset({"mutateRowsTs"}), 1000
        with pytest.raises(IndexUnavailable, match="mutateRowsTs"):
            table.upsert(rows(spark, 5, 15, 2))
        assert not table.history()


@pytest.mark.parametrize("route", [pytest.param({}, id="driver"), nightly(SPREAD, id="executors")])
@pytest.mark.parametrize("table_type", [nightly("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_entries_count_once_a_client_commits_and_go_when_it_rolls_back(spark, tmp_path, hbase, table_type, route):
    name = hbase.create_table()
    given = {**hbase.options(name), **MOVES, "hoodie.index.hbase.rollback.sync": "true"}
    path = str(tmp_path / "t")
    table = made(spark, path, table_type, **given)
    table.upsert(rows(spark, 0, 6, 1))
    client = hoodie.hudi.HoodieWriteClient(path, {**given, **route, "hoodie.auto.commit": "false"}, spark=spark)
    before = hbase.dump(name)
    taken_back = client.start_commit()
    client.upsert(rows(spark, 3, 9, 2, "(id + 1) % 3"), taken_back)
    assert hbase.dump(name).keys() > before.keys()
    client.rollback(taken_back)
    after = hbase.dump(name)  # where rows were to move to counts for nothing, and stays
    assert {key: {cell: cells[cell] for cell in before[key]} for key, cells in after.items()} == before
    instant = client.start_commit()
    result = client.upsert(rows(spark, 3, 9, 2, "(id + 1) % 3"), instant)
    assert table.snapshot().count() == 6
    client.commit(instant, result)
    instant = client.start_commit()
    client.commit(instant, client.delete(rows(spark, 0, 3, 1).select("id", "p"), instant))
    assert sorted(hbase.dump(name)) == [f"k{n}".encode() for n in range(3, 9)]
    assert table.upsert(rows(spark, 0, 9, 3, "(id + 1) % 3")).inserted == 3
    assert table.snapshot().count() == 9


@pytest.mark.nightly
@pytest.mark.parametrize("route", [nightly({}, id="driver"), pytest.param(SPREAD, id="executors")])
@pytest.mark.parametrize("table_type", [nightly("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_a_rollback_and_a_restore_put_the_entries_of_rows_that_came_back(spark, tmp_path, hbase, table_type, route):
    name = hbase.create_table()
    options = {**hbase.options(name), **MOVES, **route}
    table = made(spark, tmp_path / "t", table_type, **options)
    table.upsert(rows(spark, 0, 12, 1))
    table.savepoint()
    first = hbase.dump(name)
    table.upsert(rows(spark, 0, 6, 2, "(id + 1) % 3"))
    moved = hbase.dump(name)
    table.delete(rows(spark, 6, 12, 1).select("id", "p"))
    assert len(hbase.dump(name)) == 6
    table.rollback()
    assert hbase.dump(name) == moved
    table.delete(rows(spark, 3, 9, 1).select("id", "p"))
    table.restore(table.savepoints()[0].instant)
    assert hbase.dump(name) == first
    assert table.upsert(rows(spark, 0, 12, 3)).inserted == 0
    assert table.snapshot().count() == 12


@pytest.mark.nightly
def test_executors_that_cannot_put_entries_again_leave_that_to_the_next_write(spark, tmp_path):
    with HBaseServer() as server:
        given = {**server.options(server.create_table()), "hoodie.index.hbase.thrift.max.retries": 0, **SPREAD}
        table = made(spark, tmp_path / "t", "COPY_ON_WRITE", **given)
        table.upsert(rows(spark, 0, 6, 1))
        table.delete(rows(spark, 0, 3, 1).select("id", "p"))
        server.faults.calls, server.faults.errors = frozenset({"mutateRowsTs"}), 10**6
        with pytest.warns(IndexOutOfDate, match="mutateRowsTs"):
            table.rollback()
        server.faults.errors = 0
        client = hoodie.hudi.HoodieWriteClient(str(tmp_path / "t"), given, spark=spark)
        instant = client.start_commit()
        client.commit(instant, client.upsert(rows(spark, 0, 6, 2), instant))
        assert table.snapshot().count() == 6
