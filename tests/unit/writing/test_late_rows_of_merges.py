"""Rows of a MERGE that come late: the stored row stays, whatever the payload class, on both types and all indexes."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.api.local_engine import check_local_batch
from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidInput, KeyMatchedTwice
from hoodie.merge import payloads
from hoodie.merge.rows import ROW_ACTION, RowAction
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.writing.result import WriteResult
from hoodie.writing.run import run
from hoodie.writing.write import as_merge, as_update
from support.by_position import rows_by_position
from support.nightly import covering, nightly, scaled
from support.scans import plan_scan
from unit.writing.test_late_rows import made

TYPES = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
SCHEMA = pa.schema([("k", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("Op", pa.string())])

Table = hoodie.HoodieTable[Any]
Rows = dict[str, tuple[int, str]]


def batch(*rows: tuple[str, int | None, str]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(("k", "ts", "v"), row, strict=True)) for row in rows], SCHEMA)


def merge(
    table: Table, *rows: tuple[str, int | None, str], action: RowAction | None = None, adapt: Any = as_merge
) -> WriteResult:
    """As a MERGE writes the rows that its clauses made."""
    frame = batch(*rows)
    incoming = check_local_batch(table.storage, WriteOperation.UPSERT, frame, Settings.read(Options(table.options)))
    acquire = incoming.acquire
    if action is not None:
        acquire = lambda *given: with_action(incoming.acquire(*given), action)  # noqa: E731
    return run(replace(incoming, write=adapt(incoming.write), adapt=adapt, acquire=acquire))


def update(table: Table, *rows: tuple[str, int, str]) -> WriteResult:
    """As an UPDATE writes the rows that it made of stored ones."""
    return merge(table, *rows, adapt=as_update)


def with_action(acquired: Any, action: RowAction) -> Any:
    column = pa.array([int(action)] * acquired.rows.num_rows, pa.int8())
    return replace(acquired, rows=acquired.rows.append_column(ROW_ACTION, column))


def rows(table: Table) -> Rows:
    def by_key(found: pa.Table) -> Rows:
        return {row["k"]: (row["ts"], row["v"]) for row in found.to_pylist()}

    found = by_key(table.snapshot().to_arrow())
    assert by_key(table.changes("earliest").to_arrow()) == found
    assert by_key(rows_by_position(plan_scan(load_state(table.storage)))) == found
    return found


def compact(table: Table) -> None:
    before = rows(table)
    if table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": "1"}):
        assert table.compact()
    assert rows(table) == before


@TYPES
@pytest.mark.parametrize(
    ("payload", "index"),
    covering(
        [payloads.OVERWRITE_WITH_LATEST, payloads.DEFAULT, payloads.AWS_DMS],
        {
            (lambda index: index["hoodie.index.type"])(v): v
            for v in [
                {"hoodie.index.type": "SIMPLE"},
                {"hoodie.index.type": "GLOBAL_BLOOM"},
                {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
            ]
        },
    ),
)
def test_a_late_row_of_a_merge_leaves_the_stored_row(tmp_path: Path, table_type: str, payload: str, index: Any) -> None:
    table = made(tmp_path, table_type, payload, **index)
    table.upsert(batch(("a", 5, "v5"), ("b", 5, "v5"), ("c", 5, "v5")))
    done = merge(table, ("a", 3, "late"), ("b", 5, "equal"), ("c", 9, "v9"), ("d", 1, "new"))
    expected: Rows = {"a": (5, "v5"), "b": (5, "equal"), "c": (9, "v9"), "d": (1, "new")}
    assert rows(table) == expected
    # What a log holds and no reader takes is counted where the rule itself compares, as in an upsert.
    counted = table_type == "COPY_ON_WRITE" or (payload != payloads.DEFAULT and "BUCKET" not in index.values())
    assert not counted or (done.inserted, done.updated) == (1, 2)
    again = merge(table, ("c", 8, "late"), ("d", 0, "late"))  # in Merge-on-Read tables against rows in logs
    assert rows(table) == expected
    assert not counted or (again.inserted, again.updated) == (0, 0)
    if table_type == "MERGE_ON_READ":
        compact(table)


def test_a_late_row_of_an_upsert_is_what_the_next_merge_is_compared_with(tmp_path: Path) -> None:
    table = made(tmp_path, "MERGE_ON_READ")
    table.upsert(batch(("a", 5, "v5")))
    table.upsert(batch(("a", 2, "late")))  # by the payload class it wins against the base file's row
    merge(table, ("a", 1, "later"))
    assert rows(table) == {"a": (2, "late")}
    merge(table, ("a", 3, "merged"))
    assert rows(table) == {"a": (3, "merged")}
    table.delete(pa.table({"k": ["a"]}))
    merge(table, ("a", 1, "again"))
    assert rows(table) == {"a": (1, "again")}
    compact(table)


@pytest.mark.parametrize("logged", [False, True])
def test_stored_rows_are_seen_while_a_compaction_is_pending(tmp_path: Path, logged: bool) -> None:
    table = made(tmp_path, "MERGE_ON_READ")
    table.upsert(batch(("a", 5, "v5"), ("b", 5, "v5")))
    table.upsert(batch(("a", 6, "v6")))
    assert table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": "1"})
    if logged:
        table.upsert(batch(("b", 7, "v7")))
    merge(table, ("a", 4, "late"), ("b", 6, "six"))
    assert rows(table) == {"a": (6, "v6"), "b": (7, "v7") if logged else (6, "six")}
    assert table.compact()
    assert rows(table) == {"a": (6, "v6"), "b": (7, "v7") if logged else (6, "six")}


@TYPES
def test_a_delete_of_a_merge_needs_no_ordering_value_and_an_update_does(tmp_path: Path, table_type: str) -> None:
    table = made(tmp_path, table_type)
    table.upsert(batch(("a", 5, "v5"), ("b", 5, "v5")))
    before = len(table.history())
    with pytest.raises(InvalidInput, match="ordering value 'ts' is null"):
        merge(table, ("a", None, "x"))
    with pytest.raises(KeyMatchedTwice):
        merge(table, ("a", 6, "x"), ("a", 7, "y"))
    assert len(table.history()) == before
    merge(table, ("a", None, "x"), action=RowAction.DELETE)
    assert rows(table) == {"b": (5, "v5")}


@TYPES
@pytest.mark.parametrize("version", ["6", "8", "9"])
@pytest.mark.parametrize("inserts", [False, True])
def test_a_late_row_of_a_merge_deletes_beside_rows_that_do_not(
    tmp_path: Path, table_type: str, version: str, inserts: bool
) -> None:
    table = made(tmp_path, table_type, payloads.DEFAULT, **{"hoodie.write.table.version": version})
    table.upsert(batch(("a", 5, "v5"), ("b", 5, "v5"), ("c", 5, "v5")))
    merging = table.merge(batch(("a", 2, "late"), ("b", 7, "v7"), ("d", 1, "new")))
    merging = merging.when_matched_delete(condition="source.ts < 5")
    merging = merging.when_not_matched_insert_all() if inserts else merging.when_matched_update_all()
    assert merging.execute().deleted == 1
    others: Rows = {"b": (5, "v5"), "d": (1, "new")} if inserts else {"b": (7, "v7")}
    assert rows(table) == {"c": (5, "v5"), **others}


def test_tables_without_an_ordering_column_take_what_a_merge_says(tmp_path: Path) -> None:
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        table = hoodie.create_table(tmp_path / table_type, name="t", record_key="k", table_type=table_type)
        table.upsert(batch(("a", 5, "v5")))
        merge(table, ("a", 3, "merged"))
        assert rows(table) == {"a": (3, "merged")}


@pytest.mark.parametrize("log", ["avro", "parquet"])
def test_an_update_to_a_lesser_ordering_value_takes_effect_against_logs_too(tmp_path: Path, log: str) -> None:
    cdc = {"hoodie.table.cdc.enabled": "true", "hoodie.logfile.data.block.format": log}
    table = made(tmp_path, "MERGE_ON_READ", **cdc)
    table.upsert(batch(("a", 5, "v5"), ("b", 5, "v5")))
    begin = table.upsert(batch(("a", 9, "v9"), ("b", 9, "v9"))).instant
    done = update(table, ("a", 3, "back"), ("b", 10, "on"))
    assert (done.inserted, done.updated, done.deleted) == (0, 2, 0)
    assert rows(table) == {"a": (3, "back"), "b": (10, "on")}
    changes = table.changes(begin, cdc=True).to_arrow().to_pylist()
    images = {json.loads(c["after"])["k"]: (c["op"], json.loads(c["before"])["v"]) for c in changes}
    assert images == {"a": ("u", "v9"), "b": ("u", "v9")}
    assert {row["k"] for row in table.changes(begin).to_arrow().to_pylist()} == {"a", "b"}
    update(table, ("a", 2, "further"))
    merge(table, ("a", 1, "late"))
    assert rows(table) == {"a": (2, "further"), "b": (10, "on")}
    assert table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": "1"})
    update(table, ("b", 4, "pending"))
    assert rows(table) == {"a": (2, "further"), "b": (4, "pending")}
    assert table.compact()
    assert rows(table) == {"a": (2, "further"), "b": (4, "pending")}
    compact(table)


def test_an_update_of_a_table_that_goes_by_the_ordering_column_keeps_to_it(tmp_path: Path) -> None:
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        table = made(tmp_path / table_type, table_type, payloads.DEFAULT)
        table.upsert(batch(("a", 5, "v5")))
        update(table, ("a", 3, "back"))
        assert rows(table) == {"a": (5, "v5")}


@pytest.mark.parametrize("seed", [0, nightly(1), nightly(2)])
def test_both_types_have_the_same_rows_after_random_merges(tmp_path: Path, seed: int) -> None:
    twins = [made(tmp_path / kind, kind) for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")]
    random, model = Random(seed), Rows()
    for step in range(scaled(5, 8)):
        keys = random.sample("abcdefgh", 4)
        given = [(key, random.randint(1, 9), f"v{step}") for key in keys]
        for key, ts, value in given:
            if key not in model or model[key][0] <= ts:
                model[key] = (ts, value)
        for table in twins:
            merge(table, *given)
        changed = [(key, random.randint(1, 9), f"u{step}") for key in random.sample(sorted(model), min(2, len(model)))]
        model.update({key: (ts, value) for key, ts, value in changed})
        for table in twins:
            update(table, *changed)
        gone = random.choice("abcdefgh")
        model.pop(gone, None)
        for table in twins:
            table.delete(pa.table({"k": [gone]}))
            assert rows(table) == model, step
        if step % 3 == 2:
            compact(twins[1])
