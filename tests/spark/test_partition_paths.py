"""Whatever a partition column holds, its rows are found again: by a scan, a filter, a partition path, other readers."""

import datetime as dt
from collections.abc import Sequence
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hoodie
from hoodie import HoodieTable, create_table, open_table
from hoodie.errors import InvalidInput
from support.nightly import by_day, nightly
from support.oracles import assert_same_rows, read_hudi_rs

NULL = "__HIVE_DEFAULT_PARTITION__"
VALUES = [
    "plain", "a/b", "100%", "%2F", "%", "k=v", "city=x", "two words", " lead", "trail ", "Zürich 日本 𝄞", "*", "[x]",
    "{a}", "a:b", "*:*", "C:\\x", "q?#&+", "'\"", "back\\slash", "_hidden", ".dot", "~", "1", "01", "1.0", "true",
    "2024-01-01", "default", NULL, "", None,
]  # fmt: skip
#: hudi-rs refuses paths with control characters, whoever wrote them.
CONTROL = ["tab\tnew\nline", "\x7f"]

STYLES = {
    "plain": {},
    "hive": {"hoodie.datasource.write.hive_style_partitioning": True},
    "encoded": {"hoodie.datasource.write.partitionpath.urlencode": True},
    "hive_encoded": {
        "hoodie.datasource.write.hive_style_partitioning": True,
        "hoodie.datasource.write.partitionpath.urlencode": True,
    },
}
SPREAD = {"hoodie.spark.driver.max.batch.bytes": "0"}
COLUMNS = ["id", "city", "ts"]


def rows(cities: Sequence[str | None], ts: int = 1) -> pa.Table:
    ids = [f"k{number}" for number in range(len(cities))]
    return pa.table({"id": ids, "city": pa.array(cities, pa.string()), "ts": pa.array([ts] * len(ids), pa.int64())})


def new_table(spark: SparkSession, path: Path, style: str, **options: str) -> HoodieTable:
    return create_table(
        str(path), spark=spark, name="t", record_key="id", partition_by="city", ordering="ts",
        options={**STYLES[style], **options},
    )  # fmt: skip


ASKED = ["plain", "a/b", "100%", "k=v", "[x]", NULL, "", None]


def assert_filters(table: HoodieTable) -> None:
    found = tagged([table.snapshot().where(is_value(value)) for value in ASKED])
    by_tag = sorted(zip(found.column("tag").to_pylist(), found.column("city").to_pylist(), strict=True))
    assert by_tag == list(enumerate(ASKED))


