"""Updates, deletes and merges by condition on a table that is opened without Spark."""

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hoodie
from hoodie.api.arrow.rows import Rows
from hoodie.api.table import HoodieTable
from hoodie.errors import InvalidInput, KeyMatchedTwice, MissingPackage, SchemaMismatch, WriteConflict

TYPES = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
ROUTES = pytest.mark.parametrize("most", ["268435456", "0"], ids=["memory", "files"])
FIRST = [("a", "oslo", 1, 1.0), ("b", "oslo", 1, 2.0), ("c", "rome", 1, 3.0)]
CHANGES = [
    ("a", "oslo", 2, 10.0, "U"),
    ("b", "oslo", 2, 0.0, "D"),
    ("x", "bern", 2, 5.0, "U"),
    ("y", "bern", 2, 6.0, "D"),
]
NAMES = ["id", "city", "ts", "price"]
BY_KEY = "target.id = source.id AND target.city = source.city"


def frame(rows: list[Any], names: list[str] = NAMES) -> pa.Table:
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})


def new_table(path: Path, table_type: str = "COPY_ON_WRITE", **options: Any) -> HoodieTable[Rows]:
    table = hoodie.create_table(
        str(path), name="t", record_key="id", partition_by="city", ordering="ts", table_type=table_type, options=options
    )
    table.upsert(frame(FIRST))
    return table


def changes() -> pa.Table:
    return frame(CHANGES, [*NAMES, "op"])


def rows(table: HoodieTable[Rows]) -> list[tuple[Any, ...]]:
    found = table.snapshot(columns=NAMES).to_arrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def counts(result: hoodie.WriteResult) -> tuple[int, int, int]:
    return result.inserted, result.updated, result.deleted


def unchanged(table: HoodieTable[Rows]) -> None:
    assert len(table.history()) == 1
    assert rows(table) == FIRST


@TYPES
@ROUTES
def test_rows_are_updated_and_deleted_by_condition(tmp_path: Path, table_type: str, most: str):
    table = new_table(tmp_path / "t", table_type, **{"hoodie.spark.driver.max.batch.bytes": most})
    result = table.update({"price": "price * 2 + ts", "ts": "ts + 1"}, where="city = 'oslo' and price < 1.5")
    assert counts(result) == (0, 1, 0)
    assert rows(table) == [("a", "oslo", 2, 3.0), *FIRST[1:]]
    assert table.update({"price": 7}, "city ilike 'ROME'").updated == 1
    assert table.delete(where="price between 2 and 3").deleted == 2
    assert rows(table) == [("c", "rome", 1, 7.0)]
    assert table.delete(where="true").deleted == 1
    assert rows(table) == []


@TYPES
@ROUTES
def test_a_merge_applies_changes_in_one_commit(tmp_path: Path, table_type: str, most: str):
    table = new_table(tmp_path / "t", table_type, **{"hoodie.spark.driver.max.batch.bytes": most})
    result = (
        table.merge(changes(), BY_KEY)
        .when_matched_delete(condition="source.op = 'D'")
        .when_matched_update_all()
        .when_not_matched_insert_all(condition="source.op <> 'D'")
        .execute()
    )
    assert rows(table) == [("a", "oslo", 2, 10.0), ("c", "rome", 1, 3.0), ("x", "bern", 2, 5.0)]
    assert counts(result) == (1, 1, 1)
    assert len(table.history()) == 2
    assert table.schema.names == NAMES


@TYPES
@pytest.mark.parametrize("condition", [None, "target.id = source.id and target.n < 9"], ids=["key", "condition"])
def test_a_source_brings_lists_that_are_all_empty(tmp_path: Path, table_type: str, condition: str | None):
    table = hoodie.create_table(tmp_path, record_key="id", table_type=table_type)
    kind = pa.map_(pa.string(), pa.list_(pa.int64()))
    first = pa.table({"id": [1], "n": [1], "tags": [["a"]], "s": [{"a": 1, "l": [1]}]})
    table.upsert(first.append_column("m", pa.array([[("x", [1])]], kind)))
    empty = [{"id": key, "n": 2, "tags": [], "s": {"a": None, "l": []}, "m": [("q", [])]} for key in (1, 2)]
    untyped = pa.map_(pa.string(), pa.list_(pa.null()))
    source = pa.table({name: [row[name] for row in empty] for name in ("id", "n", "tags", "s")})
    source = source.append_column("m", pa.array([row["m"] for row in empty], untyped))
    table.merge(source, condition).when_matched_update_all().when_not_matched_insert_all().execute()
    assert table.to_arrow().sort_by("id").to_pylist() == empty


