"""The table that most Spark tests write: rows k0, k1 and so on by id, in partitions of p, ordered by ts."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import hoodie
from hoodie.api.table import HoodieTable


def rows(spark: SparkSession, low: int, high: int, version: int, partition: str = "id % 3") -> DataFrame:
    """Rows of the keys from low (inclusive) to high; `partition` is SQL on the key's number."""
    return spark.range(low, high).selectExpr(
        "concat('k', id) as id", f"cast({partition} as string) as p", f"{version}L as ts", f"id * {version} as v"
    )


def table(
    spark: SparkSession,
    path: Path | str,
    table_type: str = "COPY_ON_WRITE",
    *,
    partition_by: str = "p",
    **options: object,
) -> HoodieTable:
    return hoodie.create_table(
        str(path),
        spark=spark,
        name="t",
        record_key="id",
        partition_by=partition_by,
        ordering="ts",
        table_type=table_type,
        options=options,
    )
