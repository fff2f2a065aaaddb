"""Rows of the driver as a DataFrame."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def local_frame(session: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Arrow rows as a DataFrame of a schema.

    PySpark 4.3 loses the rows that come after a record batch without rows.
    """
    filled = [batch for batch in rows.to_batches() if len(batch)]
    return session.createDataFrame(pa.Table.from_batches(filled, rows.schema), schema)
