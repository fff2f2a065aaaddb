"""A batch of an application is in the table once, however its writers overlap, and after archiving."""

import json
from uuid import uuid4

import pyarrow as pa

import hoodie
from hoodie.commit.batch_ids import CHECKPOINT
from hoodie.writing.result import WriteResult

SEVERAL = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
}


def rows(key: str) -> pa.Table:
    return pa.table({"id": [key], "p": [key], "v": [1]})


def of_batch(number: int) -> dict[str, object]:
    return {
        "hoodie.datasource.write.streaming.checkpoint.identifier": "app",
        "hoodie.datasource.write.streaming.batch.id": number,
    }


def made(**more: object) -> hoodie.HoodieTable[hoodie.Rows]:
    path = f"memory://{uuid4().hex}/t"
    options = {**SEVERAL, **{name.replace("__", "."): value for name, value in more.items()}}
    return hoodie.create_table(path, name="t", record_key="id", partition_by="p", options=options)


def begun_first_completed_last(table: hoodie.HoodieTable[hoodie.Rows]) -> WriteResult:
    """Batch 5 takes its instant, another writer commits, and then batch 5 is written."""
    client = hoodie.hudi.HoodieWriteClient(table.path, {**SEVERAL, **of_batch(5)})
    instant = client.start_commit()
    table.insert(rows("b"))
    return client.insert(rows("a"), instant)


def test_a_batch_that_began_first_and_was_completed_last_is_known() -> None:
    table = made()
    table.insert(rows("z"), options=of_batch(4))
    first = begun_first_completed_last(table)
    assert table.insert(rows("a"), options=of_batch(5)).instant == first.instant
    assert table.count() == 3
    table.insert(rows("c"))  # its map has the greatest number, not that of the newest commit before it
    (_, newest), *_ = table.history()
    assert json.loads(newest.extra[CHECKPOINT]) == {"app": "5"}


def test_archiving_leaves_what_alone_knows_a_batch() -> None:
    retain = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.cleaner.commits.retained": 1}
    table = made()
    quiet = {"hoodie.archive.automatic": "false"}
    client = hoodie.hudi.HoodieWriteClient(table.path, {**SEVERAL, **of_batch(5), **quiet})
    instant = client.start_commit()
    for key in "bcdefg":
        table.insert(rows(key), options=quiet)
    client.insert(rows("a"), instant)
    table.archive(options=retain)
    table.insert(rows("a"), options={**of_batch(5), **quiet})
    assert table.count() == 7
    table.insert(rows("h"), options=quiet)  # knows the batch, too: the old commit may go
    assert instant in {each.requested for each in table.archive(options=retain).instants}
    table.insert(rows("a"), options={**of_batch(5), **quiet})
    assert table.count() == 8