@TYPES
def test_a_merge_computes_with_the_rows_of_the_table(tmp_path: Path, table_type: str):
    table = new_table(tmp_path / "t", table_type)
    result = (
        table.merge(changes(), BY_KEY)
        .when_matched_delete(condition="source.op = 'D'")
        .when_matched_update({"price": "target.price + source.price", "target.ts": "source.ts"})
        .when_not_matched_insert({"id": "source.id", "city": "source.city", "ts": 7}, condition="source.price = 5")
        .when_not_matched_by_source_update({"price": -1})
        .execute()
    )
    assert rows(table) == [("a", "oslo", 2, 11.0), ("c", "rome", 1, -1.0), ("x", "bern", 7, None)]
    assert counts(result) == (1, 2, 1)


def test_rows_that_no_source_row_matches_are_deleted(tmp_path: Path):
    table = new_table(tmp_path / "t")
    merge = table.merge(changes()).when_matched_update_all()
    assert counts(merge.when_not_matched_by_source_delete(condition="target.price > 2.5").execute()) == (0, 2, 1)
    assert rows(table) == [("a", "oslo", 2, 10.0), ("b", "oslo", 2, 0.0)]


@TYPES
def test_a_plain_merge_by_key_reads_no_row_of_the_table_and_needs_no_engine(
    tmp_path: Path, table_type: str, monkeypatch: pytest.MonkeyPatch
):
    table = new_table(tmp_path / "t", table_type)

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("hoodie.conditional.merge.joined_rows", refuse)
    monkeypatch.setattr("hoodie.expressions.duck.connection", refuse)
    merge = table.merge(changes().drop_columns(["op"]))
    assert counts(merge.when_matched_update_all().when_not_matched_insert_all().execute()) == (2, 2, 0)
    assert rows(table)[-1] == ("y", "bern", 2, 6.0)
    keys = frame([("x", "bern"), ("q", "bern")], ["id", "city"])
    assert table.merge(keys).when_matched_delete().execute().deleted == 1


def test_a_merge_without_an_equality_joins_by_comparing(tmp_path: Path):
    table = new_table(tmp_path / "t")
    limits = pa.table({"low": [1.5], "high": [2.5], "to": [20.0]})
    merge = table.merge(limits, "target.price > source.low and target.price < source.high")
    assert counts(merge.when_matched_update({"price": "source.to"}).execute()) == (0, 1, 0)
    assert rows(table) == [FIRST[0], ("b", "oslo", 1, 20.0), FIRST[2]]


def test_a_source_row_that_matches_many_rows_updates_each(tmp_path: Path):
    table = new_table(tmp_path / "t")
    merge = table.merge(pa.table({"town": ["oslo"], "by": [100]}), "target.city = source.town")
    assert merge.when_matched_update({"price": "price + by"}).execute().updated == 2
    assert [row[3] for row in rows(table)] == [101.0, 102.0, 3.0]


