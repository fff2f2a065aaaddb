"""What Hudi's CREATE TABLE over a table drops from hoodie.properties is told by the table's files."""

import pyarrow as pa
import pytest

from hoodie.errors import TableMismatch
from hoodie.table.properties import update_properties
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.nightly import covering
from support.trips import TRIPS

OPTIONS = {
    **TRIPS,
    "hoodie.spark.driver.threads": "1",
}
BUCKETS = "hoodie.bucket.index.num.buckets"
DROPPED = ("hoodie.index.type", BUCKETS, "hoodie.bucket.index.hash.field", "hoodie.table.timeline.timezone")


def batch(count: int, ts: int = 1) -> pa.Table:
    ids = [f"k{number}" for number in range(count)]
    return pa.table({"id": ids, "city": ["x", "y"] * (count // 2), "ts": pa.array([ts] * count, pa.int64())})


def made(buckets: int, count: int, kind: str = "COPY_ON_WRITE") -> MemoryStorage:
    """A table of buckets whose settings have lost all that Hudi does not know."""
    storage = MemoryStorage()
    index = {"hoodie.index.type": "BUCKET", BUCKETS: str(buckets)}
    ArrowTable.create(storage, {**OPTIONS, **index, "hoodie.datasource.write.table.type": kind}).upsert(batch(count))
    update_properties(storage, dict.fromkeys(DROPPED, None))
    return storage


@pytest.mark.parametrize(
    ("buckets", "named"), covering([1, 2, 5, 7, 24], {"unnamed": {}, "named": {"hoodie.index.type": "BUCKET"}})
)
def test_the_number_of_buckets_is_told_by_the_keys_in_their_files(buckets, named):
    storage = made(buckets, 200)
    table = ArrowTable(storage, {**OPTIONS, **named})
    groups = {slice_.group for slice_ in table.slices()}
    table.upsert(batch(200, 2))
    assert {slice_.group for slice_ in table.slices()} == groups
    found = table.snapshot()
    assert found.num_rows == 200
    assert set(found.column("ts").to_pylist()) == {2}


def test_too_few_keys_tell_no_number_and_the_message_says_that_it_was_lost():
    table = ArrowTable(made(5, 4), OPTIONS)
    with pytest.raises(TableMismatch, match="does not say of how many buckets"):
        table.upsert(batch(4, 2))
    table.upsert(batch(4, 2), options={BUCKETS: "5"})
    assert table.snapshot().column("ts").to_pylist() == [2] * 4


def test_base_files_beside_logs_tell_the_number():
    table = ArrowTable(made(5, 200, "MERGE_ON_READ"), OPTIONS)
    for ts in (2, 3):
        table.upsert(batch(200, ts))
    assert len(table.slices()) == 10
    assert table.snapshot().column("ts").to_pylist() == [3] * 200


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_files_of_before_tell_the_number_where_the_newest_commit_wrote_few_rows(kind):
    table = ArrowTable(made(16, 200, kind), OPTIONS)
    groups = {slice_.group for slice_ in table.slices()}
    for ts in (2, 3, 4):
        table.upsert(batch(2, ts))
    assert {slice_.group for slice_ in table.slices()} == groups
    assert sorted(table.snapshot().column("ts").to_pylist()) == [1] * 198 + [4] * 2
