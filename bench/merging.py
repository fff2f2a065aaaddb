"""A MERGE that sets one column of the rows of a batch: by the key, by a join of the whole table, and by plain Spark,
which joins and writes everything again."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import hoodie
from bench import normaliser
from bench.cases import PLAIN, Bench, Case, Contender, Phases, checksum, size
from hoodie.spark.merge import run


def cases(bench: Bench) -> Iterator[Case]:
    """A case for each batch that changes rows of many files."""
    for batch in ("spread", "recent"):
        source = bench.workload.batch(batch)
        changes = bench.spark.read.parquet(str(source))
        contenders = (
            Contender(PLAIN, lambda folder: None, partial(_rewrite, bench, changes), partial(_of_plain, bench)),
            _merge("MERGE by key", bench, changes, run.plan_by_key),
            _merge("MERGE by a join", bench, changes, lambda *_: None),
        )
        yield Case(f"merge of one column: {batch}", size(source), contenders)


def _merge(name: str, bench: Bench, changes: DataFrame, plan: Callable[..., object]) -> Contender:
    """plan  in place of `plan_by_key`"""

    def merge(folder: Path) -> Phases:
        table = hoodie.open_table(str(folder / "table"), spark=bench.spark)
        merged = table.merge(changes, "target.order_id = source.order_id and target.ds = source.ds")
        with patch.object(run, "plan_by_key", plan):
            return merged.when_matched_update({"price": "source.price"}).execute().seconds

    def check(folder: Path) -> object:
        return checksum(hoodie.open_table(str(folder / "table"), spark=bench.spark).snapshot())

    return Contender(name, bench.copy_of_base_table, merge, check)


def _rewrite(bench: Bench, changes: DataFrame, folder: Path) -> Phases:
    base = normaliser.read(bench.spark, bench.workload.base)
    given = changes.select("order_id", "ds", F.col("price").alias("new"))
    rows = base.join(given, ["order_id", "ds"], "left").withColumn("price", F.coalesce("new", "price")).drop("new")
    normaliser.bulk(rows.select(*base.columns), folder / "table")
    return {}


def _of_plain(bench: Bench, folder: Path) -> object:
    return checksum(normaliser.read(bench.spark, folder / "table"))
