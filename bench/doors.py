"""Spark's own calls against this library's: python -m bench.doors.

save         df.write.format("hudi").save against table.upsert
load         spark.read.format("hudi").load against table.snapshot: a sum over all rows
merge        MERGE by key against table.upsert of the same rows
few          the same of 5 rows
micro-batch  1,000 rows through writeStream.format("hudi") against table.upsert of the same rows
view         a sum over a view USING hudi against table.snapshot
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.spark.session import local_session

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
}
BATCH_ROWS = 1000
CASES = ("save", "merge", "few", "load", "view", "stream")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("bench.doors", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=1_000_000, help="rows of the table")
    parser.add_argument("--rounds", type=int, default=5, help="after one that warms up and is not counted")
    parser.add_argument("--batches", type=int, default=500, help="micro-batches")
    parser.add_argument("--cases", default=",".join(CASES), help="which of them, and stream for the micro-batches")
    given = parser.parse_args(arguments)
    wanted = given.cases.split(",")
    spark = local_session("doors", **{"spark.sql.shuffle.partitions": 2, "spark.sql.session.timeZone": "UTC"})
    hoodie.register(spark)
    with tempfile.TemporaryDirectory(prefix="doors-") as scratch:
        folder = Path(scratch)
        base = folder / "base"
        table_at(spark, base).bulk_insert(rows(spark, 0, given.n, 1))
        changes = rows(spark, 0, given.n // 10, 2).localCheckpoint()
        print("| case | seconds | against | ratio |\n|---|---|---|---|", flush=True)
        few = changes.limit(5).localCheckpoint()
        for name, door, call, source in (
            ("save", save, upsert, changes),
            ("merge", merge, upsert, changes),
            ("few", merge, upsert, few),
            ("load", load, snapshot, changes),
            ("view", view, snapshot, changes),
        ):
            if name in wanted:
                sides = partial(door, spark, source), partial(call, spark, source)
                told(name, *compared(base, folder, *sides, given.rounds))
        if "stream" in wanted:
            stream(spark, folder, base, given.batches)
    spark.stop()


def rows(spark: SparkSession, low: int, high: int, version: int, parts: int = 2) -> DataFrame:
    return spark.range(low, high, 1, parts).selectExpr(
        "concat('k', id) as id", "cast(id % 4 as string) as p", f"{version}L as ts", "id * 1.5 as amount"
    )


def table_at(spark: SparkSession, path: Path) -> HoodieTable[DataFrame]:
    return hoodie.create_table(str(path), spark=spark, name="t", record_key="id", partition_by="p", ordering="ts")


def save(spark: SparkSession, changes: DataFrame, path: Path) -> object:
    return changes.write.format("hudi").options(**OPTIONS).mode("append").save(str(path))


def upsert(spark: SparkSession, changes: DataFrame, path: Path) -> object:
    return hoodie.open_table(str(path), spark=spark).upsert(changes)


def merge(spark: SparkSession, changes: DataFrame, path: Path) -> object:
    table = hoodie.open_table(str(path), spark=spark)
    return table.merge(changes).when_matched_update_all().when_not_matched_insert_all().execute()


def load(spark: SparkSession, changes: DataFrame, path: Path) -> object:
    return total(spark.read.format("hudi").load(str(path)))


def view(spark: SparkSession, changes: DataFrame, path: Path) -> object:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING hudi OPTIONS (path '{path}')")
    return total(spark.table("v"))


def snapshot(spark: SparkSession, changes: DataFrame, path: Path) -> object:
    return total(hoodie.open_table(str(path), spark=spark).snapshot())


def total(frame: DataFrame) -> object:
    return frame.selectExpr("sum(amount)", "max(id)", "max(ts)").first()


def compared(
    base: Path, folder: Path, door: Callable[[Path], object], call: Callable[[Path], object], rounds: int
) -> tuple[float, float]:
    """The medians of both, by turns on copies of the base."""
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for side in (number % 2, 1 - number % 2):
            copy = folder / "copy"
            shutil.copytree(base, copy)
            began = time.perf_counter()
            (door, call)[side](copy)
            taken[side].append(time.perf_counter() - began)
            shutil.rmtree(copy)
    return median(taken[0][1:]), median(taken[1][1:])


def stream(spark: SparkSession, folder: Path, base: Path, batches: int) -> None:
    """Micro-batches of a stream against upserts of the same rows; the first and the last of the batches, too."""
    files, streamed, called = folder / "files", folder / "streamed", folder / "called"
    there = hoodie.open_table(str(base), spark=spark).count()
    changed = rows(spark, 0, batches * BATCH_ROWS, 3, parts=batches).selectExpr(  # a table that grows is no flat one
        f"concat('k', substr(id, 2) % {there}) as id",
        f"cast(substr(id, 2) % {there} % 4 as string) as p",
        "ts",
        "amount",
    )
    changed.write.parquet(str(files))  # a file a batch
    for path in (streamed, called):
        shutil.copytree(base, path)
    source = spark.readStream.schema(rows(spark, 0, 1, 1).schema).option("maxFilesPerTrigger", 1).parquet(str(files))
    writer = (
        source.writeStream.format("hudi").options(**OPTIONS).option("checkpointLocation", str(folder / "checkpoint"))
    )
    seconds: list[float] = []
    query = writer.trigger(availableNow=True).start(str(streamed))
    seen = -1
    while query.isActive or (query.lastProgress and query.lastProgress["batchId"] > seen):
        for progress in query.recentProgress:
            if progress["batchId"] > seen and progress["numInputRows"]:
                seen = progress["batchId"]
                seconds.append(progress["durationMs"]["triggerExecution"] / 1000)
        time.sleep(0.05)
    query.awaitTermination()
    table, upserts = hoodie.open_table(str(called), spark=spark), []
    for file in sorted(files.glob("*.parquet")):
        began = time.perf_counter()
        table.upsert(spark.read.parquet(str(file)))
        upserts.append(time.perf_counter() - began)
    told("micro-batch", median(seconds[1:]), median(upserts[1:]))
    tenth = max(1, len(seconds) // 10)
    told("  last tenth against first", median(seconds[-tenth:]), median(seconds[1 : tenth + 1]))
    told("  the same of the upserts", median(upserts[-tenth:]), median(upserts[1 : tenth + 1]))


def told(name: str, seconds: float, against: float) -> None:
    print(f"| {name} | {seconds:.2f} | {against:.2f} | {seconds / against:.2f} |", flush=True)


if __name__ == "__main__":
    main()
