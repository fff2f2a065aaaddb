"""Merge-on-Read tables that Hudi wrote, read through Spark: base files natively, slices with logs merged by tasks."""

import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie import create_table, open_table
from hoodie.errors import CorruptLogBlock, FileGone, InvalidInput, InvalidOption
from hoodie.hudi import write
from hoodie.model.files import BaseFile, FileGroupId, FileSlice
from hoodie.reading.slices.reader import merged_batches, slice_reader
from hoodie.reading.table_schema import table_schema
from hoodie.schema.schema import with_meta_fields
from hoodie.spark import sql
from hoodie.spark.read import kept_changes, local_logs
from hoodie.spark.read.merged_slices import pack
from hoodie.spark.read.positioned_slices import changes_of
from hoodie.spark.worker_errors import raise_worker_errors
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from hoodie.view.load import load_view
from hoodie.view.slices import merged_slices
from support.nightly import by_day, nightly
from support.oracles import META, assert_same_rows, expected_rows, fixture_facts, fixture_names, read_hudi_rs_optimized
from support.scans import plan_scan
from support.trips import table_options

Unpack = Callable[[str], Path]

#: What PySpark raises when a task failed: which of the two depends on whether it fed a broadcast.
TASK_FAILED = (PySparkException, Py4JJavaError)

MERGE_ON_READ = [name for name in fixture_names() if "mor" in name]
#: Without rows noted down; tests/interop/test_read_merge_on_read.py tells how those without Spark were checked.
UNTOLD = ["v3_mor_stock_ticks", "v6_mor_nested_types", "v6_mor_payload_partial_update"]
#: Executors read the logs, not threads of the driver.
EXECUTORS = {"hoodie.spark.driver.max.batch.bytes": 0}
#: Tasks read the logs before the query, for one scan of it.
TASKS = {"hoodie.spark.driver.max.batch.bytes": 1}
#: hudi-rs does not read these at all.
NOT_IN_HUDI_RS = ["v3_mor_stock_ticks", "v6_mor_nested_types"]


#: By day Spark reads those that differ in types, columns, keys, rules of merging, kinds of blocks and slices: the rest
#: have the same path, and their rows are read without Spark.
BY_DAY = (
    "mor_deletes", "mor_parquet_log_blocks", "mor_schema_evolution", "v6_mor_nested_types",
    "v6_mor_payload_partial_update",
)  # fmt: skip
#: Base files alone are Spark's to read.
OPTIMIZED = ("mor_pending_compaction", "mor_schema_evolution", "v9_mor_txns")


@pytest.mark.parametrize("name", by_day(MERGE_ON_READ, BY_DAY.__contains__))
def test_a_snapshot_has_the_rows_that_hudi_reads(name: str, spark: SparkSession, fixture_table: Unpack) -> None:
    path = fixture_table(name)
    snapshot = open_table(str(path), spark=spark).snapshot()
    expected = open_table(path).snapshot(meta=True).to_arrow() if name in UNTOLD else expected_rows(name)
    assert_same_rows(snapshot.toArrow(), expected)
    assert (
        snapshot.columns
        == open_table(path).snapshot(filters=[("_hoodie_record_key", "=", "")], meta=True).to_arrow().column_names
    )
    assert tuple(snapshot.columns[:5]) == META


@pytest.mark.filterwarnings("ignore::hoodie.errors.MissingFileIgnored")
@pytest.mark.parametrize("name", by_day(MERGE_ON_READ, OPTIMIZED.__contains__))
def test_read_optimized_has_the_rows_of_the_base_files(name: str, spark: SparkSession, fixture_table: Unpack) -> None:
    path = fixture_table(name)
    frame = open_table(str(path), spark=spark).snapshot(optimized=True)
    assert not in_python(frame)
    rows = frame.toArrow()
    if name not in fixture_names("hudi-0.15"):
        for log in path.rglob(".*.log.*"):
            if ".hoodie" not in log.parts:
                log.unlink()
        left = {"hoodie.read.ignore.missing.files": "true"}  # commits name the logs
        assert_same_rows(rows, open_table(path, options=left).snapshot(meta=True).to_arrow())
        if name in NOT_IN_HUDI_RS:
            return
        expected = read_hudi_rs_optimized(path)
    else:
        expected = expected_rows(name, "read_optimized")
    assert_same_rows(rows.select(expected.column_names), expected)