def test_an_update_of_a_table_that_has_a_key_twice_speaks_of_the_table(tmp_path: Path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.insert(pa.table({"id": ["a", "a", "b"], "v": [1, 2, 3]}))
    with pytest.raises(KeyMatchedTwice, match=r"^1 key has more than one row in the table, such as 'a': an update"):
        table.update({"v": "v + 1"}, where="id = 'a'")
    assert table.update({"v": "v + 1"}, where="id = 'b'").updated == 1


def test_two_source_rows_for_one_row_change_nothing(tmp_path: Path):
    table = new_table(tmp_path / "t")
    twice = pa.concat_tables([changes(), changes()])
    with pytest.raises(KeyMatchedTwice):
        table.merge(twice).when_matched_update_all().execute()
    with pytest.raises(KeyMatchedTwice):
        table.merge(twice, "target.price < 1.5").when_matched_update({"price": "source.price"}).execute()
    unchanged(table)


@TYPES
@pytest.mark.parametrize("condition", [BY_KEY, "target.id = source.id"])
def test_two_source_rows_may_delete_one_row(tmp_path: Path, table_type: str, condition: str):
    table = new_table(tmp_path / "t", table_type)
    merge = table.merge(pa.concat_tables([changes(), changes()]), condition)
    assert counts(merge.when_matched_delete(condition="source.op = 'D'").execute()) == (0, 0, 1)
    assert rows(table) == [FIRST[0], FIRST[2]]
    merge.when_matched_delete().execute()
    assert rows(table) == [FIRST[2]]


def test_subqueries_ask_frames(tmp_path: Path):
    table = new_table(tmp_path / "t")
    bad = pa.table({"id": ["a", "q", None], "limit": [0, 5, None]})
    frames = {"bad": bad}
    assert (
        table.update(
            {"price": "(select max(limit) from bad)"}, where="id in (select id from bad)", frames=frames
        ).updated
        == 1
    )
    assert rows(table)[0] == ("a", "oslo", 1, 5.0)
    assert table.delete(where="id not in (select id from bad)", frames=frames).deleted == 0  # null is among them
    gone = "not exists (select 1 from bad b where b.id = target.id and b.limit < target.price)"
    assert table.delete(where=gone, frames=frames).deleted == 2
    with pytest.raises(InvalidInput, match="there is no frame 'worse'; there are bad"):
        table.delete(where="id in (select id from worse)", frames=frames)
    assert len(rows(table)) == 1


def test_dates_are_compared_with_the_day_of_the_call(tmp_path: Path):
    table = hoodie.create_table(str(tmp_path / "t"), name="t", record_key="id")
    today = dt.datetime.now(dt.UTC).date()
    table.upsert(pa.table({"id": [1, 2, 3], "d": [today, today - dt.timedelta(days=8), None]}))
    assert table.delete(where="d > current_date - 7").deleted == 1
    assert table.delete(where="coalesce(d, date '2000-01-01') < current_date() - interval 1 year").deleted == 1
    assert table.count() == 1


@TYPES
def test_a_condition_may_ask_for_the_commit_that_wrote_a_row(tmp_path: Path, table_type: str):
    table = new_table(tmp_path / "t", table_type)
    second = table.upsert(frame([("b", "oslo", 2, 5.0)])).instant
    assert table.update({"price": "price + 1"}, where=f"_hoodie_commit_time < '{second}'").updated == 2
    assert [row[3] for row in rows(table)] == [2.0, 5.0, 4.0]
    assert table.delete(where=f"target._hoodie_commit_time = '{second}'").deleted == 1


def test_partitions_and_row_groups_that_cannot_fit_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    table = new_table(tmp_path / "t")
    rome = next((tmp_path / "t" / "rome").glob("*.parquet"))
    rome.write_bytes(b"")
    with pytest.raises(Exception):  # noqa: B017, PT011 - whichever way a file without a byte is refused
        table.update({"price": 1}, where="price > 100")
    assert table.update({"price": "price + 1"}, where="target.city = 'oslo' and price > 1").updated == 1


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda t: t.update({"prize": 1}), InvalidInput, "Did you mean 'price'"),
        (lambda t: t.update({"city": "'bern'"}, where="id = 'a'"), InvalidInput, "of the partition"),
        (lambda t: t.update({"id": "'q'"}), InvalidInput, "record key"),
        (lambda t: t.update({"price": "'dear'"}), SchemaMismatch, "'price' is double, and the value string.*Cast them"),
        (lambda t: t.update({"ts": "ts + 9223372036854775807"}), InvalidInput, "too large for bigint"),
        (lambda t: t.update({"price": "1 / (ts - 1)"}), InvalidInput, "division by zero"),
        (lambda t: t.update({"price": 1, "PRICE": 2}), InvalidInput, "set twice"),
        (lambda t: t.update({}), InvalidInput, "sets no column"),
        (lambda t: t.update("price > 1"), InvalidInput, "an update takes columns"),
        (lambda t: t.delete(where="fare > 3"), InvalidInput, "there is no column 'fare'"),
        (lambda t: t.delete(where="price >"), InvalidInput, "cannot be parsed"),
        (lambda t: t.delete(where="price"), InvalidInput, "expected a condition"),
        (lambda t: t.delete(where="soundex(id) = 'a'"), InvalidInput, "soundex is not known without Spark"),
        (lambda t: t.delete(where="cast(id as int) = 1"), InvalidInput, "'a' .string. cannot be cast to int"),
        (lambda t: t.delete(), InvalidInput, "one of them"),
        (lambda t: t.merge(changes()).execute(), InvalidInput, "has no clause"),
        (lambda t: t.merge([1]), InvalidInput, "expected rows"),
        (
            lambda t: t.merge(changes(), "s.id = t.id").when_matched_delete().execute(),
            InvalidInput,
            "there is no table or struct 's' here, where columns are of 'source' and 'target'",
        ),
        (lambda t: t.merge(changes(), "id = 'a'").when_matched_delete().execute(), InvalidInput, "say which"),
        (
            lambda t: t.merge(changes()).when_matched_update({"price": "source.cost"}).execute(),
            InvalidInput,
            "there is no column 'source.cost'",
        ),
        (
            lambda t: t.merge(frame([("a", "oslo")], ["id", "city"])).when_not_matched_insert_all().execute(),
            SchemaMismatch,
            "lacks ts, price",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_and_changes_nothing(tmp_path: Path, call: Any, error: Any, words: str):
    table = new_table(tmp_path / "t")
    with pytest.raises(error, match=words):
        call(table)
    unchanged(table)


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        (pa.float64(), pd.NA, None),
        (pa.timestamp("us"), pd.NaT, None),
        (pa.date32(), np.datetime64("2024-03-01"), dt.date(2024, 3, 1)),
        (pa.timestamp("us"), np.datetime64("2024-03-01T10:30"), dt.datetime(2024, 3, 1, 10, 30)),
        (pa.timestamp("us"), np.datetime64("2024-03-01T10:30", "ns"), dt.datetime(2024, 3, 1, 10, 30)),
        (pa.float64(), np.float32("nan"), "nan"),
        (pa.list_(pa.int64()), [], []),
        (pa.list_(pa.int64()), [None], [None]),
        (pa.map_(pa.string(), pa.int64()), {"a": 1}, [("a", 1)]),
        (pa.map_(pa.string(), pa.int64()), {}, []),
    ],
    ids=["NA", "NaT", "numpy's day", "numpy's time", "numpy's nanoseconds", "NaN", "[]", "[None]", "dict", "{}"],
)
def test_an_update_takes_values_that_are_no_sql(tmp_path: Path, kind: pa.DataType, value: Any, stored: Any):
    table = hoodie.create_table(str(tmp_path / "t"), record_key="id")
    table.upsert(pa.table({"id": [1], "x": pa.nulls(1, kind)}))

    assert table.update({"x": value}, "id = 1").updated == 1

    (row,) = table.to_arrow().to_pylist()
    assert (str(row["x"]) if stored == "nan" else row["x"]) == stored


