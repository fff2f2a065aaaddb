"""Merges that set some columns: where the key tells the pairs the table is not joined, and the rows are the same."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.conditional import merge
from support.nightly import by_day, nightly

Merge = Callable[[Any], Any]

UPDATES: dict[str, Merge] = {
    "one column": lambda m: m.when_matched_update({"a": "source.a"}),
    "one column by an expression": lambda m: m.when_matched_update({"a": "source.a * 2 + source.b"}),
    "the ordering column, too": lambda m: m.when_matched_update({"a": "source.a", "ts": "source.ts"}),
    "some rows": lambda m: m.when_matched_update({"a": "source.a"}, condition="source.b > 5"),
    "by two clauses": lambda m: m.when_matched_update({"b": "source.b"}, condition="source.b > 5").when_matched_update(
        {"b": "source.b"}, condition="source.a > 5"
    ),
    "deletes besides": lambda m: m.when_matched_delete(condition="source.b > 7").when_matched_update({"a": "source.a"}),
}
UPSERTS: dict[str, Merge] = {
    "inserts of whole rows": lambda m: m.when_matched_update(
        {"a": "source.a", "ts": "source.ts"}
    ).when_not_matched_insert_all(),
    "inserts of some columns": lambda m: m.when_matched_update(
        {"a": "source.a", "ts": "source.ts"}
    ).when_not_matched_insert({"id": "source.id", "p": "source.p", "ts": "source.ts", "a": "source.a"}),
    "inserts of other values": lambda m: m.when_matched_update(
        {"a": "source.a", "ts": "source.ts"}
    ).when_not_matched_insert(
        {"id": "source.id", "p": "source.p", "ts": "source.ts", "a": "source.a", "b": "-1L", "s": "'new'"}
    ),
}
CASES = [("COPY_ON_WRITE", name) for name in (*UPDATES, *UPSERTS)] + [("MERGE_ON_READ", name) for name in UPSERTS]


def rows(random: Random, keys: list[int]) -> pa.Table:
    def numbers() -> list[int | None]:
        return [random.choice([None, *range(10)]) for _ in keys]

    columns = {"id": keys, "p": [f"p{key % 3}" for key in keys], "ts": [random.randint(1, 3) for _ in keys]}
    columns |= {"a": numbers(), "b": numbers(), "s": [random.choice(["x", "", None]) for _ in keys]}
    types = {"id": pa.int64(), "p": pa.string(), "ts": pa.int64(), "a": pa.int64(), "b": pa.int64(), "s": pa.string()}
    return pa.table(columns, schema=pa.schema(list(types.items())))


@pytest.mark.parametrize("ordering", [nightly(""), "ts"])
@pytest.mark.parametrize(("table_type", "name"), by_day(CASES, CASES[::2].__contains__))
def test_rows_are_those_of_the_join_and_the_table_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_type: str, name: str, ordering: str
) -> None:
    make = (UPDATES | UPSERTS)[name]
    random = Random(name)
    twins = [
        hoodie.create_table(
            str(tmp_path / way), name="t", record_key="id", partition_by="p", ordering=ordering, table_type=table_type
        )
        for way in ("key", "join")
    ]
    first = rows(random, list(range(30)))
    for table in twins:
        table.upsert(first)
        table.delete(first.slice(3, 4).select(["id", "p"]))
    for step in range(4):
        source = rows(random, sorted(random.sample(range(45), 20)))
        results = []
        for table in twins:
            with monkeypatch.context() as patched:
                if table is twins[0]:
                    patched.setattr(merge, "joined_rows", _refuse)
                else:
                    patched.setattr(merge, "plan_by_key", lambda *_: None)
                results.append(make(table.merge(source, "target.id = source.id and target.p = source.p")).execute())
        by_key, by_join = (
            hoodie.open_table(table.path).snapshot(columns=first.column_names).to_arrow().sort_by("id")
            for table in twins
        )
        assert by_key.to_pylist() == by_join.to_pylist(), step
        assert len({(r.inserted, r.updated, r.deleted) for r in results}) == 1, step


def _refuse(*_: Any) -> Any:
    raise AssertionError("the table was joined")


def test_a_row_without_its_partition_is_inserted_whole_as_by_the_join(tmp_path: Path) -> None:
    """Null equals no null: it is inserted, in place of the stored row of its key, and nothing of that stays."""
    table = hoodie.create_table(str(tmp_path), name="t", record_key="id", partition_by="p")
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("a", pa.int64()), ("b", pa.int64())])
    table.upsert(pa.table({"id": [1, 2], "p": [None, "x"], "a": [1, 1], "b": [1, 1]}, schema=schema))
    source = pa.table({"id": [1, 2], "p": [None, "x"], "a": [2, 2], "b": [2, 2]}, schema=schema)
    merged = table.merge(source, "target.id = source.id and target.p = source.p")
    merged.when_matched_update({"a": "source.a"}).when_not_matched_insert_all().execute()
    stored = table.snapshot(columns=["id", "a", "b"]).to_arrow().sort_by("id").to_pylist()
    assert stored == [{"id": 1, "a": 2, "b": 2}, {"id": 2, "a": 2, "b": 1}]


def test_an_insert_may_lack_the_ordering_value_where_nothing_is_inserted(tmp_path: Path) -> None:
    table = hoodie.create_table(str(tmp_path), name="t", record_key="id", ordering="ts")
    table.upsert(pa.table({"id": [1, 2], "ts": [5, 5], "a": [1, 1]}))
    source = pa.table({"id": [1, 2], "a": [10, 20]})
    merged = table.merge(source).when_matched_update({"a": "source.a"})
    merged.when_not_matched_insert({"id": "source.id", "a": "source.a"}).execute()
    stored = table.snapshot(columns=["id", "ts", "a"]).to_arrow().sort_by("id").to_pylist()
    assert stored == [{"id": 1, "ts": 5, "a": 10}, {"id": 2, "ts": 5, "a": 20}]


def test_a_value_that_is_made_of_the_stored_row_is_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = hoodie.create_table(str(tmp_path), name="t", record_key="id")
    table.upsert(pa.table({"id": [1], "a": [1], "b": [5]}))
    source = pa.table({"id": [1], "a": [2], "b": [3]})
    table.merge(source).when_matched_update({"a": "source.a + target.b"}).execute()
    assert table.snapshot(columns=["id", "a", "b"]).to_arrow().to_pylist() == [{"id": 1, "a": 7, "b": 5}]
    monkeypatch.setattr(merge, "joined_rows", _refuse)
    table.merge(source).when_matched_update({"a": "source.a"}).execute()
    assert table.snapshot(columns=["id", "a", "b"]).to_arrow().to_pylist() == [{"id": 1, "a": 2, "b": 5}]