@pytest.mark.parametrize("style", by_day(STYLES, lambda style: style == "hive_encoded"))
def test_values_have_folders_of_their_own_but_for_nothing(style: str, spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(spark, tmp_path / "t", style)
    table.bulk_insert(spark.createDataFrame(rows(VALUES)))
    read = open_table(table.path).snapshot(meta=True).to_arrow()
    folders = dict(zip(read.column("city").to_pylist(), read.column("_hoodie_partition_path").to_pylist(), strict=True))
    assert len({folders[value] for value in (None, "", NULL)}) == 1
    assert len(set(folders.values())) == len(VALUES) - 2
    asked = ["plain", "*", "Zürich 日本 𝄞", "q?#&+"]
    part = table.snapshot(partitions=[folders[value] for value in asked])
    assert sorted(part.toArrow().column("city").to_pylist()) == sorted(asked)


@pytest.mark.parametrize("style", by_day(STYLES, lambda style: style == "hive_encoded"))
def test_executors_write_every_value(style: str, spark: SparkSession, tmp_path: Path) -> None:
    values = [*ASKED, *VALUES[7:-1:4], *(CONTROL if "encoded" in style else [])]  # all of them on driver threads: above
    table = new_table(spark, tmp_path / "t", style, **SPREAD)
    table.bulk_insert(spark.createDataFrame(rows(values)))
    result = table.upsert(spark.createDataFrame(rows(values, 2)))
    assert (result.route, result.inserted, result.updated) == ("executors", 0, len(values))
    assert_reads(table, rows(values, 2))
    assert_filters(table)


@pytest.mark.parametrize("style", by_day(STYLES, ("plain", "hive_encoded").__contains__))
def test_control_characters_are_read_by_spark_and_arrow(style: str, spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(spark, tmp_path / "t", style)
    table.bulk_insert(spark.createDataFrame(rows(CONTROL)))
    assert_same_rows(table.snapshot().toArrow().select(COLUMNS), rows(CONTROL))
    assert_same_rows(open_table(table.path).snapshot(columns=COLUMNS).to_arrow(), rows(CONTROL))


FOLDERS = ["[x] {a}", "* *:*", "100% %20", "back\\slash", "é ~", "k=v"]


@pytest.mark.parametrize(
    ("style", "folder"),
    by_day(product(["plain", "hive"], FOLDERS), lambda case: (case[0] == "hive") == (case[1] in FOLDERS[::2])),
)
def test_a_table_may_lie_in_a_folder_of_any_name(folder: str, style: str, spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(spark, tmp_path / folder / "t", style)
    table.bulk_insert(spark.createDataFrame(rows(["x", "y"])))
    table.upsert(spark.createDataFrame(rows(["x", "y"], 2)))
    assert_reads(table, rows(["x", "y"], 2))


def test_executors_refuse_a_value_that_makes_no_folder(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(spark, tmp_path / "t", "plain", **SPREAD)
    with pytest.raises(InvalidInput, match="make no folder of the table"):
        table.upsert(spark.createDataFrame(rows(["fine", "p/.hoodie"])))
    assert not list(tmp_path.glob("t/.hoodie/2*"))  # it had not even begun
    assert not list(tmp_path.rglob("*.parquet"))


def test_executors_refuse_partitions_within_partitions(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(spark, tmp_path / "t", "plain", **SPREAD)
    told = r"'a/b' would lie inside partition 'a'.*urlencode=true"
    with pytest.raises(InvalidInput, match=told):
        table.upsert(spark.createDataFrame(rows(["a/b", "a", "a0"])))
    table.upsert(spark.createDataFrame(rows(["a/b"])))
    with pytest.raises(InvalidInput, match=told):
        table.upsert(spark.createDataFrame(rows(["a"])))


# --- pruning ---


def test_a_filter_on_the_partition_column_prunes_folders(spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(spark, tmp_path / "t", "hive")
    table.bulk_insert(spark.createDataFrame(rows(["a", "b", "c"])))
    frame = table.snapshot().where("city = 'a' and ts > 0")
    plan = plan_text(frame)
    assert "PartitionFilters: [isnotnull(city" in plan
    assert "= a)]" in plan
    assert "GreaterThan(ts,0)" in plan
    assert files_read(frame) == 1
    assert frame.toArrow().column("city").to_pylist() == ["a"]
    assert files_read(table.snapshot().where("city > 'a'")) == 2


@pytest.mark.parametrize("style", ["plain", "hive"])
def test_partitions_that_are_not_asked_for_are_not_opened(style: str, spark: SparkSession, tmp_path: Path) -> None:
    table = new_table(spark, tmp_path / "t", style)
    table.bulk_insert(spark.createDataFrame(rows(["a", "b c", "d"])))
    folder = "city=b c" if style == "hive" else "b c"
    frame = table.snapshot(partitions=[folder])
    read = [unquote(urlsplit(row["f"]).path) for row in frame.select(F.col("_metadata.file_path").alias("f")).collect()]
    assert [Path(path).parent for path in read] == [Path(table.path) / folder]
    assert {Path(unquote(urlsplit(path).path)).parent.name for path in frame.inputFiles()} == {folder}
    for file in Path(table.path).rglob("*.parquet"):
        if file.parent.name != folder:
            file.write_bytes(b"")
    assert frame.select("city").toArrow().column("city").to_pylist() == ["b c"]
    assert table.snapshot(partitions=["no such"]).toArrow().num_rows == 0


@pytest.mark.parametrize("value", ["b%41", None], ids=["escape", "null"])
def test_one_value_that_needs_care_takes_pruning_away_but_no_row(
    value: str | None, spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(spark, tmp_path / "t", "hive")
    table.bulk_insert(spark.createDataFrame(rows(["a", value])))
    frame = table.snapshot().where(is_value(value))
    assert "PartitionFilters: []" in plan_text(frame)
    assert frame.toArrow().column("city").to_pylist() == [value]
    assert_reads(table, rows(["a", value]))


def test_two_levels_are_pruned_each(spark: SparkSession, tmp_path: Path) -> None:
    table = create_table(
        str(tmp_path / "t"), spark=spark, name="t", record_key="id", partition_by=["day", "number"], ordering="ts",
        options=STYLES["hive"],
    )  # fmt: skip
    batch = spark.range(6).selectExpr(
        "cast(id as string) id",
        "1L ts",
        "date_add(date'2024-02-28', cast(id % 2 as int)) day",
        "cast(id as int) number",
    )
    table.bulk_insert(batch)
    frame = table.snapshot().where("day = date'2024-02-29' and number >= 3")
    assert files_read(frame) == 2
    assert sorted(frame.toArrow().column("number").to_pylist()) == [3, 5]
    assert_same_rows(table.snapshot().toArrow().select(["id", "ts", "day", "number"]), batch.toArrow())


@pytest.mark.parametrize(
    ("kind", "value", "folder"),
    [
        ("timestamp", "timestamp'2024-03-01 01:02:03.5'", "1709254923500000"),
        ("timestamp_ntz", "timestamp_ntz'2024-03-01 01:02:03.5'", "1709254923500000"),
        ("binary", "X'616263'", "616263"),
        ("double", "1e10D", "1.0E10"),
        ("decimal(20,10)", "1e-7BD", "1.000E-7"),
        ("date", "date'1969-12-31'", "1969-12-31"),
        ("boolean", "true", "true"),
        ("tinyint", "-5Y", "-5"),
        ("string", "'007'", "007"),
    ],
)
@pytest.mark.parametrize("style", [nightly("plain"), "hive"])
def test_partition_columns_of_every_type_come_back(
    kind: str, value: str, folder: str, style: str, spark: SparkSession, tmp_path: Path
) -> None:
    table = new_table(spark, tmp_path / "t", style)
    batch = spark.sql(f"select 'k' id, cast({value} as {kind}) city, 1L ts")
    table.upsert(batch)
    assert table.upsert(batch).updated == 1
    assert (Path(table.path) / (f"city={folder}" if style == "hive" else folder)).is_dir()
    stored = open_table(table.path).snapshot(columns=COLUMNS).to_arrow()
    assert_same_rows(stored, batch.toArrow())
    assert_same_rows(table.snapshot().where(f"city = cast({value} as {kind})").select(COLUMNS).toArrow(), stored)
    theirs = read_hudi_rs(table.path).select(COLUMNS)
    assert_same_rows(theirs.set_column(1, "city", theirs.column("city").cast(stored.schema.field("city").type)), stored)


# --- what the tests ask with ---


def is_value(value: str | None) -> Any:
    return F.col("city").isNull() if value is None else F.col("city") == value


def assert_reads(table: HoodieTable, expected: pa.Table) -> None:
    assert_same_rows(table.snapshot().select(COLUMNS).toArrow(), expected, sort_by=["id"])
    assert_same_rows(open_table(table.path).snapshot(columns=COLUMNS).to_arrow(), expected, sort_by=["id"])
    assert_same_rows(read_hudi_rs(table.path).select(COLUMNS), expected, sort_by=["id"])


def tagged(frames: Sequence[DataFrame]) -> pa.Table:
    """The rows of all frames, with their number as column `tag`, by one Spark job."""
    parts = [frame.withColumn("tag", F.lit(number)) for number, frame in enumerate(frames)]
    return reduce(DataFrame.union, parts).toArrow()


def plan_text(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def files_read(frame: DataFrame) -> int:
    """How many files the scan opens once partitions are pruned."""
    frame.collect()
    return files_opened(frame)


def files_opened(frame: DataFrame) -> int:
    """The same, of a frame whose rows were collected."""
    plan = frame._jdf.queryExecution().executedPlan()
    scan = plan.collectLeaves().head()
    return int(scan.metrics().apply("numFiles").value())


def test_spark_writes_and_reads_folders_of_a_unit_of_time(spark: SparkSession, tmp_path: Path) -> None:
    path, late = str(tmp_path / "t"), "at >= timestamp'2024-02-03 00:00:00Z'"
    create_table(path, record_key="id", partition_by=["city", "day(at)"]).upsert(times(0, 3))
    table = open_table(path, spark=spark)
    result = table.upsert(spark.createDataFrame(times(2, 6)))
    assert (result.inserted, result.updated) == (3, 1)
    hoodie.register(spark)
    for frame in (table.snapshot(), spark.read.format("hudi").load(path)):
        assert sorted(row.id for row in frame.where(late).collect()) == [3, 4, 5]
    assert table.snapshot(filters=late).count() == 3
    scan = open_table(path).scan(filters="at >= '2024-02-03'")
    assert scan.partitions == ("oslo/2024-02-04", "rome/2024-02-03", "rome/2024-02-05")
    assert_same_rows(table.snapshot(meta=False).toArrow(), open_table(path).to_arrow())


@pytest.mark.parametrize("zone", [nightly("UTC"), "America/Los_Angeles"])
def test_a_filter_on_a_time_leaves_out_its_folders(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    create_table(tmp_path / "t", record_key="id", partition_by="day(at)").upsert(times(0, 20))  # each at 10 UTC
    third, utc = dt.datetime(2024, 2, 3, tzinfo=dt.UTC), zone == "UTC"
    filters = {  # ids in UTC, in Los Angeles, and files in UTC; elsewhere a day before and after may be opened, too
        "at >= timestamp'2024-02-03 03:00:00'": (range(3, 20), range(4, 20), 17),
        "at < '2024-02-03T10:00:00+05:30'": (range(3), range(3), 4),
        "at between date'2024-02-03' and date'2024-02-05'": (range(3, 5), range(3, 5), 3),
        "at in (timestamp'2024-02-03 02:00:00', timestamp'2024-02-03 10:00:00')": ([3], [3], 1),
        "at <> timestamp'2024-02-03 10:00:00Z' and id < 5": ([0, 1, 2, 4], [0, 1, 2, 4], 20),
        (("at", ">", third), ("at", "<=", third + dt.timedelta(days=1))): ([3], [3], 2),
    }
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        table = open_table(tmp_path / "t", spark=spark)
        for given, (ids, there, files) in filters.items():
            frame = table.snapshot(filters=given if isinstance(given, str) else list(given))
            assert sorted(row.id for row in frame.collect()) == list(ids if utc else there), given
            opened = files_opened(frame)
            assert opened == files if utc else opened <= min(files + 2, 20), (given, opened)
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


def times(first: int, end: int) -> pa.Table:
    ids = range(first, end)
    days = [dt.datetime(2024, 1, 31, 10, tzinfo=dt.UTC) + dt.timedelta(days=number) for number in ids]
    cities = [("oslo", "rome")[number % 2] for number in ids]
    return pa.table({"id": ids, "city": cities, "at": pa.array(days, pa.timestamp("us", "UTC"))})


@pytest.mark.parametrize(("table_type", "shown"), [("COPY_ON_WRITE", "old"), ("MERGE_ON_READ", "new")])
def test_spark_shows_the_folder_of_a_row_that_may_not_move_once_it_is_in_a_base_file(
    spark: SparkSession, tmp_path: Path, table_type: str, shown: str
) -> None:
    options = {
        **STYLES["hive"],
        "hoodie.index.type": "GLOBAL_SIMPLE",
        "hoodie.simple.index.update.partition.path": "false",
    }
    path = str(tmp_path / "stays")
    table = create_table(path, record_key="id", partition_by="p", table_type=table_type, options=options)
    table.upsert(pa.table({"id": ["a"], "p": ["old"]}))
    table.upsert(pa.table({"id": ["a"], "p": ["new"]}))
    assert open_table(path).snapshot().to_arrow()["p"].to_pylist() == ["new"]
    assert [row.p for row in open_table(path, spark=spark).snapshot().collect()] == [shown]