@pytest.mark.parametrize("text", ["bergen", "new york", "it's"])
def test_a_text_without_quotes_is_told_how_to_stand_in_them(tmp_path: Path, text: str):
    table = new_table(tmp_path / "t")
    with pytest.raises(InvalidInput, match="A value that is text stands in quotes: ") as refused:
        table.update({"price": text}, "id = 'a'")

    quoted = text.replace("'", "''")
    assert str(refused.value).endswith(f"\"'{quoted}'\"")


def test_an_expression_that_fails_is_not_taken_for_a_text(tmp_path: Path):
    with pytest.raises(InvalidInput) as refused:
        new_table(tmp_path / "t").update({"price": "prize * 2"}, "id = 'a'")

    assert "quotes" not in str(refused.value)


def test_a_function_that_only_duckdb_has_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    table = new_table(tmp_path / "t")
    assert table.delete(where="instr(city, id) > 9").deleted == 0
    table = new_table(tmp_path / "u")
    monkeypatch.setattr("hoodie.expressions.duck._database", _no_duckdb)
    with pytest.raises(MissingPackage, match=r"instr .* needs duckdb: pip install 'hoodie\[duckdb\]'"):
        table.delete(where="instr(city, id) > 0")
    unchanged(table)


def _no_duckdb() -> None:
    raise ModuleNotFoundError("duckdb")


def test_rows_that_another_writer_changed_meanwhile_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from hoodie.conditional import update

    table, plan = new_table(tmp_path / "t"), update.target_scan
    writes = [frame([("b", "oslo", 2, 50.0)])]

    def and_then_another_write(*of: Any) -> Any:
        scan = plan(*of)
        if writes:
            hoodie.open_table(str(tmp_path / "t")).upsert(writes.pop())
        return scan

    monkeypatch.setattr(update, "target_scan", and_then_another_write)
    options = {"hoodie.write.num.retries.on.conflict.failures": "1"}
    assert table.update({"price": "price + 1"}, where="price < 3", options=options).updated == 1
    assert rows(table) == [("a", "oslo", 1, 2.0), ("b", "oslo", 2, 50.0), FIRST[2]]
    writes.append(frame([("c", "rome", 2, 60.0)]))
    with pytest.raises(WriteConflict):
        table.update({"price": "price + 1"}, options={"hoodie.write.num.retries.on.conflict.failures": "0"})


def test_rows_whose_files_were_cleaned_meanwhile_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from hoodie.conditional import update

    table, plan = new_table(tmp_path / "t"), update.target_scan
    newest = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
    writes = [frame([("b", "oslo", 2, 50.0)])]

    def and_then_a_clean(*of: Any) -> Any:
        scan = plan(*of)
        if writes:
            other = hoodie.open_table(str(tmp_path / "t"), options=newest)
            other.upsert(writes.pop())
            other.clean()
        return scan

    monkeypatch.setattr(update, "target_scan", and_then_a_clean)
    options = {"hoodie.write.num.retries.on.conflict.failures": "1"}
    assert table.update({"price": "price + 1"}, where="price < 3", options=options).updated == 1
    assert rows(table) == [("a", "oslo", 1, 2.0), ("b", "oslo", 2, 50.0), FIRST[2]]
    writes.append(frame([("a", "oslo", 3, 7.0)]))
    with pytest.raises(WriteConflict, match="a cleaning deleted a file that it was to read"):
        table.delete(where="price < 9", options={"hoodie.write.num.retries.on.conflict.failures": "0"})


