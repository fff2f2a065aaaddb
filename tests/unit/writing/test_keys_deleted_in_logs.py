"""A key that a log deletes, in a base file that still holds it, and that was inserted into another file group since."""

from uuid import uuid4

import pyarrow as pa
import pytest

import hoodie
from support.nightly import covering


def rows(version: int, *keys: str) -> pa.Table:
    return pa.table({"id": list(keys), "p": ["x"] * len(keys), "ts": pa.array([version] * len(keys), pa.int64())})


@pytest.mark.parametrize(
    ("batch", "index"),
    covering(
        {"in memory": {}, "in files": {"hoodie.spark.driver.max.batch.bytes": 0}}, ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"]
    ),
)
def test_a_key_is_one_row_after_delete_insert_and_upsert(index: str, batch: dict[str, object]) -> None:
    table = hoodie.create_table(
        f"memory://{uuid4().hex}/t",
        name="t",
        record_key="id",
        partition_by="p",
        ordering="ts",
        table_type="MERGE_ON_READ",
        options={"hoodie.index.type": index, "hoodie.parquet.small.file.limit": 0, **batch},
    )
    table.upsert(rows(1, "a", "b"))
    table.delete(rows(1, "a"))
    table.insert(rows(2, "a"))
    result = table.upsert(rows(3, "a", "b"))

    def held() -> list[tuple[str, int]]:
        return sorted((row["id"], row["ts"]) for row in table.snapshot().to_arrow().to_pylist())

    assert held() == [("a", 3), ("b", 3)]
    assert (result.inserted, result.updated) == (0, 2)
    table.delete(rows(4, "a"))
    assert held() == [("b", 3)]
    table.upsert(rows(5, "a"))  # deleted in both file groups: in one of them it comes back
    assert held() == [("a", 5), ("b", 3)]
    table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": 1})
    table.compact()
    assert held() == [("a", 5), ("b", 3)]
