"""Arrow rows of the driver reach Spark whole."""

import pyarrow as pa
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from hoodie.spark.types import local_frame

SCHEMA = StructType([StructField("n", LongType())])


def test_rows_after_a_batch_without_rows_are_not_lost(spark):
    part, empty = pa.table({"n": [1, 2]}), pa.table({"n": pa.array([], pa.int64())})
    frame = local_frame(spark, pa.concat_tables([empty, part, empty, part, part]), SCHEMA)
    assert sorted(row.n for row in frame.collect()) == [1, 1, 1, 2, 2, 2]
    assert local_frame(spark, empty, SCHEMA).collect() == []


def test_a_table_without_rows_may_have_lists(spark):
    schema = StructType([StructField("n", ArrayType(ArrayType(LongType())))])
    nothing = pa.table({"n": pa.chunked_array([], pa.list_(pa.list_(pa.int64())))})
    assert local_frame(spark, nothing, schema).collect() == []
