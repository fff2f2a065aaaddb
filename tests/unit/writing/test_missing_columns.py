"""Batches that lack columns of the table: refused before anything is written, null where options say so, or an update
of some columns, on both table types and all routes."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidInput, SchemaMismatch
from hoodie.merge import payloads
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.nightly import covering, scaled
from support.oracles import read_hudi_rs

TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
VECTOR = json.loads((Path(__file__).parents[2] / "vectors" / "missing_columns.json").read_text())
SPILLED = {"hoodie.spark.driver.max.batch.bytes": "0"}
NULLS = {"hoodie.write.set.null.for.missing.columns": "true"}
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("fare", pa.float64()),
        ("note", pa.string()),
        ("s", pa.struct([("x", pa.int64()), ("y", pa.int64())])),
    ]
)
KEY = ("id", "city", "ts")

Row = dict[str, Any]
Table = hoodie.HoodieTable[hoodie.Rows]


def made(path: object = None, table_type: str = "COPY_ON_WRITE", **options: str) -> Table:
    return hoodie.create_table(
        str(path or f"memory://{uuid4().hex}/t"),
        name="t",
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type=table_type,
        options={"hoodie.spark.driver.threads": "1", "hoodie.compact.inline": "false", **options},
    )


def batch(rows: Sequence[Row], columns: Sequence[str] | None = None) -> pa.Table:
    schema = SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])
    return pa.Table.from_pylist(list(rows), schema)


def row(key: str, ts: int = 1, city: str = "oslo", **values: Any) -> Row:
    return {"id": key, "city": city, "ts": ts, "fare": None, "note": None, "s": None, **values}


def held(table: Any) -> dict[str, Row]:
    rows = table if isinstance(table, pa.Table) else table.snapshot().to_arrow()
    found = {each["id"]: each for each in rows.select(SCHEMA.names).to_pylist()}
    assert len(found) == rows.num_rows
    return found


def of(*rows: Row) -> dict[str, Row]:
    return {each["id"]: each for each in rows}


FULL = {"fare": 1.5, "note": "n", "s": {"x": 1, "y": 2}}
FIRST = [row(key, **FULL) for key in "abc"]
SOME = batch([row("a", 2, note="later")], [*KEY, "note"])


# --- refused ---


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"])
@pytest.mark.parametrize("table_type", TYPES)
def test_a_misspelt_column_is_refused_before_anything_is_written(table_type: str, operation: str) -> None:
    storage = MemoryStorage()
    named = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    table = ArrowTable.create(storage, {**named, "hoodie.datasource.write.table.type": table_type})
    table.upsert(batch(FIRST))
    before = storage.snapshot()
    misspelt = batch(FIRST).rename_columns([*KEY, "fares", "note", "s"])
    with pytest.raises(SchemaMismatch, match=r"column 'fare' is missing and 'fares' is new\. Did you mean 'fare'\?"):
        getattr(table, operation)(misspelt)
    assert storage.snapshot() == before


def test_a_batch_that_lacks_a_column_is_answered_as_by_hudi(tmp_path: Path) -> None:
    options = {
        "hoodie.datasource.write.recordkey.field": "k",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    for step in VECTOR["steps"]:
        rows = pa.Table.from_pylist([dict(zip(step["columns"], values, strict=True)) for values in step["rows"]])
        if step["refused"]:
            with pytest.raises(SchemaMismatch, match="column 'w' is missing"):
                hoodie.hudi.write(rows, str(tmp_path), options)
        else:
            hoodie.hudi.write(rows, str(tmp_path), options)
        names = VECTOR["steps"][0]["columns"]
        found = hoodie.open_table(str(tmp_path)).snapshot(columns=names).to_arrow().sort_by("k").to_pylist()
        assert [list(each.values()) for each in found] == step["after"]


def test_a_missing_nested_field_is_refused_like_a_column() -> None:
    table = made()
    table.upsert(batch(FIRST))
    part = pa.table({**SOME.to_pydict(), "fare": [1.0], "s": [{"x": 9}]})
    with pytest.raises(SchemaMismatch, match=r"column 's\.y' is missing"):
        table.upsert(part)
    assert held(table) == of(*FIRST)


def test_keys_alone_delete_and_new_columns_alone_grow_the_table() -> None:
    table = made()
    table.upsert(batch(FIRST))
    assert table.delete(pa.table({"id": ["b"], "city": ["oslo"]})).deleted == 1
    result = table.upsert(batch([row("a", 2, **FULL)]).append_column("tip", pa.array([1.0])))
    assert (result.missing_columns, result.new_columns) == ((), ("tip",))
    assert str(result).endswith("; column 'tip' is new")
    with pytest.raises(SchemaMismatch, match="column 'tip' is missing"):
        table.upsert(batch([row("a", 3, **FULL)]))


# --- null ---


@pytest.mark.parametrize(
    "how",
    [
        {"options": NULLS},
        {"options": {"hoodie.datasource.write.reconcile.schema": "true"}},
        {"missing": "null"},
    ],
)
@pytest.mark.parametrize("table_type", TYPES)
def test_missing_columns_are_null_where_an_option_or_the_call_says_so(table_type: str, how: dict[str, Any]) -> None:
    table = made(table_type=table_type)
    table.upsert(batch(FIRST))
    explained = table.explain_upsert(SOME, **how)
    assert (explained.missing_columns, explained.new_columns) == (("fare", "s"), ())
    assert "columns 'fare', 's' are missing" in str(explained)
    result = table.upsert(SOME, **how)
    assert (result.updated, result.missing_columns, result.new_columns) == (1, ("fare", "s"), ())
    assert held(table) == of(row("a", 2, note="later"), *FIRST[1:])
    table.insert(batch([row("d")], KEY), **how)
    table.bulk_insert(batch([row("e")], KEY), **how)
    assert held(table)["d"] == row("d")
    assert held(table)["e"] == row("e")
    table.insert_overwrite(batch([row("f")], KEY), **how)
    assert held(table) == of(row("f"))


def test_the_argument_of_a_call_goes_before_the_options_of_the_table_object() -> None:
    table = made(**NULLS)
    table.upsert(batch(FIRST))
    with pytest.raises(SchemaMismatch, match="columns 'fare', 's' are missing"):
        table.upsert(SOME, missing="refuse")
    table.upsert(SOME, missing="keep")
    assert held(table)["a"] == row("a", 2, note="later", fare=1.5, s={"x": 1, "y": 2})
    with pytest.raises(InvalidInput, match="missing='all'"):
        table.upsert(SOME, missing="all")


# --- keep ---

INDEXES = (
    {"hoodie.index.type": "SIMPLE"},
    {"hoodie.index.type": "BLOOM"},
    {"hoodie.index.type": "GLOBAL_SIMPLE"},
    {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
)
PAYLOADS = (payloads.OVERWRITE_WITH_LATEST, payloads.DEFAULT, payloads.EVENT_TIME, payloads.FIRST_VALUE)


def model(rows: dict[str, Row], changes: Sequence[Row], columns: Sequence[str], *, by_value: bool) -> None:
    for change in changes:
        before = rows.get(change["id"])
        if before is not None and by_value and change["ts"] <= before["ts"]:
            continue
        said = {name: change[name] for name in columns}
        rows[change["id"]] = {**(before or row(change["id"])), **said}


@pytest.mark.parametrize(
    ("route", "index", "table_type"),
    covering(
        {"in memory": {}, "spilled": SPILLED},
        {(lambda index: index["hoodie.index.type"])(v): v for v in INDEXES},
        TYPES,
    ),
)
def test_a_history_of_updates_of_some_columns_is_that_of_a_dict(
    table_type: str, index: Mapping[str, str], route: Mapping[str, str]
) -> None:
    """Late rows, deletes, rows that move, compactions and rows that are written under a pending one among them."""
    seed = INDEXES.index(index) + bool(route)
    payload = PAYLOADS[seed % len(PAYLOADS)]
    random = Random(seed)
    options = {**index, **route, "hoodie.datasource.write.payload.class": payload}
    table = made(table_type=table_type, **options)
    rows: dict[str, Row] = {}
    moves = index["hoodie.index.type"] == "GLOBAL_SIMPLE"
    late = payload != payloads.OVERWRITE_WITH_LATEST
    for step in range(1, scaled(7, 9)):
        columns = [*KEY, *random.sample(["fare", "note", "s"], random.randint(0, 3) if rows else 3)]
        keys = random.sample("abcdefgh", 4)
        changes = [
            row(
                key,
                step * 10 - (random.choice([0, 25]) if late else 0) + random.randint(0, 5),
                random.choice(["oslo", "rome"]) if moves else "oslo" if key < "e" else "rome",
                fare=random.choice([None, float(step)]),
                note=random.choice([None, f"n{step}"]),
                s=random.choice([None, {"x": step, "y": None}]),
            )
            for key in keys
        ]
        table.upsert(batch(changes, columns), missing="keep")
        model(rows, changes, columns, by_value=late)
        assert held(table) == rows, step
        if step == 4:
            gone = random.sample(sorted(rows), 2)
            table.delete(pa.table({"id": gone, "city": [rows[key]["city"] for key in gone]}))
            for key in gone:
                del rows[key]
        if table_type == "MERGE_ON_READ" and step in (3, 6):
            table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": "1"})
        if table_type == "MERGE_ON_READ" and step in (5, 8):
            table.compact()
        assert held(table) == rows, step


@pytest.mark.parametrize("payload", [payloads.PARTIAL_UPDATE, payloads.OVERWRITE_NON_DEFAULTS])
@pytest.mark.parametrize("table_type", TYPES)
def test_payloads_that_fill_nulls_fill_those_of_present_columns_too(table_type: str, payload: str) -> None:
    table = made(table_type=table_type, **{"hoodie.datasource.write.payload.class": payload})
    table.upsert(batch(FIRST))
    table.upsert(batch([row("a", 2, fare=None), row("b", 2, fare=3.0)], [*KEY, "fare"]), missing="keep")
    assert held(table) == of(row("a", 2, **FULL), row("b", 2, **{**FULL, "fare": 3.0}), FIRST[2])


@pytest.mark.parametrize("table_type", TYPES)
def test_hudi_rs_reads_equal_rows_before_and_after_a_compaction(tmp_path: Path, table_type: str) -> None:
    table = made(tmp_path / "t", table_type)
    table.upsert(batch(FIRST))
    table.upsert(batch([row("a", 2, note="later"), row("n", 2)], [*KEY, "note"]), missing="keep")
    table.upsert(pa.table({"id": ["b"], "city": ["oslo"], "ts": [3], "s": [{"x": 9}]}), missing="keep")
    rows = of(
        row("a", 2, **{**FULL, "note": "later"}), row("b", 3, **{**FULL, "s": {"x": 9, "y": 2}}), FIRST[2], row("n", 2)
    )
    assert held(table) == rows
    assert held(read_hudi_rs(table.path)) == rows
    assert held(table.changes("earliest").to_arrow()) == rows
    if table_type == "MERGE_ON_READ":
        table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": "1"})
        assert table.compact()
        assert held(table) == held(read_hudi_rs(table.path)) == rows


@pytest.mark.parametrize("table_type", TYPES)
def test_what_was_deleted_does_not_come_back_in_the_kept_columns(table_type: str) -> None:
    table = made(table_type=table_type)
    table.upsert(batch(FIRST))
    table.delete(pa.table({"id": ["a"], "city": ["oslo"]}))
    table.upsert(SOME, missing="keep")
    assert held(table)["a"] == row("a", 2, note="later")


@pytest.mark.parametrize("route", [{}, SPILLED], ids=["in memory", "spilled"])
@pytest.mark.parametrize("table_type", TYPES)
def test_new_keys_need_a_column_that_takes_no_nulls(table_type: str, route: Mapping[str, str]) -> None:
    logs = {"hoodie.logfile.data.block.format": "parquet"} if route else {}
    table = made(table_type=table_type, **route, **logs)
    strict = pa.schema([field.with_nullable(field.name != "fare") for field in SCHEMA])
    table.upsert(pa.Table.from_pylist(FIRST, strict))
    table.upsert(SOME, missing="keep")
    assert held(table)["a"] == row("a", 2, **{**FULL, "note": "later"})
    before = table.history()
    for number in (1, 40):  # a new key beside stored ones, and enough for a file group of their own
        new = [row(f"n{n}", 3) for n in range(number)]
        with pytest.raises(SchemaMismatch, match=rf"column 'fare' takes no nulls .* which has {number} new keys"):
            table.upsert(batch([row("b", 3), *new], KEY), missing="keep")
    assert [each for each in table.history() if each not in before and "rollback" not in str(each).lower()] == []
    assert "n0" not in held(table)
    with pytest.raises(SchemaMismatch, match="column fare is missing in the batch and takes no nulls"):
        table.upsert(SOME, missing="null")
    table.upsert(batch([row("n", 3, fare=2.0)], [*KEY, "fare"]), missing="keep")
    assert held(table)["n"] == row("n", 3, fare=2.0)


def test_change_data_has_the_kept_values_on_both_sides() -> None:
    table = made(**{"hoodie.table.cdc.enabled": "true", "hoodie.read.cdc.images": "struct"})
    first = table.upsert(batch(FIRST))
    table.upsert(SOME, missing="keep")
    (change,) = table.changes(first.instant, cdc=True).to_arrow().to_pylist()
    assert (change["op"], change["before"], change["after"]) == (
        "u",
        FIRST[0],
        row("a", 2, **{**FULL, "note": "later"}),
    )


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table"])
def test_operations_that_replace_no_row_by_key_keep_nothing(operation: str) -> None:
    table = made()
    table.upsert(batch(FIRST))
    with pytest.raises(SchemaMismatch, match=f'missing="keep" keeps the values of stored rows, and {operation} '):
        getattr(table, operation)(SOME, missing="keep")
    getattr(table, operation)(batch([row("z", **FULL)]), missing="keep")  # nothing is missing
    assert held(table)["z"] == row("z", **FULL)


def test_elements_of_lists_are_given_whole() -> None:
    items = pa.list_(pa.struct([("x", pa.int64()), ("y", pa.int64())]))
    table = made()
    table.upsert(pa.table({"id": ["a"], "city": ["oslo"], "ts": [1], "l": pa.array([[{"x": 1, "y": 2}]], items)}))
    part = pa.table({"id": ["a"], "city": ["oslo"], "ts": [2], "l": [[{"x": 3}]]})
    with pytest.raises(SchemaMismatch, match=r"cannot keep 'l\.element\.y'"):
        table.upsert(part, missing="keep")
    table.upsert(part, missing="null")
    assert table.snapshot().to_arrow().column("l").to_pylist() == [[{"x": 3, "y": None}]]
    table.upsert(part.drop_columns("l").set_column(2, "ts", pa.array([3])), missing="keep")
    assert table.snapshot().to_arrow().column("l").to_pylist() == [[{"x": 3, "y": None}]]


@pytest.mark.parametrize("table_type", TYPES)
def test_every_door_without_spark_takes_the_word(table_type: str) -> None:
    table = made(table_type=table_type)
    table.upsert(batch(FIRST))
    client = hoodie.hudi.HoodieWriteClient(table.path)
    with pytest.raises(SchemaMismatch, match="are missing"):
        client.upsert(SOME, client.start_commit())
    assert client.upsert(SOME, client.start_commit(), missing="keep").missing_columns == ("fare", "s")
    changed = batch([row("b", 2, note="w")], [*KEY, "note"])
    assert hoodie.hudi.write(changed, table.path, missing="keep").updated == 1  # type: ignore[union-attr]
    assert hoodie.hudi.write(changed, table.path, {"hoodie.write.missing.columns": "keep"})
    kept = [row(key, 2, **{**FULL, "note": note}) for key, note in (("a", "later"), ("b", "w"))]
    assert held(table) == of(*kept, FIRST[2])
    assert hoodie.hudi.write(changed, table.path, NULLS)
    assert held(table)["b"] == row("b", 2, note="w")
