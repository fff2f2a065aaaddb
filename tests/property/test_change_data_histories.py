"""Over random histories change data says exactly how each commit changed the rows, from logs and from file slices."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import hoodie
from hoodie.config.table import LoggedImages
from hoodie.errors import MetadataTableDropped
from hoodie.reading.changes.data import change_data_batches
from hoodie.reading.changes.data_plan import plan_change_data
from hoodie.table.state import load_state
from support.change_data import change
from support.metadata_fresh import KEPT, check_kept
from support.nightly import scaled

Rows = dict[str, tuple[Any, ...]]

keys = st.lists(st.sampled_from("abcdefg"), unique=True, min_size=1, max_size=4)
steps = st.tuples(
    st.sampled_from(["upsert", "upsert", "upsert", "delete", "insert_overwrite", "insert_overwrite_table"]),
    keys,
    st.sampled_from(["p", "q"]),
    st.sampled_from(["", "", "schedule", "compact", "undo"]),
)
#: A table without any row has no columns yet.
_FIRST = ("upsert", ["a", "b", "c", "d"], "p", "")


EXAMPLES = settings(max_examples=scaled(4, 12), phases=[Phase.explicit, Phase.generate])
of_histories = given(
    history=st.lists(steps, min_size=2, max_size=7),
    table_type=st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]),
    logged=st.sampled_from(LoggedImages),
    index=st.sampled_from(["SIMPLE", "GLOBAL_SIMPLE", "BUCKET"]),
    ordered=st.booleans(),
    version=st.sampled_from(["6", "8", "9"]),
)


@EXAMPLES
@of_histories
def test_each_commit_is_told_as_it_was(**history) -> None:
    tell(**history)


@settings(EXAMPLES, max_examples=1)
@of_histories
def test_each_commit_is_told_beside_a_metadata_table(**history) -> None:
    tell(**history, more=KEPT)


@pytest.mark.nightly
@settings(EXAMPLES, max_examples=20)
@of_histories
def test_each_commit_is_told_beside_a_metadata_table_in_many_histories(**history) -> None:
    tell(**history, more=KEPT)


def tell(history, table_type, logged, index, ordered, version, more=None) -> None:
    """more  options of a metadata table, which is compared with a build after each step"""
    with TemporaryDirectory() as path, warnings.catch_warnings():
        warnings.simplefilter("ignore", MetadataTableDropped)  # a key in two partitions ends the record index
        table = hoodie.create_table(
            path,
            name="t",
            record_key="id",
            partition_by="part",
            ordering="ts",
            table_type=table_type,
            options={
                "hoodie.table.cdc.enabled": "true",
                "hoodie.table.cdc.supplemental.logging.mode": logged.value,
                "hoodie.index.type": index,
                "hoodie.bucket.index.num.buckets": "2",
                "hoodie.clean.automatic": "false",
                "hoodie.compact.inline": "false",  # a commit that one followed cannot be undone
                "hoodie.write.table.version": version,
                **({"hoodie.datasource.write.payload.class": "DefaultHoodieRecordPayload"} if ordered else {}),
                **(more or {}),
            },
        )
        before: Rows = {}
        last, planned = "earliest", False
        for number, (operation, ids, part, then) in enumerate([_FIRST, *history]):
            if index == "BUCKET" and operation.startswith("insert"):
                operation = "upsert"
            if index == "GLOBAL_SIMPLE" and operation == "insert_overwrite":  # a key would be in two partitions
                operation = "insert_overwrite_table"
            ts = number if number % 3 else 0
            rows = pa.table({"id": ids, "part": [part] * len(ids), "ts": pa.array([ts] * len(ids), pa.int64())})
            instant = getattr(table, operation)(rows).instant
            after = snapshot(table)
            found = list(told(table, last, instant))
            check(found, before, after)
            check(list(without_logs(table, last, instant)), before, after)
            assert check_kept(table.storage) == bool(more)
            if then == "undo" and number and not planned:
                table.rollback(instant)
                check_kept(table.storage)
                assert list(told(table, last, None)) == []
                continue
            before, last = after, instant
            if then == "schedule" and not planned and table_type == "MERGE_ON_READ":
                planned = table.schedule_compaction() is not None
            if then == "compact" and (planned or (table_type == "MERGE_ON_READ" and table.schedule_compaction())):
                table.compact()
                planned = False
                check_kept(table.storage)
                assert list(told(table, last, None)) == []
        check_chain(list(told(table, "earliest", None)), snapshot(table))


def snapshot(table: Any) -> Rows:
    """Rows by partition and key."""
    columns = ["id", "part", "ts"]
    found = table.snapshot(columns=columns).to_arrow().to_pylist()
    rows = {f"{row['part']}/{row['id']}": tuple(sorted(row.items())) for row in found}
    assert len(rows) == len(found)
    return rows


def told(table: Any, begin: str, end: str | None) -> Iterator[Any]:
    return (change(row) for row in table.changes(begin, end, cdc=True).to_arrow().to_pylist())


def without_logs(table: Any, begin: str, end: str) -> Iterator[Any]:
    plan = plan_change_data(load_state(table.storage), begin, end)
    groups = tuple(tuple(replace(step, cdc=()) for step in steps) for steps in plan.groups)
    for batch in change_data_batches(replace(plan, groups=groups)):
        yield from (change(row) for row in batch.to_pylist())


def place(image: Any) -> str:
    row = dict(image)
    return f"{row['part']}/{row['id']}"


def check(changes: list[Any], before: Rows, after: Rows) -> None:
    """Each change starts at the row that was there and the changes together make the rows that are there."""
    rows = dict(before)
    for op, _, old, new in sorted(changes, key=lambda found: found[0]):  # deletes come first
        assert (op == "i") == (old is None)
        assert (op == "d") == (new is None)
        if old is not None:
            assert rows.pop(place(old)) == old
        if new is not None:
            assert place(new) not in rows
            rows[place(new)] = new
    assert rows == after


def check_chain(changes: list[Any], after: Rows) -> None:
    """All changes of all commits, one commit after the other."""
    rows: Rows = {}
    for instant in sorted({found[1] for found in changes}):
        of_instant = [found for found in changes if found[1] == instant]
        told_so_far = dict(rows)
        for op, _, old, new in sorted(of_instant, key=lambda found: found[0]):
            if old is not None:
                assert told_so_far.pop(place(old)) == old, op
            if new is not None:
                told_so_far[place(new)] = new
        rows = told_so_far
    assert rows == after
