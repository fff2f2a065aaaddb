"""Base files read by Python tasks, as where Spark has no connector, against Spark's own reader.

    python -m bench.read_route

Of a Copy-on-Write table of orders, on local disk: CPU seconds of the whole process tree, and wall. And an upsert, which
reads by neither.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame

import hoodie
from bench.meter import Meter
from bench.workload import prepare
from hoodie.api.table import HoodieTable
from hoodie.spark.session import local_session

QUERIES: dict[str, Callable[[HoodieTable[DataFrame], dict[str, str]], object]] = {
    "all columns": lambda table, how: table.snapshot(options=how).write.format("noop").mode("overwrite").save(),
    "two columns, sum by status": lambda table, how: (
        table.snapshot(columns=["status", "price"], options=how).groupBy("status").sum("price").collect()
    ),
    "filter of a hundredth": lambda table, how: (
        table.snapshot(columns=["price", "ts"], filters="ts < 20000", options=how).agg({"price": "sum"}).collect()
    ),
}
ROUTES = ("spark", "arrow")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("bench.read_route", description=__doc__)
    parser.add_argument("--n", type=int, default=2_000_000, help="rows of the table")
    parser.add_argument("--data", type=Path, help="folder that keeps the workload for the next run")
    parser.add_argument("--rounds", type=int, default=3, help="after one that warms up and is not counted")
    given = parser.parse_args(arguments)
    spark = local_session("read-route", cores=2, memory="4g")
    with tempfile.TemporaryDirectory(prefix="read-route-") as scratch:
        workload = prepare(spark, given.n, given.data or Path(scratch))
        table = hoodie.create_table(
            f"{scratch}/table", spark=spark, name="orders", record_key="order_id", partition_by="ds", ordering="ts"
        )
        table.bulk_insert(spark.read.parquet(str(workload.orders)))
        print(
            "| query | CPU s, Spark | CPU s, Python tasks | CPU ratio | wall ratio |\n|---|---|---|---|---|", flush=True
        )
        changes = spark.read.parquet(str(workload.batch("tiny")))
        upsert = {"upsert of 1,000 rows": lambda table, how: table.upsert(changes, options=how)}
        for name, query in (QUERIES | upsert).items():
            cpu: dict[str, list[float]] = {route: [] for route in ROUTES}
            wall: dict[str, list[float]] = {route: [] for route in ROUTES}
            for _ in range(given.rounds + 1):
                for route in ROUTES:
                    with Meter() as meter:
                        query(table, {"hoodie.spark.read.route": route})
                    cpu[route].append(meter.reading.cpu)
                    wall[route].append(meter.reading.wall)
            by_spark, by_arrow = (median(cpu[route][1:]) for route in ROUTES)
            walls = [median(wall[route][1:]) for route in ROUTES]
            print(
                f"| {name} | {by_spark:.2f} | {by_arrow:.2f} | {by_arrow / by_spark:.2f} | {walls[1] / walls[0]:.2f} |",
                flush=True,
            )
    spark.stop()


if __name__ == "__main__":
    main()
