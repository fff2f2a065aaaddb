"""Rows that Polars, DuckDB and pyarrow read when they need them, with their own columns, filters and limits."""

import datetime as dt
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import hoodie
from hoodie.api.arrow import rows as rows_module
from hoodie.api.arrow.dataset import RowsDataset
from hoodie.api.arrow.rows import Rows
from hoodie.errors import InvalidInput
from hoodie.reading.filters.predicate import Tests
from hoodie.reading.scan import ScanPlan


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def rows(request: Any, tmp_path: Path) -> Rows:
    """A table whose files have other columns than it has now: one new, one wider."""
    table = hoodie.create_table(
        str(tmp_path / "t"), name="t", record_key="id", partition_by="city", table_type=request.param
    )
    day = dt.date(2024, 1, 31)
    old = {"id": [1, 2, 3], "city": ["oslo", "oslo", "rome"], "n": pa.array([1, 2, 3], pa.int32()), "d": [day] * 3}
    table.upsert(pa.table(old))
    table.upsert(
        pa.table({"id": [2, 4], "city": ["oslo", "bern"], "n": [2**40, 5], "d": [None, day], "note": ["x", None]})
    )
    return table.snapshot()


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[ScanPlan]:
    """The scans that are read."""
    seen: list[ScanPlan] = []
    read = rows_module.scan_batches

    def watched(scan: ScanPlan) -> Iterator[pa.RecordBatch]:
        seen.append(scan)
        return read(scan)

    monkeypatch.setattr(rows_module, "scan_batches", watched)
    return seen


def test_polars_gives_columns_filter_and_limit_to_the_files(rows: Rows, scans: list[ScanPlan]):
    lazy = rows.lazy()
    assert lazy.collect_schema().names() == rows.schema.names
    assert not scans
    found = lazy.filter((pl.col("city") == "oslo") & (pl.col("n") > 1)).select("id", "note").collect()
    assert found.to_dicts() == [{"id": 2, "note": "x"}]
    assert set(scans[-1].read) == {"id", "note", "city", "n"}
    assert scans[-1].partitions == ("oslo",)
    assert lazy.select("id").sort("id").collect()["id"].to_list() == [1, 2, 3, 4]
    assert scans[-1].read == ("id",)
    assert lazy.select(pl.len()).collect().item() == 4
    assert lazy.head(2).collect().height == 2
    assert lazy.group_by("city").agg(pl.col("n").max()).sort("city").collect()["n"].to_list() == [5, 2**40, 3]
    assert lazy.filter(pl.col("d") == dt.date(2024, 1, 31), pl.col("id") >= 2).collect().height == 2
    assert lazy.filter(pl.col("note").str.contains("x") | (pl.col("id") == 3)).collect().height == 2


def test_a_filter_of_polars_that_has_no_known_form_reads_all_and_keeps_what_it_says(rows: Rows, scans: list[ScanPlan]):
    odd = pl.col("id").map_batches(lambda values: values % 2 == 1, return_dtype=pl.Boolean)
    assert sorted(rows.lazy().filter(odd).collect()["id"].to_list()) == [1, 3]
    assert len(scans[-1].partitions) == 3


def test_duckdb_scans_the_rows_by_the_name_of_a_variable(rows: Rows, scans: list[ScanPlan]):
    data = rows.dataset()  # noqa: F841 - DuckDB finds it
    query = "select id, note from data where city = 'oslo' and n > 1"
    assert duckdb.sql(query).fetchall() == [(2, "x")]
    assert scans[-1].partitions == ("oslo",)
    assert set(scans[-1].read) == {"id", "note", "city", "n"}
    assert duckdb.sql("select count(*), max(n) from data").fetchall() == [(4, 2**40)]
    assert duckdb.sql("select a.id from data a join data b on a.n = b.n - 2 order by 1").fetchall() == [(1,), (3,)]
    assert duckdb.sql("select count(*) from rows").fetchall() == [(4,)]
    assert duckdb.sql("select id from data where d = date '2024-01-31' order by 1").fetchall() == [(1,), (3,), (4,)]


def test_duckdb_gives_times_with_a_zone_as_objects_of_python(tmp_path: Path):
    at = dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.upsert(pa.table({"id": [1], "seen": [at]}))
    data = table.snapshot().dataset()  # noqa: F841 - DuckDB finds it
    assert duckdb.sql("select seen from data").fetchall() == [(at,)]