def test_values_that_no_clause_sets_keep_their_types_and_digits(tmp_path: Path):
    table = hoodie.create_table(str(tmp_path / "t"), name="t", record_key="id")
    first = pa.table(
        {
            "id": [1, 2],
            "big": [2**53 + 1, None],
            "money": pa.array([Decimal("12345678901234567890.12"), None], pa.decimal128(38, 2)),
            "tags": [["x"], None],
            "where": pa.array([{"x": 1, "y": None}, None], pa.struct([("x", pa.int64()), ("y", pa.string())])),
            "at": pa.array([1, None], pa.timestamp("us", "UTC")),
        }
    )
    table.upsert(first)
    table.update({"tags": ["new", "tag"]}, where="id = 2")
    table.update({"money": "money + 0.01"}, where="id = 1")
    found = table.snapshot(columns=first.schema.names).to_arrow().sort_by("id").to_pylist()
    assert found[0] == {**first.to_pylist()[0], "money": Decimal("12345678901234567890.13")}
    assert found[1] == {**first.to_pylist()[1], "tags": ["new", "tag"]}


def test_a_merge_into_a_table_without_rows_inserts(tmp_path: Path):
    table = hoodie.create_table(str(tmp_path / "t"), name="t", record_key="id")
    merge = table.merge(pa.table({"id": [1], "v": ["x"]})).when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute().inserted == 1
    assert table.snapshot(columns=["id", "v"]).to_arrow().to_pylist() == [{"id": 1, "v": "x"}]
    empty = hoodie.create_table(str(tmp_path / "e"), name="t", record_key="id")
    assert empty.delete(where="id = 1").deleted == 0


@pytest.mark.parametrize("condition", [None, "source.id = target.id AND source.v > target.v"])
def test_the_clauses_of_a_first_merge_may_name_columns_of_the_table(tmp_path: Path, condition: str | None):
    table = hoodie.create_table(tmp_path / "t", name="t", record_key="id")
    merge = table.merge(pa.table({"id": [1, 2, 25], "v": [3.0, 1.0, None]}), *([condition] if condition else []))
    merge = merge.when_matched_delete(condition="source.v > 2").when_matched_update_all(condition="target.v < source.v")
    result = merge.when_not_matched_insert_all(condition="source.id < 20").execute()
    assert (result.inserted, result.updated, result.deleted) == (2, 0, 0)
    assert table.snapshot(columns=["id", "v"]).to_arrow().to_pylist() == [{"id": 1, "v": 3.0}, {"id": 2, "v": 1.0}]


def test_a_merge_takes_pandas_and_polars(tmp_path: Path):
    import pandas as pd
    import polars as pl

    table = new_table(tmp_path / "t")
    given = pd.DataFrame({"id": ["a"], "city": ["oslo"], "ts": [5], "price": [9.0]})
    assert table.merge(given).when_matched_update_all().execute().updated == 1
    other = pl.DataFrame({"id": ["a"], "city": ["oslo"], "more": [0.5]})
    assert table.merge(other).when_matched_update({"price": "target.price + more"}).execute().updated == 1
    assert rows(table)[0] == ("a", "oslo", 5, 9.5)


@TYPES
def test_a_global_index_lets_an_update_move_rows_to_another_partition(tmp_path: Path, table_type: str):
    table = new_table(tmp_path / "t", table_type, **{"hoodie.index.type": "GLOBAL_SIMPLE"})
    table.update({"city": "upper(city)"}, where="price < 2.5")
    assert rows(table) == [("a", "OSLO", 1, 1.0), ("b", "OSLO", 1, 2.0), FIRST[2]]
    moved = table.merge(frame([("c", "bern", 2, 30.0)])).when_matched_update_all().when_not_matched_insert_all()
    moved.execute()
    assert table.delete(where="city = 'OSLO' and price > 1.5").deleted == 1
    assert rows(table) == [("a", "OSLO", 1, 1.0), ("c", "bern", 2, 30.0)]


