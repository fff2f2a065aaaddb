"""The ways in which a write is spread over executors give the same table as driver threads."""

import itertools

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import InvalidInput
from hoodie.formats.log.blocks import BlockKind, HeaderKey, read_blocks
from hoodie.formats.log.content import data_rows, decode_positions
from hoodie.formats.log.delete_block import decode_deletes
from hoodie.model.meta import RECORD_KEY
from hoodie.plan import exchange
from hoodie.spark.lookup import locate
from hoodie.spark.write import staging
from hoodie.writing.batch import stage
from support.nightly import by_day, nightly
from support.oracles import assert_same_rows, read_hudi_rs
from support.spark_tables import rows, table

SPREAD = {"hoodie.spark.driver.max.batch.bytes": 0}


@pytest.fixture(params=["staged", "shuffled"])
def route(request, monkeypatch):
    if request.param == "shuffled":  # as if the batch were too large for each task to read its partition's rows
        monkeypatch.setattr(stage, "LARGEST_PARTITION", 0)
    return request.param


def ways_and_indexes(*by_days):
    """Both ways with both indexes, of which the default suite runs those of the days."""
    cases = by_day(itertools.product(("staged", "shuffled"), ("SIMPLE", "BLOOM")), by_days.__contains__)
    return pytest.mark.parametrize(("route", "index"), cases, indirect=["route"])


@ways_and_indexes(("staged", "BLOOM"))
def test_both_spread_ways_give_the_table_that_driver_threads_give(spark, tmp_path, route, index):
    near, far = table(spark, tmp_path / "driver"), table(spark, tmp_path / "far", **SPREAD)
    # Small files, so that a partition has several file groups and inserts go to more than one new group.
    options = {
        "hoodie.index.type": index,
        "hoodie.parquet.small.file.limit": 0,
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": 40,
    }
    results = []
    for one in (near, far):
        one.upsert(rows(spark, 0, 300, 1), options=options)
        twice = rows(spark, 250, 400, 2).union(rows(spark, 380, 400, 3))
        results.append(one.upsert(twice, options=options))
        one.delete(rows(spark, 0, 500, 1).where("v % 7 = 0"), options=options)
    assert [result.route for result in results] == ["driver", "executors"]
    assert [(r.inserted, r.updated) for r in results] == [(100, 50)] * 2
    assert results[0].index.hits == 50
    for cost in (result.index for result in results):  # each candidate file is left out for a reason, or read
        assert cost.files == cost.files_pruned_by_range + cost.files_pruned_by_filter + cost.files_read > 0
    written = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]
    expected = near.snapshot().toArrow()
    assert_same_rows(far.snapshot().toArrow(), expected, ignore=written)
    assert_same_rows(read_hudi_rs(tmp_path / "far"), expected, ignore=written)
    assert len({slice_.group for slice_ in far.file_slices()}) > 6


@pytest.mark.parametrize("joined", [nightly(False, id="filters"), pytest.param(True, id="join")])
def test_tasks_that_share_partitions_and_files_read_in_parts_give_the_table_of_driver_threads(
    spark, tmp_path, monkeypatch, joined
):
    """What a write of terabytes does, at the size of a test."""
    monkeypatch.setattr(stage, "LARGEST_PARTITION", 0)
    monkeypatch.setattr(staging, "READ_BYTES", 1)
    monkeypatch.setattr(staging, "_PIECES_OF_TASK", 0)
    for name, value in {"_ALONE": 2, "_SHARED_BYTES": 3000, "_PAIRS_OF_TASK": 100}.items():
        monkeypatch.setattr(exchange, name, value)
    monkeypatch.setattr(locate, "_FOOTERS_OF_DRIVER", 0)
    monkeypatch.setattr(locate, "_FOOTERS_OF_TASK", 2)
    if joined:
        monkeypatch.setattr(exchange, "_FEW_PAIRS", -1)
        monkeypatch.setattr(exchange, "_MOST_PAIRS", 0)
    near, far = table(spark, tmp_path / "driver"), table(spark, tmp_path / "far", **SPREAD)
    options = {
        "hoodie.index.type": "BLOOM",
        "hoodie.parquet.small.file.limit": 0,
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": 40,
    }
    for one in (near, far):
        one.upsert(rows(spark, 0, 300, 1), options=options)
        result = one.upsert(rows(spark, 250, 400, 2).union(rows(spark, 380, 400, 3)), options=options)
        assert (result.inserted, result.updated, result.index.hits) == (100, 50, 50)
    assert result.route == "executors"
    assert (result.index.pruned_by_filter == 0) is joined
    written = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]
    assert_same_rows(far.snapshot().toArrow(), near.snapshot().toArrow(), ignore=written)


