"""Change data with a Spark session."""

from __future__ import annotations

import hoodie
from support.change_data import change, ordered, ranges, unpack

QUERY = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
    "hoodie.datasource.read.begin.instanttime": "000",
}


def test_change_data_of_a_table_that_hudi_wrote_is_hudis(spark, tmp_path):
    path = unpack("cdc_mor_op_key_only", tmp_path)
    whole = ranges("cdc_mor_op_key_only", path)[0]
    table = hoodie.open_table(spark, str(path))
    hoodie.register(spark)
    try:
        frame = spark.read.format("hudi").options(**QUERY).load(str(path))
        assert frame.columns == ["op", "ts_ms", "before", "after"]
        assert ordered(change(row.asDict()) for row in frame.collect()) == whole.changes
    finally:
        hoodie.unregister(spark)
    structs = table.changes("earliest", cdc=True, options={"hoodie.read.cdc.images": "struct"})
    assert structs.where("op = 'u' and after.ts = 5").select("before.id").count() == 3