@TYPES
@pytest.mark.parametrize("index", ["BLOOM", "BUCKET"])
def test_keys_of_several_columns_are_merged_with_other_indexes(tmp_path: Path, table_type: str, index: str):
    options = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "2"}
    table = hoodie.create_table(
        str(tmp_path / "t"),
        name="t",
        record_key=["id", "ts"],
        partition_by="city",
        table_type=table_type,
        options=options,
    )
    table.upsert(frame([*FIRST, ("a", "oslo", 2, 4.0), ("", "oslo", 3, 5.0)]))
    given = frame([("a", "oslo", 2, 0.5), ("", "oslo", 3, 0.5), ("z", "oslo", 9, 0.5)])
    merge = table.merge(given).when_matched_update({"price": "target.price + source.price"})
    assert sum(counts(merge.when_not_matched_insert_all().execute())) == 3
    assert [row[3] for row in rows(table)] == [5.5, 1.0, 4.5, 2.0, 3.0, 0.5]
    plain = table.merge(given.select(["id", "city", "ts"]).slice(0, 2)).when_matched_delete()
    assert plain.execute().deleted == 2
    assert table.update({"price": 0}, where="ts = 9").updated == 1
    assert rows(table) == [*FIRST, ("z", "oslo", 9, 0.0)]


ODD = "it's `\\\\ odd"


@pytest.mark.parametrize(
    "filters",
    [
        [("id", "=", ODD)],
        [("id", "not in", ["b"])],
        [("price", ">", 1.5), ("ts", "==", 1)],
        [[("id", "=", "b")], [("price", "<=", Decimal("1.0"))]],
        [("day", ">", dt.date(2024, 1, 1))],
        [("at", "<", dt.datetime(2024, 1, 2, 0, 0, 0, 1, tzinfo=dt.UTC))],
        [("done", "!=", True)],
        [("id", "in", [])],
        [("id", "not in", [])],
        [("price", "<", float("nan"))],
        [("note", "not in", ["x"])],
        [("note", "in", [None])],
        [("note", "not in", [None])],
    ],
    ids=str,
)
def test_an_update_takes_the_tuples_that_reads_do(tmp_path: Path, filters: list[Any]) -> None:
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    rows = {
        "id": [ODD, "b"],
        "price": [1.0, 2.0],
        "ts": [1, 1],
        "day": days,
        "done": [True, False],
        "note": ["y", None],
    }
    at = pa.array(days).cast(pa.timestamp("us", "UTC"))
    table.upsert(pa.table({**rows, "at": at, "seen": [False, False]}))
    expected = sorted(table.to_arrow(filters=filters)["id"].to_pylist())
    assert table.update({"seen": True}, filters).updated == len(expected)
    assert sorted(table.to_arrow(filters="seen")["id"].to_pylist()) == expected
    assert table.delete(where=filters).deleted == len(expected)
    assert table.count(filters="seen") == 0


@pytest.mark.parametrize(
    "filters",
    [[("id", "~", "a")], ("id", "=", "a"), [("id", "=", None)], [("id", "=")], []],
    ids=str,
)
def test_an_update_refuses_tuples_that_are_no_condition(tmp_path: Path, filters: Any) -> None:
    table = new_table(tmp_path / "t")
    with pytest.raises(InvalidInput, match="expected tuples"):
        table.update({"price": "0"}, filters)
    unchanged(table)


def test_a_table_without_columns_has_no_row_that_tuples_delete(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    assert table.delete(where="id = 1").deleted == table.delete(where=[("id", "=", 1)]).deleted == 0


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_way_out_of_a_key_that_is_stored_twice(tmp_path: Path, table_type: str):
    """On a Merge-on-Read table the row that is upserted would take the place of both."""
    table = hoodie.create_table(tmp_path, name="t", record_key="id", table_type=table_type)
    table.insert(pa.table({"id": [1, 1, 2], "v": [1, 2, 3]}))
    with pytest.raises(KeyMatchedTwice, match=r"delete the key, and upsert .*Compact a Merge-on-Read table between"):
        table.update({"v": "v + 1"}, where="id = 1")
    table.delete([1])
    if table_type == "MERGE_ON_READ":
        assert table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": 1}) is not None
        table.compact()
    table.upsert(pa.table({"id": [1], "v": [5]}))
    table.update({"v": "v + 1"}, where="id = 1")
    assert table.to_arrow().sort_by("id").to_pylist() == [{"id": 1, "v": 6}, {"id": 2, "v": 3}]


def test_names_in_clauses_about_one_side_are_those_of_the_side(tmp_path: Path):
    """As in Spark's MERGE: a clause for rows that are not matched sees one row."""
    table = hoodie.create_table(tmp_path, name="t", record_key="id")
    table.upsert(pa.table({"id": [1, 2, 3], "v": [1, 2, 30]}))
    source = pa.table({"id": [1, 7, 8], "v": [10, 70, -1]})
    merge = table.merge(source).when_matched_update({"v": "target.v + source.v"})
    merge = merge.when_not_matched_insert({"id": "id", "v": "v + 1"}, condition="v > 0")
    merge.when_not_matched_by_source_delete(condition="v > 20").execute()
    assert table.to_arrow().sort_by("id").to_pylist() == [{"id": 1, "v": 11}, {"id": 2, "v": 2}, {"id": 7, "v": 71}]
    with pytest.raises(InvalidInput, match="say which"):
        table.merge(source).when_matched_update({"v": "v + 1"}).execute()


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("b = X'6162'", [1]),
        ("X'6162' = b", [1]),
        ("b in (X'6162', X'63')", [1]),
        ("b > X'61'", [1, 2]),
        ("b = v", [1]),
        ("coalesce(b, X'00') = X'00'", [3]),
        ("length(b) = 2", [1, 2]),
        ("e[0] = X'6162'", [1]),
    ],
)
def test_bytes_of_a_fixed_length_are_compared_with_others(tmp_path: Path, condition: str, ids: list[int]):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    two = pa.binary(2)
    fixed = pa.array([b"ab", b"cd", None], two)
    others = pa.array([b"ab", b"c", None], pa.binary())
    lists = pa.array([[b"ab"], [b"cd"], None], pa.list_(two))
    table.upsert(pa.table({"id": [1, 2, 3], "b": fixed, "v": others, "e": lists}))
    assert table.to_arrow(filters=condition)["id"].to_pylist() == ids
    assert table.delete(where=condition).deleted == len(ids)


