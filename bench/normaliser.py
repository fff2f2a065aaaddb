"""What a user without keyed tables does: join, and write everything again as partitioned Parquet."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession


def rewrite(spark: SparkSession, base: Path, changes: DataFrame, into: Path, partition_by: str = "ds") -> None:
    """Base rows without a change, and the changes, written whole."""
    kept = read(spark, base).join(changes, "order_id", "left_anti")
    rows = kept.select(changes.columns).unionAll(changes)
    rows.repartition(partition_by).write.partitionBy(partition_by).parquet(str(into))


def bulk(rows: DataFrame, into: Path, *, sort: bool = False) -> None:
    """All rows written for the first time; sort: by partition and key."""
    rows = rows.orderBy("ds", "order_id") if sort else rows.repartition("ds")
    rows.write.partitionBy("ds").parquet(str(into))


def read(spark: SparkSession, path: Path) -> DataFrame:
    """Partitioned Parquet; needs partitionColumnTypeInference off, or ds becomes a date."""
    return spark.read.parquet(str(path))