def test_nothing_stays_staged_after_a_write_or_a_refusal(spark, tmp_path, route):
    one = table(spark, tmp_path / "t", **SPREAD)
    one.upsert(rows(spark, 0, 10, 1))
    with pytest.raises(hoodie.HoodieError, match="null or empty"):
        one.upsert(rows(spark, 0, 10, 1).selectExpr("if(v = 3, null, id) as id", "p", "ts", "v"))
    assert not (tmp_path / "t" / ".hoodie" / ".temp" / "staged").exists() or not any(
        (tmp_path / "t" / ".hoodie" / ".temp" / "staged").iterdir()
    )


def test_the_input_is_evaluated_once(spark, tmp_path):
    counted = spark.sparkContext.accumulator(0)

    def count(batches):
        for batch in batches:
            counted.add(batch.num_rows)
            yield batch

    frame = rows(spark, 0, 50, 1)
    one = table(spark, tmp_path / "t", **SPREAD)
    one.upsert(frame.mapInArrow(count, frame.schema))
    one.upsert(frame.mapInArrow(count, frame.schema))
    assert counted.value == 100


@ways_and_indexes(("staged", "SIMPLE"))
def test_logs_tell_the_positions_of_their_rows_on_both_spread_ways(spark, tmp_path, route, index):
    far = table(spark, tmp_path / "far", table_type="MERGE_ON_READ", **SPREAD)
    options = {"hoodie.index.type": index, "hoodie.parquet.small.file.limit": 0}
    stored = rows(spark, 0, 300, 1).union(rows(spark, 9, 10, 1)).coalesce(1)  # k9 is in two rows of a file
    far.bulk_insert(stored, options=options)
    batch = rows(spark, 0, 20, 3).union(rows(spark, 11, 12, 2)).union(rows(spark, 295, 310, 3))  # k11 is there twice
    result = far.upsert(batch, options=options)
    assert (result.route, result.inserted) == ("executors", 10)
    far.delete(rows(spark, 0, 300, 1).where("v % 17 = 0"), options=options)
    told, untold = keys_by_position(far, tmp_path / "far")
    assert untold == []
    assert told.count("k9") == 2
    assert len(told) == 21 + 5 + 18
    by_key = hoodie.open_table(far.path, spark=spark, options={"hoodie.merge.use.record.positions": "false"})
    expected = by_key.snapshot().toArrow()
    assert_same_rows(far.snapshot().toArrow(), expected)
    once = pc.field("id") != "k9"  # of two rows of one key hudi-rs replaces one
    assert_same_rows(read_hudi_rs(tmp_path / "far").filter(once), expected.filter(once))
    far.upsert(rows(spark, 0, 3, 5), options={**options, "hoodie.write.record.positions": "false"})
    assert len(keys_by_position(far, tmp_path / "far")[1]) == 3


def keys_by_position(one, path):
    """The keys in the logs of a table whose blocks tell their positions, and those in others."""
    told, untold = [], []
    for slice_ in one.file_slices():
        for log in slice_.logs:
            for block in read_blocks((path / log.path).read_bytes(), log.path):
                deletes = block.kind is BlockKind.DELETE
                keys = decode_deletes(block.content)["record_key"] if deletes else data_rows(block, "")[RECORD_KEY]
                text = block.header.get(HeaderKey.RECORD_POSITIONS)
                assert block.header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS) is None
                (untold if text is None else told).extend(keys.to_pylist())
                if text is not None:
                    stored = pq.read_table(path / slice_.base.path).column(RECORD_KEY)
                    assert stored.take(pa.array(decode_positions(text))).to_pylist() == keys.to_pylist()
    return told, untold


