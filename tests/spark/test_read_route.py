"""Base files that Python tasks read for Spark, as where its Java side has no connector: the same rows as by its own
reader, and no more of the files than a read asks for."""

import datetime as dt
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.config.read import ReadRoute
from hoodie.errors import InvalidOption
from hoodie.model.files import BaseFile, FileGroupId
from hoodie.reading.slices.reader import base_batches
from hoodie.spark.read import route
from hoodie.spark.read.arrow_files import file_parts
from hoodie.spark.read.route import Route, route_to
from hoodie.storage import FsspecStorage, LocalStorage
from support.nightly import nightly

ARROW = {"hoodie.spark.read.route": "arrow"}
DAY = dt.date(2026, 11, 1)


def batch(ids: range, note: str = "first") -> pa.Table:
    return pa.table(
        {
            "id": [f"k{number:04}" for number in ids],
            "city": ["oslo" if number % 2 else "rome" for number in ids],
            "ts": [1 if note == "first" else 2 for _ in ids],
            "day": [DAY + dt.timedelta(days=number % 5) for number in ids],
            "at": [dt.datetime(2026, 1, 1, 12, number % 60, tzinfo=dt.UTC) for number in ids],
            "price": [float(number) for number in ids],
            "note": [note] * len(ids),
        }
    )


@pytest.fixture(params=[nightly("COPY_ON_WRITE"), "MERGE_ON_READ"])
def table(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    made = hoodie.create_table(
        tmp_path / "t",
        spark=spark,
        name="trips",
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type=request.param,
    )
    made.upsert(batch(range(100)))
    made.upsert(batch(range(90, 110), "second"))
    return made


def in_python(frame: Any) -> int:
    """How many functions of ours a plan has."""
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain()
    return text.getvalue().count("MapInArrow")


def rows(frame: Any) -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in frame.collect()), key=lambda row: str(row["id"]))


def test_both_routes_give_the_same_rows(table: Any) -> None:
    first = table.history()[-1][0].requested
    reads = [
        lambda **how: table.snapshot(**how),
        lambda **how: table.snapshot(columns=["price", "id"], **how),
        lambda **how: table.snapshot(partitions=["oslo"], **how),
        lambda **how: table.snapshot(filters="note = 'second' and price > 95", columns=["id"], **how),
        lambda **how: table.snapshot(optimized=True, **how),
        lambda **how: table.as_of(first, **how),
        lambda **how: table.changes(first, **how),
    ]
    for read in reads:
        native, arrow = read(options={"hoodie.spark.read.route": "spark"}), read(options=ARROW)
        assert arrow.schema == native.schema
        assert rows(arrow) == rows(native)
    assert in_python(table.snapshot(optimized=True, options=ARROW)) == 1
    assert in_python(table.snapshot(optimized=True)) == 0
    assert table.snapshot(options=ARROW).count() == 110
    assert table.snapshot(columns=[], options=ARROW).count() == 110


def test_keys_are_found_and_rows_written_without_spark_s_reader(table: Any, spark: SparkSession) -> None:
    spread = {**ARROW, "hoodie.spark.driver.max.batch.bytes": "0", "hoodie.index.type": "SIMPLE"}
    done = table.upsert(spark.createDataFrame(batch(range(105, 112), "third")), options=spread)
    assert (done.updated, done.inserted, done.route) == (5, 2, "executors")
    found = {row["id"]: row["note"] for row in rows(table.snapshot(options=ARROW))}
    assert len(found) == 112
    assert {note for key, note in found.items() if key >= "k0105"} == {"third"}
    assert [row["id"] for row in rows(table.get(spark.createDataFrame(batch(range(1, 2))), options=ARROW).rows)] == [
        "k0001"
    ]


def test_explain_says_who_reads(table: Any) -> None:
    assert "base files read by Spark" in str(table.scan())
    told = str(table.scan(options=ARROW))
    assert "base files read by Python tasks (hoodie.spark.read.route=arrow)" in told


def test_a_misspelt_route_is_an_error(table: Any) -> None:
    with pytest.raises(InvalidOption, match="expected one of AUTO, SPARK, ARROW"):
        table.snapshot(options={"hoodie.spark.read.route": "native"})


