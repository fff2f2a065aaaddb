"""The batches of the workload merged by key into tables of delta-rs, DuckDB and Lance, beside ours with Spark and
without, and plain Spark. Each has the same rows to start from, and the same rows at the end.

They are what `pip install 'hoodie[bench]'` brings; one that is missing is left out. None but ours keeps change data by
commit, or bloom filters; DuckDB and Lance know no partitions.
"""

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import hoodie
from bench.cases import PLAIN, Bench, Case, Contender, Phases, checksum
from bench.workload import BATCHES

#: A row of the table is the one of the batch with the same key, unless the batch's is older.
_SAME = "t.ds = s.ds and t.order_id = s.order_id"
_NEWER = "s.ts >= t.ts"


@dataclass(frozen=True)
class Peer:
    """A library with tables of its own.

    load   makes a table of rows at a path
    merge  brings a batch in
    read   all rows
    """

    name: str
    module: str
    load: Callable[[Path, pa.Table], object]
    merge: Callable[[Path, pa.Table], object]
    read: Callable[[Path], pa.Table]


def cases(bench: Bench) -> Iterator[Case]:
    """A case for each batch."""
    peers = [peer for peer in PEERS if importlib.util.find_spec(peer.module)]
    for batch in BATCHES:
        on_spark = next(replace(bench, indexes=("SIMPLE",), paths=("driver",)).case(batch))
        plain, ours = on_spark.contenders
        contenders = [plain, replace(ours, name="hoodie on Spark"), _without_spark(bench, ours, batch)]
        contenders += [_contender(bench, peer, batch) for peer in peers]
        assert plain.name == PLAIN
        yield Case(f"peers: {batch}", on_spark.changed, tuple(contenders))


def _without_spark(bench: Bench, on_spark: Contender, batch: str) -> Contender:
    def upsert(folder: Path) -> Phases:
        return hoodie.open_table(str(folder / "table")).upsert(rows_of(bench.workload.batch(batch))).seconds

    return replace(on_spark, name="hoodie without Spark", work=upsert)


def _contender(bench: Bench, peer: Peer, batch: str) -> Contender:
    def prepare(folder: Path) -> None:
        made = bench.made / f"peer-{peer.module}"
        if not made.exists():
            made.mkdir()
            peer.load(made / "table", rows_of(bench.workload.orders))
        shutil.copytree(made, folder, dirs_exist_ok=True)

    def merge(folder: Path) -> Phases:
        peer.merge(folder / "table", rows_of(bench.workload.batch(batch)))
        return {}

    def check(folder: Path) -> object:
        pq.write_table(peer.read(folder / "table"), folder / "rows.parquet")
        return checksum(bench.spark.read.parquet(str(folder / "rows.parquet")))

    return Contender(peer.name, prepare, merge, check)


def rows_of(path: Path) -> pa.Table:
    """Rows that Spark wrote; its INT96 are instants in microseconds."""
    int96 = ds.ParquetFragmentScanOptions(pre_buffer=True)
    reads = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us", default_fragment_scan_options=int96)
    rows = ds.dataset(path, format=reads).to_table()
    at = rows.schema.get_field_index("updated_at")
    return rows.set_column(at, "updated_at", rows.column(at).cast(pa.timestamp("us", "UTC")))


# --- delta-rs ---


def _delta_load(path: Path, rows: pa.Table) -> None:
    from deltalake import write_deltalake

    write_deltalake(str(path), rows, partition_by=["ds"])


def _delta_merge(path: Path, rows: pa.Table) -> None:
    from deltalake import DeltaTable

    merge = DeltaTable(str(path)).merge(rows, _SAME, source_alias="s", target_alias="t")
    merge.when_matched_update_all(predicate=_NEWER).when_not_matched_insert_all().execute()


def _delta_read(path: Path) -> pa.Table:
    from deltalake import DeltaTable

    return pa.table(DeltaTable(str(path)).to_pyarrow_table())


# --- DuckDB ---


def _in_duckdb(act: Callable[[Any], Any], path: Path) -> Any:
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.execute("set timezone = 'UTC'")
        return act(connection)


def _duckdb_load(path: Path, rows: pa.Table) -> None:
    _in_duckdb(lambda connection: connection.from_arrow(rows).create("orders"), path)


def _duckdb_merge(path: Path, rows: pa.Table) -> None:
    def merge(connection: Any) -> None:
        connection.register("batch", rows)
        updates = f"when matched and {_NEWER} then update when not matched then insert"
        connection.execute(f"merge into orders t using batch s on {_SAME} {updates}")

    _in_duckdb(merge, path)


def _duckdb_read(path: Path) -> pa.Table:
    rows: pa.Table = _in_duckdb(lambda connection: connection.sql("from orders").to_arrow_table(), path)
    return rows


# --- Lance ---


def _lance_load(path: Path, rows: pa.Table) -> None:
    import lance

    lance.write_dataset(rows, str(path))


def _lance_merge(path: Path, rows: pa.Table) -> None:
    import lance

    merge = lance.dataset(str(path)).merge_insert(["order_id", "ds"])
    merge.when_matched_update_all("source.ts >= target.ts").when_not_matched_insert_all().execute(rows)


def _lance_read(path: Path) -> pa.Table:
    import lance

    rows: pa.Table = lance.dataset(str(path)).to_table()
    return rows


PEERS = (
    Peer("delta-rs", "deltalake", _delta_load, _delta_merge, _delta_read),
    Peer("DuckDB", "duckdb", _duckdb_load, _duckdb_merge, _duckdb_read),
    Peer("Lance", "lance", _lance_load, _lance_merge, _lance_read),
)
