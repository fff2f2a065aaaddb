"""Rows of the driver as a DataFrame."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hoodie.schema.conform import conform
from hoodie.spark.types import in_session_zone


def local_frame(session: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Arrow rows as a DataFrame of a schema.

    PySpark 4.3 loses the rows that come after a record batch without rows, and takes no lists without a batch.
    """
    rows = conform(rows, in_session_zone(rows.schema, "UTC"))  # Spark has no times in milliseconds
    filled = [batch for batch in rows.to_batches() if len(batch)]
    whole = pa.Table.from_batches(filled, rows.schema) if filled else rows.schema.empty_table()
    return session.createDataFrame(whole, schema)