def test_pyarrow_scans_the_rows_as_a_dataset(rows: Rows, scans: list[ScanPlan]):
    data = rows.dataset()
    assert isinstance(data, ds.Dataset)
    assert data.schema == rows.schema
    found = data.to_table(columns=["id"], filter=(pc.field("city") == "rome") & (pc.field("id") >= 2))
    assert found.to_pydict() == {"id": [3]}
    assert scans[-1].partitions == ("rome",)
    assert scans[-1].read == ("id", "city")
    assert data.count_rows(filter=pc.field("note").is_valid()) == 1
    assert data.head(2).num_rows == 2
    made = data.to_table(columns={"twice": pc.multiply(pc.field("id"), 2)}, filter=pc.field("id") == 4)
    assert made.to_pydict() == {"twice": [8]}
    assert sum(batch.num_rows for batch in data.to_batches(columns=["note"])) == 4
    assert pl.scan_pyarrow_dataset(data).filter(pl.col("id") == 4).select("n").collect()["n"].to_list() == [5]
    for refused in (data.get_fragments, lambda: data.join(data, "id"), lambda: data.sort_by("id")):
        with pytest.raises(InvalidInput, match="read them first"):
            refused()


def test_a_dataset_is_read_by_the_thread_that_asks_and_no_further_than_it_asks():
    """pyarrow's scanner reads ahead in a thread of its own: where it outlives Python, the process aborts or hangs."""
    threads: list[int] = []
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])

    def fetch(columns: Sequence[str], _: Tests) -> Iterator[pa.RecordBatch]:
        for number in range(40):
            threads.append(threading.get_ident())
            yield pa.record_batch({name: [number] * 3 for name in columns}, pa.schema(map(schema.field, columns)))

    data = RowsDataset(schema, fetch)
    assert data.head(4).num_rows == 4
    assert next(data.to_batches(filter=pc.field("id") == 1)).num_rows == 0
    assert threads == [threading.get_ident()] * 3
    assert pl.scan_pyarrow_dataset(data).head(2).collect().height == 2
    assert len(duckdb.sql("select id from data where n >= 0 limit 2").fetchall()) == 2
    assert len(threads) < 20
    assert data.take([0, 119]).to_pydict() == {"id": [0, 39], "n": [0, 39]}
    assert data.count_rows(filter=pc.field("n") > 9) == 90
    assert data.to_table(columns=[]).num_rows == 120


def test_a_dataset_is_written_by_pyarrow(rows: Rows, tmp_path: Path):
    ds.write_dataset(rows.dataset(), tmp_path / "copy", format="parquet")
    assert ds.dataset(tmp_path / "copy").to_table().sort_by("id") == rows.to_arrow().sort_by("id")


def test_filters_of_both_are_kept(tmp_path: Path):
    table = hoodie.create_table(str(tmp_path / "t"), name="t", record_key="id")
    table.upsert(pa.table({"id": [1, 2, 3], "a": [1, 2, 3], "b": ['q"x', "y", "z\\"]}))
    rows = table.snapshot(columns=["id", "b"], filters="a > 1")
    assert rows.lazy().filter(pl.col("id") < 3).select("b").collect()["b"].to_list() == ["y"]
    assert rows.dataset().to_table(columns=["id"], filter=pc.field("b") == "z\\").to_pydict() == {"id": [3]}
    assert table.snapshot().dataset().to_table(columns=["id"], filter=pc.field("b") == 'q"x').to_pydict() == {"id": [1]}


def test_files_from_before_a_change_of_columns_are_read_with_the_schema_of_the_scan(tmp_path: Path):
    table = hoodie.create_table(str(tmp_path / "t"), name="t", record_key="id", partition_by="city")
    table.upsert(pa.table({"id": [1], "city": ["oslo"], "n": pa.array([1], pa.int32())}))
    table.upsert(pa.table({"id": [2], "city": ["rome"], "n": [2**40], "note": ["x"]}))
    scan = hoodie.open_table(table.path).scan(columns=["id", "n", "note"])
    found = ds.dataset(list(scan.files), schema=scan.schema).to_table().sort_by("id")
    assert found == table.snapshot(columns=["id", "n", "note"]).to_arrow().sort_by("id")


def test_changes_and_change_data_are_lazy_too(tmp_path: Path):
    table = hoodie.create_table(
        str(tmp_path / "t"), name="t", record_key="id", options={"hoodie.table.cdc.enabled": True}
    )
    first = table.upsert(pa.table({"id": [1, 2], "v": ["a", "b"]}))
    table.upsert(pa.table({"id": [2, 3], "v": ["c", "d"]}))
    changes = table.changes(first.instant)
    assert changes.lazy().filter(pl.col("id") > 2).select("v").collect()["v"].to_list() == ["d"]
    assert sorted(changes.lazy().select("id").collect()["id"].to_list()) == [2, 3]
    data = table.changes(first.instant, cdc=True)
    assert sorted(data.lazy().select("op").collect()["op"].to_list()) == ["i", "u"]
