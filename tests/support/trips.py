"""A table of trips as most tests write it: rows by id, a partition for each city, ordered by ts."""

import pyarrow as pa


def table_options(name: str, key: str, *, partition: str = "", ordering: str = "") -> dict[str, str]:
    """What a new table is, as options of its first write."""
    options = {
        "hoodie.table.name": name,
        "hoodie.datasource.write.recordkey.field": key,
        "hoodie.datasource.write.partitionpath.field": partition,
        "hoodie.datasource.write.precombine.field": ordering,
    }
    return {option: value for option, value in options.items() if value}


TRIPS = table_options("trips", "id", partition="city", ordering="ts")
#: Options of its writes: inserts make new files, on one thread.
WRITES = {"hoodie.parquet.small.file.limit": "0", "hoodie.spark.driver.threads": "1"}


def rows(*keys: str, city: str = "oslo", ts: int = 1) -> pa.Table:
    return pa.table({"id": list(keys), "city": [city] * len(keys), "ts": pa.array([ts] * len(keys), pa.int64())})
