"""A table of trips as most tests write it: rows by id, a partition for each city, ordered by ts."""

from __future__ import annotations

import pyarrow as pa

TRIPS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
#: Options of its writes: inserts make new files, on one thread.
WRITES = {"hoodie.parquet.small.file.limit": "0", "hoodie.spark.driver.threads": "1"}


def rows(*keys: str, city: str = "oslo", ts: int = 1) -> pa.Table:
    return pa.table({"id": list(keys), "city": [city] * len(keys), "ts": pa.array([ts] * len(keys), pa.int64())})