@pytest.mark.parametrize(
    ("route", "table_type"),
    by_day(
        itertools.product(("shuffled", "staged"), ("MERGE_ON_READ", "COPY_ON_WRITE")),
        ("shuffled", "MERGE_ON_READ").__eq__,
    ),
    indirect=["route"],
)
def test_no_row_is_lost_where_the_table_has_keys_twice(spark, tmp_path, route, table_type):
    far = table(spark, tmp_path / "far", table_type=table_type, **SPREAD)
    options = {"hoodie.index.type": "SIMPLE", "hoodie.parquet.small.file.limit": 0}
    for _ in range(2):  # each key in two file groups, some in two rows of each
        far.bulk_insert(rows(spark, 0, 6, 1).union(rows(spark, 0, 2, 1)).coalesce(1), options=options)
    assert far.upsert(rows(spark, 0, 9, 2).where("id != 'k7'"), options=options).inserted == 2
    found = far.snapshot().select("id", "ts").distinct().collect()
    assert sorted(map(tuple, found)) == [(f"k{number}", 2) for number in (0, 1, 2, 3, 4, 5, 6, 8)]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kind", "index"),
    [
        ("COPY_ON_WRITE", "GLOBAL_SIMPLE"),
        nightly("COPY_ON_WRITE", "BLOOM"),
        nightly("MERGE_ON_READ", "BLOOM"),
        nightly("MERGE_ON_READ", "GLOBAL_SIMPLE"),
    ],
)
def test_two_keys_that_read_alike_are_refused_on_executors(spark, tmp_path, kind, index):
    options = {**SPREAD, "hoodie.index.type": index}
    far = hoodie.create_table(
        str(tmp_path / "t"), spark=spark, name="t", record_key="a,b", table_type=kind, options=options
    )
    one, other = ("x", "y,b:z"), ("x,b:y", "z")
    schema = "a string, b string"
    with pytest.raises(InvalidInput, match="have one record key"):
        far.upsert(spark.createDataFrame([one, other], schema))
    with pytest.raises(InvalidInput, match="have one record key"):
        far.bulk_insert(spark.createDataFrame([one, other], schema).coalesce(1))
    assert far.upsert(spark.createDataFrame([one, ("k", "k")], schema)).route == "executors"
    with pytest.raises(InvalidInput, match="have one record key"):
        far.delete(spark.createDataFrame([other, ("k", "k")], schema))
    with pytest.raises(InvalidInput, match="have one record key"):
        far.upsert(spark.createDataFrame([other], schema))
    assert sorted(tuple(row) for row in far.snapshot().select("a", "b").collect()) == [("k", "k"), one]


@pytest.mark.nightly
def test_a_key_that_a_log_deleted_is_one_row_after_an_insert_and_an_upsert(spark, tmp_path, route):
    table = hoodie.create_table(
        str(tmp_path / "t"),
        spark=spark,
        name="t",
        record_key="id",
        partition_by="p",
        ordering="ts",
        table_type="MERGE_ON_READ",
        options={"hoodie.index.type": "SIMPLE", "hoodie.parquet.small.file.limit": 0, **SPREAD},
    )

    def batch(version, keys):
        return spark.createDataFrame([(key, "x", version) for key in keys], "id string, p string, ts long")

    table.upsert(batch(1, "ab"))
    table.delete(batch(1, "a"))
    table.insert(batch(2, "a"))
    result = table.upsert(batch(3, "ab"))
    assert result.route == "executors"
    assert sorted((row.id, row.ts) for row in table.snapshot().collect()) == [("a", 3), ("b", 3)]
    table.delete(batch(4, "a"))
    table.upsert(batch(5, "a"))
    assert sorted((row.id, row.ts) for row in table.snapshot().collect()) == [("a", 5), ("b", 3)]
