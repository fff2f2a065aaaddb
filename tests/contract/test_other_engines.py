"""DuckDB, Polars, DataFusion and pandas on tables of ours: the same rows as a read, local and on S3.

Rows of whatever table come as Arrow from `snapshot`; files of a Copy-on-Write table by a manifest.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import hoodie
from hoodie.storage import storage_for
from hoodie.sync.manifest import CSV_URIS, write_manifests
from hoodie.table.settings import Settings
from hoodie.testing.tables import ArrowTable
from support.trips import TRIPS

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
Answer = tuple[int, int, float]


def in_pandas(rows: pa.Table) -> Answer:
    frame = rows.to_pandas()
    return len(frame), int(frame["ts"].sum()), float(frame.loc[frame["city"] == "rome", "price"].sum())


def in_duckdb(rows: pa.Table) -> Answer:
    import duckdb

    sql = "select count(*), sum(ts)::bigint, sum(price) filter (where city = 'rome') from rows"
    found = duckdb.connect().execute(sql).fetchone()
    assert found is not None
    return found  # type: ignore[return-value]


def in_polars(rows: pa.Table) -> Answer:
    import polars as pl

    frame = pl.from_arrow(rows)
    rome = frame.filter(pl.col("city") == "rome")
    return frame.height, frame["ts"].sum(), rome["price"].sum()


def in_datafusion(rows: pa.Table) -> Answer:
    from datafusion import SessionContext

    context = SessionContext()
    context.from_arrow(rows, "trips")
    sql = "select count(*) as n, sum(ts) as ts, sum(price) filter (where city = 'rome') as price from trips"
    (row,) = context.sql(sql).to_pylist()
    return row["n"], row["ts"], row["price"]


ENGINES: dict[str, Callable[[pa.Table], Answer]] = {
    "pandas": in_pandas,
    "duckdb": in_duckdb,
    "polars": in_polars,
    "datafusion": in_datafusion,
}


def rows(*keys: str, city: str, ts: int) -> pa.Table:
    size = len(keys)
    return pa.table(
        {
            "id": list(keys),
            "city": [city] * size,
            "ts": pa.array([ts] * size, pa.int64()),
            "price": pa.array([ts / 2] * size, pa.float64()),
        }
    )


@pytest.fixture(scope="module", params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """A path for tables, and the options of its storage."""
    if request.param == "local":
        return str(tmp_path_factory.mktemp("engines")), {}
    return f"s3://contract/{uuid4().hex}", request.getfixturevalue("s3")


@pytest.fixture(scope="module", params=KINDS)
def table(place: tuple[str, dict[str, Any]], request: pytest.FixtureRequest) -> ArrowTable:
    """Rows that were updated, deleted, and of two partitions: 4 remain."""
    path, options = place
    storage = storage_for(f"{path}/{request.param}", options or None)
    made = ArrowTable.create(
        storage,
        {
            **TRIPS,
            "hoodie.datasource.write.table.type": request.param,
        },
    )
    made.upsert(pa.concat_tables([rows("a", "b", "c", city="oslo", ts=1), rows("d", "e", city="rome", ts=3)]))
    made.upsert(rows("a", city="oslo", ts=10))
    made.upsert(rows("d", city="rome", ts=20))
    made.delete(rows("b", city="oslo", ts=0))
    return made


EXPECTED = (4, 10 + 1 + 20 + 3, (20 + 3) / 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_has_the_rows_of_a_read(engine: str, table: ArrowTable, place: tuple[str, dict[str, Any]]) -> None:
    read = hoodie.open_table(table.storage.root, storage_options=place[1] or None).snapshot().to_arrow()
    assert ENGINES[engine](read) == EXPECTED
    assert in_pandas(table.snapshot()) == EXPECTED


def test_engines_read_the_files_of_a_manifest(table: ArrowTable, place: tuple[str, dict[str, Any]]) -> None:
    """Of a Merge-on-Read table these are the rows of a read-optimized read. On S3 by the snippet of the page."""
    import duckdb
    import polars as pl

    if place[1]:
        check_snippet(table, place[1])
        return
    write_manifests(table.storage, Settings.of({}), formats=["csv"])
    uris = table.storage.read(CSV_URIS).decode().splitlines()
    expected = in_pandas(table.read_optimized())
    files = [uri.removeprefix("file://") for uri in uris]
    frame = pl.scan_parquet(files).collect()
    assert (frame.height, frame["ts"].sum()) == expected[:2]
    found = duckdb.connect().execute("select count(*), sum(ts)::bigint from read_parquet(?)", [files]).fetchone()
    assert found == expected[:2]


def check_snippet(table: ArrowTable, options: dict[str, Any]) -> None:
    """Run what docs/engines-python.md says of S3."""
    page = (Path(__file__).parents[2] / "docs" / "engines-python.md").read_text()
    found = re.search(r"## On S3.*?```python\n(.*?)```", page, re.DOTALL)
    assert found
    source = re.sub(r"^s3 = .*$", "", found[1], flags=re.MULTILINE).replace("s3://bucket/trips", table.storage.root)
    write_manifests(table.storage, Settings.of({}), formats=["csv"])
    names: dict[str, Any] = {"hoodie": hoodie, "s3": options}
    exec(source, names)
    whole, base = sum(table.snapshot()["price"].to_pylist()), sum(table.read_optimized()["price"].to_pylist())
    assert (names["total"], names["same"]) == (whole, whole)
    assert (names["base_total"], names["by_duckdb"]) == (base, base)