@pytest.mark.nightly
@pytest.mark.parametrize("name", by_day(MERGE_ON_READ, lambda name: "partial" in name))
def test_rows_are_the_same_by_position_and_by_key(name: str, spark: SparkSession, fixture_table: Unpack) -> None:
    path = str(fixture_table(name))
    by_key = open_table(path, spark=spark, options={"hoodie.merge.use.record.positions": "false"}).snapshot()
    for options in ({"hoodie.spark.read.cache.max.log.bytes": 0}, EXECUTORS, TASKS, {}):
        local_logs.forget_changes()
        by_position = open_table(path, spark=spark, options=options).snapshot()
        assert by_position.schema == by_key.schema
        assert_same_rows(by_position.toArrow(), by_key.toArrow())
        assert by_position.count() == by_key.count()


def test_a_query_reaches_the_base_files_of_slices_with_logs(spark: SparkSession, fixture_table: Unpack) -> None:
    table = open_table(str(fixture_table("mor_logs")), spark=spark)
    frame = table.snapshot().where("qty > 3").select("id")
    scans = [line for line in plan_of(frame).splitlines() if "FileScan parquet" in line]
    assert scans
    for scan in scans:
        assert "GreaterThan(qty,3)" in scan
        assert "ReadSchema: struct<id:string,qty:int" in scan  # and where a row is, in files of which some are replaced
    expected = expected_rows("mor_logs")
    kept = expected.filter(pc.greater(expected.column("qty"), 3)).column("id").to_pylist()
    assert sorted(row.id for row in frame.collect()) == sorted(kept)


def test_logs_of_a_small_table_are_read_by_the_driver_for_one_scan_of_spark(
    spark: SparkSession, fixture_table: Unpack
) -> None:
    path = fixture_table("mor_nonpartitioned")
    frame = open_table(str(path), spark=spark).snapshot()
    assert not in_python(frame)
    assert plan_of(frame).count("FileScan") == 1
    (log,) = path.glob(".*.log.1_*")
    log.write_bytes(b"rubbish" + log.read_bytes()[7:])  # as long as before: it is not read again
    assert_same_rows(frame.toArrow(), expected_rows("mor_nonpartitioned"))
    assert open_table(str(path), spark=spark).snapshot(columns=["id"]).count() == frame.count()
    local_logs.forget_changes()
    with pytest.raises(CorruptLogBlock, match=rf"{log.name} at byte 0"):
        open_table(str(path), spark=spark).snapshot()