def test_bytes_are_assigned_to_a_column_of_their_length(tmp_path: Path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.upsert(pa.table({"id": [1], "b": pa.array([b"ab"], pa.binary(2)), "v": pa.array([b"xyz"], pa.binary())}))
    table.update({"b": "X'7a7a'", "v": "b"})
    assert table.to_arrow().to_pylist() == [{"id": 1, "b": b"zz", "v": b"ab"}]
    with pytest.raises(SchemaMismatch, match=r"binary values of column b do not fit binary\(2\)"):
        table.update({"b": "X'7a'"})


def test_a_clause_about_one_side_names_no_column_of_the_other(tmp_path: Path):
    table = hoodie.create_table(tmp_path / "t", name="t", record_key="id")
    table.upsert(pa.table({"id": [1, 2], "v": [1, 2]}))
    merge = table.merge(pa.table({"id": [1, 3], "v": [9, 9]}))
    for builder, problem in (
        (
            merge.when_not_matched_by_source_delete(condition="source.v is null"),
            "NOT MATCHED BY SOURCE has no row of source",
        ),
        (merge.when_not_matched_by_source_update({"v": "source.v + 1"}), "NOT MATCHED BY SOURCE has no row of source"),
        (merge.when_not_matched_insert_all(condition="target.v is null"), "NOT MATCHED has no row of target"),
        (merge.when_not_matched_insert({"id": "source.id", "v": "target.v"}), "NOT MATCHED has no row of target"),
    ):
        with pytest.raises(InvalidInput, match=problem):
            builder.execute()
    assert table.to_arrow().to_pylist() == [{"id": 1, "v": 1}, {"id": 2, "v": 2}]


@TYPES
def test_a_field_of_a_struct_is_set_and_the_others_stay(tmp_path: Path, table_type: str):
    inner = pa.struct([("n", pa.int32()), ("at", pa.timestamp("ms"))])
    kind = pa.struct([("city", pa.string()), ("fare", pa.float64()), ("In", inner)])
    table = hoodie.create_table(str(tmp_path / "t"), name="t", record_key="id", table_type=table_type)
    noon = dt.datetime(2024, 1, 1, 12)
    first = [{"city": "oslo", "fare": 1.5, "In": {"n": 1, "at": noon}}, None, {"city": "rome", "fare": 2.5, "In": None}]
    table.upsert(pa.table({"id": [1, 2, 3], "v": [1, 2, 3], "s": pa.array(first, kind)}))
    assert table.update({"s.fare": "s.fare + v", "target.S.in.N": 7, "v": "v * 2"}, where="id < 3").updated == 2
    as_set = {"city": None, "fare": None, "In": {"n": 7, "at": None}}  # of a null struct, as Delta has it
    updated = {"city": "oslo", "fare": 2.5, "In": {"n": 7, "at": noon}}
    assert structs(table) == [(1, updated, 2), (2, as_set, 4), (3, first[2], 3)]

    merge = table.merge(pa.table({"id": [1, 9], "name": ["bern", None], "v": [5, 5]}))
    merge = merge.when_matched_update({"s.city": "name", "v": "source.v"}).when_not_matched_insert({"id": "id"})
    merge.when_not_matched_by_source_update({"s.in": None}, condition="s.city is null").execute()
    as_set["In"] = None
    assert structs(table) == [(1, {**updated, "city": "bern"}, 5), (2, as_set, 4), (3, first[2], 3), (9, None, None)]


def structs(table: HoodieTable[Rows]) -> list[tuple[Any, ...]]:
    found = table.snapshot(columns=["id", "s", "v"]).to_arrow().sort_by("id").to_pylist()
    return [tuple(row.values()) for row in found]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"s.b": 1}, "s.b: 's' has no such field; it has a"),
        ({"v.a": 1}, "v.a: 'v' is no struct, and a part of it cannot be set; set it as a whole"),
        ({"s.a.b": 1}, "s.a.b: 's.a' is no struct, and a part of it cannot be set; set it as a whole"),
        ({"s.a": 1, "target.S.A": 2}, "column 's.a' is set twice"),
        ({"s": None, "s.a": 2}, "column 's' is set twice"),
        ({"s.a": "'x'"}, "column 's.a' is int, and the value string"),
        ({"k.id": 1}, "column 'k' is of the record key, which an update cannot change"),
    ],
)
def test_a_field_that_cannot_be_set_is_named(tmp_path: Path, values: dict[str, Any], said: str):
    table = hoodie.create_table(str(tmp_path / "t"), name="t", record_key="k.id")
    struct = pa.array([{"a": 1}], pa.struct([("a", pa.int32())]))
    table.upsert(pa.table({"k": [{"id": 1}], "v": [1], "s": struct}))
    with pytest.raises((InvalidInput, SchemaMismatch), match=re.escape(said)):
        table.update(values)
    insert = table.merge(pa.table({"k": [{"id": 2}]})).when_not_matched_insert({"k": "k", "s.a": 1})
    with pytest.raises(
        InvalidInput, match="a new row takes no field of a struct by itself; give the column 's' as a whole"
    ):
        insert.execute()
    assert len(table.history()) == 1


NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("l", pa.list_(pa.int64())),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("s", pa.struct([("a", pa.int32()), ("p", pa.decimal128(5, 2))])),
    ]
)


@pytest.fixture(scope="module")
def nested_table(tmp_path_factory: pytest.TempPathFactory) -> HoodieTable[Rows]:
    table = hoodie.create_table(str(tmp_path_factory.mktemp("t") / "t"), name="t", record_key="id")
    first = {"id": 1, "l": [1], "m": [("a", 1)], "s": {"a": 1, "p": Decimal("1.25")}}
    table.upsert(pa.Table.from_pylist([first], NESTED))
    return table


@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        ("l", [2.0, None], [2, None]),
        ("l", "array(3.0D, null)", [3, None]),
        ("m", {"b": 2.0}, [("b", 2)]),
        ("m", "map('c', 3.00)", [("c", 3)]),
        ("s", {"a": 2.0, "p": 1.5}, {"a": 2, "p": Decimal("1.50")}),
        ("s", {"p": None, "a": None}, {"a": None, "p": None}),
        ("s.a", 4.0, {"a": 4}),
    ],
)
def test_numbers_within_nested_values_may_have_another_type(
    nested_table: HoodieTable[Rows], column: str, value: Any, stored: Any
):
    nested_table.update({column: value})
    found = nested_table.snapshot().to_arrow().to_pylist()[0][column[0]]
    assert found == stored or (column == "s.a" and found["a"] == 4)
    source = pd.DataFrame({"id": [1], "l": [[7.0]], "s": [{"a": 5.0, "p": 0.5}]})
    nested_table.merge(source).when_matched_update({"l": "source.l", "s": "source.s"}).execute()
    found = nested_table.snapshot(columns=["l", "s"]).to_arrow().to_pylist()
    assert found == [{"l": [7], "s": {"a": 5, "p": Decimal("0.50")}}]


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("l", [1.5], "column l.element is bigint, and cannot hold the value 1.5"),
        ("l", "array(1.5)", "column l.element is bigint, and cannot hold the value 1.5"),
        ("m", {"a": 1.5}, "column m.value is bigint, and cannot hold the value 1.5"),
        ("s", {"a": 2**40, "p": None}, "column s.a is int, and cannot hold the value 1099511627776"),
        ("s.a", 1.5, "column s.a is int, and cannot hold the value 1.5"),
        ("s.p", "1.255", "column s.p is decimal(5,2), and cannot hold the value 1.255"),
        ("l", ["a"], "column 'l' is array<bigint>, and the value array<string>. Cast them."),
        ("s", {"a": 1}, "column 's' is struct<a:int,p:decimal(5,2)>, and the value struct<a:bigint>. Cast them."),
    ],
)
def test_values_within_nested_ones_are_not_cut(nested_table: HoodieTable[Rows], column: str, value: Any, said: str):
    before = len(nested_table.history())
    with pytest.raises((InvalidInput, SchemaMismatch), match=re.escape(said)):
        nested_table.update({column: value})
    assert len(nested_table.history()) == before
