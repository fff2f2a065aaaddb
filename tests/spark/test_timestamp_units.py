"""Spark reads timestamps of tables with contradicting witnesses as all reads do, and writes into such tables."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie import create_table, open_table
from hoodie.errors import ContradictoryTimestamps
from hoodie.schema.conform import conform
from hoodie.spark import sql
from hoodie.spark.types import in_session_zone
from hoodie.storage.local import LocalStorage
from hoodie.table.properties import update_properties
from hoodie.table.state import load_state
from support.nightly import by_day, nightly
from support.timestamp_tables import AVRO, NUMBER, Witnesses, declare, declared, in_micros, make_table, unpacked

pytestmark = pytest.mark.filterwarnings("ignore::hoodie.errors.ContradictoryTimestamps")
BY_COMMIT = {
    "timestamp-millis": ["millis", "micros", "none"],
    "local-timestamp-millis": ["local millis", "local micros", "none"],
    "local-timestamp-micros": ["local millis", "local micros", "none"],
    "timestamp-micros": ["millis", "micros"],
}


def assert_equal(frame: DataFrame, rows: pa.Table) -> None:
    """Equal rows, in the microseconds that Spark has."""
    schema = in_session_zone(rows.schema, "UTC")
    assert frame.columns == rows.column_names
    found, told = (sorted(map(repr, conform(each, schema).to_pylist())) for each in (frame.toArrow(), rows))
    assert found == told
    assert told


@pytest.mark.parametrize("commit", by_day(BY_COMMIT, "local-timestamp-millis".__eq__))
def test_both_readers_agree_whatever_the_witnesses_say(commit: str, spark: SparkSession, tmp_path: Path) -> None:
    footers = ["", "timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros", "long"]
    said = {
        f"p{at}{n}": Witnesses(label, f) for at, label in enumerate(BY_COMMIT[commit]) for n, f in enumerate(footers)
    }
    storage = LocalStorage(tmp_path)
    make_table(storage, commit, said, [NUMBER, None, -1])
    table, rows = open_table(str(tmp_path), spark=spark), open_table(tmp_path).snapshot(meta=True).to_arrow()
    assert rows.num_rows == 3 * len(said)
    assert_equal(table.snapshot(), rows)
    assert_equal(table.snapshot(optimized=True), rows)
    assert_equal(table.changes("earliest"), open_table(tmp_path).changes("earliest", meta=True).to_arrow())
    count = sum(value is not None and value < 0 for value in in_micros(rows, "at"))
    moment = "timestamp_ntz" if commit.startswith("local") else "timestamp"
    assert table.snapshot().where(F.col("at") < F.lit("1970-01-01 00:00:00").cast(moment)).count() == count
    assert table.snapshot().count() == rows.num_rows


@pytest.mark.parametrize(
    "name",
    [
        nightly("trips_logical_types_json_cow_read_v6"),
        "trips_logical_types_json_mor_read_v8",
        nightly("v9_timebasedkeygen_epochmillis"),
    ],
)
def test_tables_of_hudi_are_read_alike_at_every_instant(name: str, spark: SparkSession, tmp_path: Path) -> None:
    path = unpacked(name, tmp_path)
    table, rows = open_table(str(path), spark=spark), open_table(path).snapshot(meta=True).to_arrow()
    assert rows.num_rows == (6 if name.startswith("v9") else 20)
    assert_equal(table.snapshot(), rows)
    assert_equal(table.changes("earliest"), open_table(path).changes("earliest", meta=True).to_arrow())
    for instant in load_state(LocalStorage(path)).timeline.commits[:2]:
        then = open_table(str(path), spark=spark).as_of(instant.requested)
        assert_equal(then, open_table(path).snapshot(as_of=instant.requested, meta=True).to_arrow())


def test_only_files_with_a_wrong_label_leave_sparks_own_reader(spark: SparkSession, tmp_path: Path) -> None:
    said = {"a": Witnesses("millis"), "b": Witnesses("micros"), "c": Witnesses("none"), "d": Witnesses("millis")}
    make_table(LocalStorage(tmp_path), "timestamp-millis", said, [NUMBER])
    with pytest.warns(ContradictoryTimestamps):
        frame = open_table(str(tmp_path), spark=spark).snapshot()
    assert sorted(Path(file).parent.name for file in frame.inputFiles()) == ["a", "d"]


def test_spark_writes_into_a_table_of_milliseconds_that_hudi_mislabelled(spark: SparkSession, tmp_path: Path) -> None:
    path = unpacked("trips_logical_types_json_cow_read_v6", tmp_path)
    before = {row["_row_key"]: row for row in open_table(path).snapshot(meta=True).to_arrow().to_pylist()}
    table = open_table(str(path), spark=spark, options={"hoodie.metadata.enable": "false"})
    batch = table.snapshot().where("partition_path = '2015/03/16'").limit(2)
    keys = [row["_row_key"] for row in batch.select("_row_key").collect()]
    changed = batch.where(F.col("_row_key").isin(keys)).withColumn("rider", F.lit("changed"))
    changed = changed.withColumn("timestamp", F.col("timestamp") + 1)
    changed = changed.withColumn("ts_millis", F.lit("2024-02-03 04:05:06.789123").cast("timestamp"))
    changed = changed.withColumn("local_ts_millis", F.lit("2024-02-03 04:05:06.789123").cast("timestamp_ntz"))
    table.upsert(changed)
    after = {row["_row_key"]: row for row in open_table(path).snapshot(meta=True).to_arrow().to_pylist()}
    assert after.keys() == before.keys()
    times = ["ts_millis", "ts_micros", "local_ts_millis", "local_ts_micros"]
    for key, row in after.items():
        if row["rider"] == "changed":
            assert {row[name].isoformat()[:26] for name in times[::2]} == {"2024-02-03T04:05:06.789000"}
        else:
            assert [row[name] for name in times] == [before[key][name] for name in times]
    assert sum(row["rider"] == "changed" for row in after.values()) == 2
    assert_equal(open_table(str(path), spark=spark).snapshot(), open_table(path).snapshot(meta=True).to_arrow())
    said = declared(LocalStorage(path))
    assert [said[name] for name in times] == [
        "timestamp-millis",
        "timestamp-micros",
        "local-timestamp-millis",
        "local-timestamp-micros",
    ]


def test_keys_and_paths_of_times_are_the_numbers_that_the_table_has(spark: SparkSession, tmp_path: Path) -> None:
    prefix = "hoodie.keygen.timebased."
    options = {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        prefix + "timestamp.type": "EPOCHMILLISECONDS",
        prefix + "output.dateformat": "yyyy-MM-dd",
    }
    rows = spark.sql(
        "select timestamp '2024-01-17 11:00:00.123' at, timestamp '2024-01-17 11:00:00' day, 1L seq, 'first' note"
    )
    # The first write has numbers in microseconds: of another table, to be declared as milliseconds.
    table = create_table(
        str(tmp_path), spark=spark, name="t", record_key="at", partition_by="day", ordering="seq", options=options
    )
    numbers = rows.withColumn("at", F.unix_millis("at")).withColumn("day", F.unix_millis("day"))
    table.insert(numbers)
    declare(LocalStorage(tmp_path), {"at": "timestamp-millis", "day": "timestamp-millis"})
    table.upsert(rows.withColumn("note", F.lit("second")))
    found = open_table(tmp_path).snapshot(meta=True).to_arrow().to_pylist()
    assert [(row["_hoodie_record_key"], row["_hoodie_partition_path"], row["note"]) for row in found] == [
        ("1705489200123", "2024-01-17", "second")
    ]


@pytest.mark.parametrize("version", [6, 9])
def test_a_partition_clause_names_a_time_that_the_table_holds_in_milliseconds(
    version: int, spark: SparkSession, tmp_path: Path
) -> None:
    options = {"hoodie.write.table.version": version}
    create_table(tmp_path / "t", name="t", record_key="id", ordering="seq", partition_by="at", options=options)
    table, at = open_table(tmp_path / "t"), pa.array([NUMBER, NUMBER + 1], pa.timestamp("ms", "UTC"))
    at_millis = {"type": ["null", AVRO["timestamp-millis"]], "name": "at", "default": None}
    columns = [{"name": "id", "type": ["null", "string"]}, {"name": "seq", "type": ["null", "long"]}, at_millis]
    schema = {"type": "record", "name": "t", "fields": columns}
    update_properties(table.storage, {"hoodie.table.create.schema": json.dumps(schema)})
    table.upsert(pa.table({"id": ["a", "b"], "seq": [1, 1], "at": at}))
    when = "TIMESTAMP '2019-12-31 23:59:59.999Z'"
    sql(spark, f"INSERT OVERWRITE hudi.`{tmp_path / 't'}` PARTITION (at = {when}) SELECT 'c', 1L WHERE false")
    assert table.snapshot(columns=["id"]).to_arrow().column("id").to_pylist() == ["b"]