def test_larger_logs_are_read_by_tasks_for_one_scan_of_spark(
    spark: SparkSession, fixture_table: Unpack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_threads(*_: object) -> None:
        raise AssertionError("read by the driver")

    monkeypatch.setattr(local_logs, "in_threads", no_threads)
    local_logs.forget_changes()
    path = fixture_table("mor_logs")
    frame = open_table(str(path), spark=spark, options=TASKS).snapshot()
    assert not in_python(frame)
    assert plan_of(frame).count("FileScan") == 1
    assert_same_rows(frame.toArrow(), expected_rows("mor_logs"))
    for log in path.rglob(".*.log.*"):
        log.write_bytes(b"rubbish" + log.read_bytes()[7:])  # as long as before: it is not read again
    assert open_table(str(path), spark=spark, options=TASKS).snapshot().count() == frame.count()
    local_logs.forget_changes()
    with pytest.raises(CorruptLogBlock, match="at byte 0"):
        open_table(str(path), spark=spark, options=TASKS).snapshot()


def test_files_of_logs_give_way_to_others_only_once_they_were_not_read_for_long(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "orders")
    table = create_table(
        path, spark=spark, name="orders", record_key="id", partition_by="day", ordering="ts", table_type="MERGE_ON_READ"
    )
    for version in (0, 1):
        rows = [(id_, day, version) for day in "ab" for id_ in range(3)]
        table.upsert(spark.createDataFrame(rows, "id int, day string, ts int"))
    scratch = local_logs._Scratch()
    monkeypatch.setattr(local_logs, "_scratch", scratch)
    most = 5000
    limit = {"hoodie.spark.read.cache.max.log.bytes": most}

    def rows_of(day: str) -> DataFrame:
        return table.snapshot(partitions=[day], options=limit).where("ts = 1")

    first = rows_of("a")
    (entry,) = scratch.entries
    entry.logs = replace(entry.logs, size=most)
    second = rows_of("b")
    assert in_python(second)  # no room
    assert (first.count(), second.count()) == (3, 3)
    monkeypatch.setattr(local_logs, "_SECONDS", 0.0)
    assert not in_python(rows_of("b"))
    assert scratch.folder is not None
    assert len(scratch.entries) == len(os.listdir(scratch.folder.name)) == 1


def test_a_session_keeps_what_it_read_of_logs(spark: SparkSession, fixture_table: Unpack) -> None:
    path = fixture_table("mor_nonpartitioned")
    table = open_table(str(path), spark=spark, options=EXECUTORS)
    frame = table.snapshot()
    rows = frame.toArrow()
    (log,) = path.glob(".*.log.1_*")
    log.write_bytes(b"rubbish" + log.read_bytes()[7:])  # as long as before: it is not read again
    assert_same_rows(table.snapshot().toArrow(), rows)
    spark.catalog.clearCache()
    with pytest.raises(TASK_FAILED, match=rf"{log.name} at byte 0"):
        table.snapshot().toArrow()


def test_a_task_tells_what_is_gone_after_all_its_rows(spark: SparkSession, fixture_table: Unpack) -> None:
    """Spark then passes over most of what it keeps, when it asks for what is gone."""
    scan = plan_scan(load_state(LocalStorage(fixture_table("mor_logs"))))
    assert scan.reader is not None
    changes = changes_of(spark, scan.reader, scan.log_slices, scan.columns)
    tasks: dict[int, list[bool]] = {}
    for row in changes.selectExpr("spark_partition_id() as task", "`hoodie.file` is not null as gone").collect():
        tasks.setdefault(row.task, []).append(row.gone)
    assert any(told.count(True) > 1 and told.count(False) > 1 for told in tasks.values())
    assert all(told == sorted(told) for told in tasks.values())


@pytest.mark.parametrize("route", ["driver", nightly("executors")])
def test_after_a_commit_only_the_logs_of_slices_that_it_wrote_to_are_read_again(
    spark: SparkSession, tmp_path: Path, route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_logs, "local_cores", lambda session: 8)  # a file for each slice
    read_by = EXECUTORS if route == "executors" else {}
    path = str(tmp_path / "orders")
    options = {"hoodie.parquet.small.file.limit": 0}
    table = create_table(
        path, spark=spark, name="orders", record_key="id", partition_by="day", ordering="ts", table_type="MERGE_ON_READ"
    )
    model = {(day, id_): 0 for day in "abcd" for id_ in range(5)}

    def write(days: str, version: int) -> None:
        changed = {(day, id_): version for day, id_ in model if day in days and (not version or id_ < 3 + version % 3)}
        model.update(changed)
        rows = [(id_, day, version) for (day, id_), version in changed.items()]
        table.upsert(spark.createDataFrame(rows, "id int, day string, ts int"), options=options)

    def damage(days: str) -> None:
        for day in days:
            for log in (tmp_path / "orders" / day).glob(".*.log.*"):
                log.write_bytes(b"rubbish" + log.read_bytes()[7:])  # as long as before

    def rows() -> dict[tuple[str, int], int]:
        return {
            (row.day, row.id): row.ts for row in open_table(path, spark=spark, options=read_by).snapshot().collect()
        }

    write("abcd", 0)
    write("abcd", 1)
    assert rows() == model
    damage("abc")
    for version, day in enumerate("dddddd", start=2):  # more commits than one query has frames
        write(day, version)
        assert rows() == model
    assert open_table(path, spark=spark, options=read_by).snapshot().where("day = 'a'").count() == 5
    write("c", 8)
    with pytest.raises(CorruptLogBlock if route == "driver" else TASK_FAILED, match="at byte 0"):
        rows()


def test_a_frame_that_a_lower_limit_has_no_room_for_leaves_the_cache(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "orders")
    create_table(
        path, spark=spark, name="orders", record_key="id", partition_by="day", ordering="ts", table_type="MERGE_ON_READ"
    )
    table = open_table(path, spark=spark, options=EXECUTORS)
    for version in (0, 1):
        rows = [(id_, day, version) for day in "ab" for id_ in range(3)]
        table.upsert(spark.createDataFrame(rows, "id int, day string, ts int"))
    assert table.snapshot().count() == 6
    kept = kept_changes._entries[spark][-1]
    assert len(kept.slices) == 2
    assert kept.changes.storageLevel.useMemory
    of_a = sum(log.size for slice_ in kept.slices for log in slice_.logs if slice_.group.partition == "a")
    lowered = {"hoodie.spark.read.cache.max.log.bytes": of_a}
    assert table.snapshot(partitions=["a"], options=lowered).where("ts = 1").count() == 3
    assert not kept.changes.storageLevel.useMemory


def test_a_frame_whose_files_were_cleaned_before_it_ran_fails_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = create_table(
        str(tmp_path / "orders"),
        spark=spark,
        name="orders",
        record_key="id",
        partition_by="day",
        ordering="ts",
        table_type="MERGE_ON_READ",
        options={
            "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
            "hoodie.cleaner.fileversions.retained": 1,
            **EXECUTORS,
        },
    )
    for version in (0, 1):
        rows = [(id_, day, version) for day in "ab" for id_ in range(3)]
        table.upsert(spark.createDataFrame(rows, "id int, day string, ts int"))
    early = table.snapshot()
    table.delete_partitions(["a"])
    table.clean()
    for _ in range(2):
        assert sorted(row.id for row in table.snapshot().where("ts = 1").collect()) == [0, 1, 2]
        with pytest.raises(FileGone), raise_worker_errors():
            early.collect()


def test_only_slices_with_logs_pass_python(spark: SparkSession, fixture_table: Unpack) -> None:
    table = open_table(str(fixture_table("v6_mor_avro_8_inserts_1_update")), spark=spark, options=EXECUTORS)
    assert in_python(table.snapshot())
    assert in_python(table.snapshot(partitions=["city=san_francisco"]))
    assert not in_python(table.snapshot(partitions=["city=chennai", "city=sao_paulo"]))
    compacted = open_table(str(fixture_table("v9_mor_txns")), spark=spark, options=EXECUTORS)
    assert not in_python(compacted.snapshot())
    rows = table.snapshot(partitions=["city=san_francisco", "city=chennai"]).toArrow()
    expected = expected_rows("v6_mor_avro_8_inserts_1_update")
    assert_same_rows(rows, expected.filter(pc.not_equal(expected.column("city"), "sao_paulo")))


@pytest.mark.parametrize(
    "name", [nightly("mor_deletes"), nightly("mor_schema_evolution"), "mor_pending_compaction", nightly("v9_mor_txns")]
)
def test_the_past_is_that_of_read_arrow(name: str, spark: SparkSession, fixture_table: Unpack) -> None:
    path = fixture_table(name)
    table = open_table(str(path), spark=spark)
    for instant in [instant.requested for instant in reversed(load_state(LocalStorage(path)).timeline.commits)]:
        frame = table.as_of(instant)
        before = open_table(path).snapshot(as_of=instant, meta=True).to_arrow()
        assert frame.columns == before.column_names
        assert_same_rows(frame.toArrow(), before)


def test_read_optimized_as_of_an_instant_has_the_base_files_of_then(spark: SparkSession, fixture_table: Unpack) -> None:
    path = fixture_table("mor_compacted")
    steps = {step["op"]: step["instant"] for step in reversed(fixture_facts("mor_compacted")["steps"])}
    table = open_table(str(path), spark=spark)
    first = table.snapshot(optimized=True, as_of=steps["upsert"]).toArrow()
    assert set(first.column("_hoodie_commit_time").to_pylist()) >= {steps["insert"]}
    assert pc.max(first.column("_hoodie_commit_time")).as_py() <= steps["upsert"]
    assert_same_rows(
        table.snapshot(optimized=True, as_of=steps["run compaction"]).toArrow(),
        table.snapshot(optimized=True).toArrow(),
    )


def test_columns_reach_base_files_and_logs(spark: SparkSession, fixture_table: Unpack) -> None:
    path = fixture_table("mor_logs")
    table = open_table(str(path), spark=spark)
    frame = table.snapshot(columns=["qty", "id"])
    assert frame.columns == ["qty", "id"]
    plan = plan_of(frame)
    assert "ReadSchema: struct<qty:int,id:string" in plan
    assert_same_rows(frame.toArrow(), expected_rows("mor_logs").select(["qty", "id"]))
    assert table.snapshot(columns=[]).count() == frame.count() == expected_rows("mor_logs").num_rows
    assert table.snapshot(optimized=True, columns=["id"]).columns == ["id"]
    with pytest.raises(InvalidInput, match="Did you mean 'qty'"):
        table.snapshot(columns=["qtty"])


@pytest.mark.parametrize("zone", ["America/Los_Angeles", nightly("Asia/Kolkata")])
def test_times_are_the_same_moments_in_any_session_zone(spark: SparkSession, fixture_table: Unpack, zone: str) -> None:
    path = fixture_table("mor_types")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        rows = open_table(str(path), spark=spark).snapshot().toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert_same_rows(rows, expected_rows("mor_types"))


def test_frames_of_logs_join_frames_of_files(spark: SparkSession, fixture_table: Unpack) -> None:
    """Merged rows have the types and the nullability, at every level, that Spark gives rows of files."""
    table = open_table(str(fixture_table("v6_mor_nested_types")), spark=spark)
    assert table.snapshot().schema == table.snapshot(optimized=True).schema
    assert table.snapshot().where(F.col("_hoodie_commit_time") > "").count() == 3


def test_options_of_reads_reach_the_tasks(spark: SparkSession, fixture_table: Unpack, tmp_path: Path) -> None:
    path = fixture_table("mor_deletes")
    options = {"hoodie.memory.merge.max.size": 1, **EXECUTORS}
    assert_same_rows(
        open_table(str(path), spark=spark, options=options).snapshot().toArrow(), expected_rows("mor_deletes")
    )
    nowhere = {**options, "hoodie.memory.spillable.map.path": str(tmp_path / "nowhere")}
    with pytest.raises(TASK_FAILED, match="nowhere"):
        open_table(str(path), spark=spark, options=nowhere).snapshot().toArrow()
    with pytest.raises(InvalidOption, match="expected bytes"):
        open_table(str(path), spark=spark, options={"hoodie.memory.merge.max.size": "much"})


def test_an_unreadable_log_names_itself(spark: SparkSession, fixture_table: Unpack) -> None:
    path = fixture_table("mor_nonpartitioned")
    (log,) = path.glob(".*.log.1_*")
    log.write_bytes(b"rubbish" + log.read_bytes())
    with pytest.raises(TASK_FAILED, match=rf"{log.name} at byte 0"):
        open_table(str(path), spark=spark, options=EXECUTORS).snapshot().toArrow()


def test_a_slice_reader_pickles(fixture_table: Unpack) -> None:
    state = load_state(LocalStorage(fixture_table("mor_logs")))
    view = load_view(state.storage, state.timeline, state.config)
    reader = slice_reader(state, with_meta_fields(table_schema(state, view)))
    sent = pickle.loads(pickle.dumps(reader))
    slices = [slice_ for slice_ in merged_slices(view).values() if slice_.logs]
    assert slices
    for slice_ in slices:
        here, there = (list(merged_batches(each, slice_, ["id", "qty"])) for each in (reader, sent))
        assert here == there


def test_tasks_take_about_the_same_number_of_bytes() -> None:
    def slice_of(number: int, size: int) -> FileSlice:
        group = FileGroupId("p", f"f{number}-0")
        return FileSlice(group, "1", BaseFile(group, "1", "0-0-0", size, f"f{number}"))

    mib = 1 << 20
    slices = [slice_of(number, number % 40 * mib) for number in range(200)]
    tasks = pack(slices, 4)
    assert sorted(s.group.file_id for task in tasks for s in task) == sorted(s.group.file_id for s in slices)
    loads = [sum(slice_.bytes for slice_ in task) // mib for task in tasks]
    assert 30 <= len(tasks) <= 40
    assert max(loads) - min(loads) <= 20
    assert max(loads) <= 128
    assert len(pack(slices[:3], 100)) == 3
    assert len(pack([slice_of(number, 1000) for number in range(1000)], 4)) <= 32
    assert [len(task) for task in pack([slice_of(0, 500 * mib)], 4)] == [1]


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())  # type: ignore[operator]


def in_python(frame: DataFrame) -> bool:
    return "MapInArrow" in str(frame._jdf.queryExecution().optimizedPlan().toString())  # type: ignore[operator]


def test_sql_and_hudis_options_make_tables_of_hudis_default_rule(spark: SparkSession, tmp_path: Path) -> None:
    stored = "hoodie.compaction.payload.class"
    for kind in ("cow", "mor"):
        made = str(tmp_path / kind)
        sql(
            spark,
            f"CREATE TABLE default_rule_{kind} (k STRING, ts BIGINT) USING hudi LOCATION '{made}' "
            f"TBLPROPERTIES (primaryKey = 'k', preCombineField = 'ts', type = '{kind}')",
        )
        properties = load_state(LocalStorage(made)).config.properties
        assert properties[stored].endswith(".OverwriteWithLatestAvroPayload")
        frame = spark.createDataFrame([("a", 1)], "k string, ts bigint")
        job = {
            **table_options("t", "k", ordering="ts"),
            "hoodie.datasource.write.table.type": {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}[kind],
        }
        write(frame, f"{made}2", job)
        properties = load_state(LocalStorage(f"{made}2")).config.properties
        assert properties[stored].endswith(".OverwriteWithLatestAvroPayload")


def test_rows_that_logs_replace_are_left_out_where_spark_skips_pages(spark: SparkSession, tmp_path: Path) -> None:
    """Positions are those of the file, not of the pages that are read."""
    path, count = str(tmp_path / "pages"), 100_000
    table = create_table(path, spark=spark, record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    rows = spark.range(count).selectExpr("id n", "lpad(cast(id as string), 7, '0') id", "0L ts", "'old' note")
    table.bulk_insert(rows.coalesce(1))
    table.upsert(rows.where("n % 7 = 0").selectExpr("n", "id", "1L ts", "'new' note"))
    table.delete(rows.where("n % 1000 = 3").select("id"))
    snapshot = open_table(path, spark=spark).snapshot()
    for least in (0, 1000, 50_000, count - 50):
        found = snapshot.where(f"n between {least} and {least + 49}").select("n", "note").collect()
        expected = {n: "old" if n % 7 else "new" for n in range(least, least + 50) if n % 1000 != 3}
        assert dict(map(tuple, found)) == expected
        assert len(found) == len(expected)
    assert snapshot.where("id = '0050001'").count() == 1
    assert snapshot.where("id = '0050003'").count() == 0


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"),
        ("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION"),
        ("spark.sql.sources.useV1SourceList", ""),
    ],
)
def test_settings_of_sparks_parquet_reader_leave_rows_as_they_are(
    spark: SparkSession, tmp_path: Path, setting: str, value: str
) -> None:
    path = str(tmp_path / "t")
    table = create_table(path, spark=spark, name="t", record_key="id", table_type="MERGE_ON_READ")
    columns = ("date'1500-01-01' AS day", "timestamp'1500-01-01 12:00:00' AS at")
    table.upsert(spark.range(2).selectExpr("id", *columns))
    table.upsert(spark.range(1).selectExpr("id", *columns))
    spark.conf.set(setting, value)
    try:
        rows = table.snapshot().where("day = '1500-01-01' AND at < '1500-01-02'")
        assert sorted((row.id, str(row.day), str(row.at)) for row in rows.collect()) == [
            (id, "1500-01-01", "1500-01-01 12:00:00") for id in range(2)
        ]
    finally:
        spark.conf.unset(setting)