def test_a_connector_by_another_name_is_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `s3a` is for `s3`: here `file` stands for a scheme that Spark does not know."""
    hoodie.create_table(tmp_path, name="t", record_key="id")
    monkeypatch.setattr(route, "_routes", WeakKeyDictionary())
    monkeypatch.setattr(route, "_CONNECTORS", {"memory": ("memory", "file")})
    storage = FsspecStorage(f"memory://{tmp_path}")
    assert route_to(spark, storage, ReadRoute.AUTO) == Route(f"file://{tmp_path}")
    arrow = route_to(spark, storage, ReadRoute.ARROW)
    assert (arrow.root, str(arrow)) == (None, "Python tasks (hoodie.spark.read.route=arrow)")


def test_a_connector_that_cannot_reach_the_table_is_told_and_not_taken(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(route, "_routes", WeakKeyDictionary())
    monkeypatch.setattr(route, "_CONNECTORS", {"memory": ("file",)})
    storage = FsspecStorage(f"memory://{tmp_path}/nothing-there")
    for _ in range(2):
        assert "Spark cannot read file://: [PATH_NOT_FOUND]" in route_to(spark, storage, ReadRoute.AUTO).why
    assert len([record for record in caplog.records if record.name == "hoodie.storage"]) == 1
    asked = route_to(spark, storage, ReadRoute.SPARK)
    assert asked == Route(f"memory://{tmp_path}/nothing-there")


# --- what a task reads ---


def test_a_large_file_is_read_by_many_tasks_each_row_group_by_one(tmp_path: Path) -> None:
    file = base_file(tmp_path, pa.table({"id": pa.array(range(5_000), pa.int64())}), row_group_size=1_000)
    schema, storage = pa.schema([("id", pa.int64())]), LocalStorage(tmp_path)
    for pieces in (1, 2, 3, 7, 100):
        step = -(-file.size // pieces)
        parts = [range(begin, min(begin + step, file.size)) for begin in range(0, file.size, step)]
        read = [rows for part in parts for rows in base_batches(storage, file, schema, part=part)]
        assert pa.concat_tables(read).column("id").to_pylist() == list(range(5_000))


def test_files_are_cut_at_the_size_of_a_task_and_small_ones_are_left_whole() -> None:
    group = FileGroupId("oslo", "f-0")
    small, large = (BaseFile(group, "1", "0-0-0", size, f"{size}.parquet") for size in (1_000, 1 << 30))
    parts = file_parts([small, large], 4)
    assert [(part.begin, part.end) for part in parts if part.file == small] == [(0, 1_000)]
    of_large = [part for part in parts if part.file == large]
    assert len(of_large) == 8
    assert [part.end for part in of_large[:-1]] == [part.begin for part in of_large[1:]]
    assert of_large[-1].end == large.size
    assert [(part.begin, part.end) for part in file_parts([small], 4)] == [(0, 1_000)]


def test_row_groups_that_a_filter_rules_out_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "t", spark=spark, name="t", record_key="id", options=ARROW)
    table.bulk_insert(batch(range(50)))
    path = tmp_path / "t" / next(slice_.base.path for slice_ in table.scan().slices)
    rewritten = pq.read_table(path)
    pq.write_table(rewritten, path, row_group_size=10)
    end = pq.ParquetFile(path).metadata.row_group(4)
    damaged = bytearray(path.read_bytes())
    for number in range(end.num_columns):  # the last ten rows cannot be read any more
        column = end.column(number)
        at = min(filter(None, (column.dictionary_page_offset, column.data_page_offset)))
        damaged[at : at + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(bytes(damaged))
    tuples, of_function = [("id", "in", ["k0001", "k0039"])], "id = 'k0003' and upper(note) = 'FIRST'"
    for filters, count in (("id < 'k0040'", 40), (tuples, 2), (of_function, 1)):
        assert table.snapshot(filters=filters).count() == count


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_times_go_by_the_session_s_zone_whoever_reads(table: Any, spark: SparkSession, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        filters = "at >= timestamp '2026-01-01 07:30:00' and day = date '2026-11-02'"
        native = table.snapshot(filters=filters)
        assert rows(table.snapshot(filters=filters, options=ARROW)) == rows(native)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def base_file(folder: Path, rows: pa.Table, row_group_size: int) -> BaseFile:
    name = "f-0_0-0-0_20260101000000000.parquet"
    pq.write_table(rows, folder / name, row_group_size=row_group_size)
    return BaseFile(FileGroupId("", "f-0"), "20260101000000000", "0-0-0", (folder / name).stat().st_size, name)
