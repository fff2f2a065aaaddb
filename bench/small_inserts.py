"""Small inserts into a Merge-on-Read table, by Hudi's options about small files: python -m bench.small_inserts.

A table of one partition gets inserts of new keys, without Spark. Printed are the bytes that they wrote, as a multiple
of what the same rows take as one base file; the files that they left, after a compaction too; and CPU seconds of the
inserts, and of reads of all rows afterwards, each divided by those of the first line.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

import hoodie
from bench.cases import files_below
from bench.meter import Meter

MiB = 1 << 20
READS = 5
WAYS: dict[str, dict[str, object]] = {
    "default: limit of 100 MiB": {},
    "`hoodie.parquet.small.file.limit` of 1 MiB": {"hoodie.parquet.small.file.limit": MiB},
    "of 0.25 MiB": {"hoodie.parquet.small.file.limit": MiB // 4},
    "of 0": {"hoodie.parquet.small.file.limit": 0},
    "default, `hoodie.index.type=BUCKET`": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 1},
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("bench.small_inserts", description=__doc__)
    parser.add_argument("--n", type=int, default=20_000, help="rows of the table before")
    parser.add_argument("--inserts", type=int, default=60)
    parser.add_argument("--rows", type=int, default=1000, help="of an insert")
    given = parser.parse_args(arguments)
    print("| small files | bytes written | base files, logs | after a compaction | CPU of inserts | CPU of reads |")
    print("|---|---:|---:|---:|---:|---:|")
    first: list[float] = []
    with tempfile.TemporaryDirectory(prefix="small-inserts-") as scratch:
        once = _table(Path(scratch) / "once", {})
        once.bulk_insert(_rows(0, given.inserts * given.rows))
        unit = _written(Path(scratch) / "once", {})
        for number, (way, options) in enumerate(WAYS.items()):
            path = Path(scratch) / str(number)
            table = _table(path, options)
            table.insert(_rows(10**9, given.n))
            before = files_below(path)
            with Meter() as inserts:
                for insert in range(given.inserts):
                    table.insert(_rows(insert * given.rows, given.rows))
            written = _written(path, before)
            files = _files(table)
            with Meter() as read:
                for _ in range(READS):
                    assert table.snapshot().to_arrow().num_rows == given.n + given.inserts * given.rows
            table.schedule_compaction()
            table.compact()
            cpu = [inserts.reading.cpu, read.reading.cpu]
            first = first or cpu
            ratios = " | ".join(f"{own / other:.2f}" for own, other in zip(cpu, first, strict=True))
            print(f"| {way} | {written / unit:.1f} | {files} | {_files(table)} | {ratios} |", flush=True)


def _table(path: Path, options: dict[str, object]) -> hoodie.HoodieTable[pa.Table]:
    never = {"hoodie.compact.inline": False, "hoodie.clean.automatic": False}
    return hoodie.create_table(
        str(path), name="t", record_key="id", ordering="ts", table_type="MERGE_ON_READ", options={**never, **options}
    )


def _rows(begin: int, count: int) -> pa.Table:
    random = np.random.default_rng(begin)
    keys = random.permutation(np.arange(begin, begin + count))
    return pa.table(
        {
            "id": pa.array([f"k{key:012d}" for key in keys]),
            "ts": pa.array(keys),
            "price": random.random(count),
            "note": pa.array([f"note {number}" for number in random.integers(0, 10**9, count)]),
        }
    )


def _written(path: Path, before: dict[str, int]) -> int:
    """Bytes of data files that came since."""
    return sum(
        size - before.get(file, 0)
        for file, size in files_below(path).items()
        if ".hoodie/" not in file and (file.endswith(".parquet") or ".log." in file)
    )


def _files(table: hoodie.HoodieTable[pa.Table]) -> str:
    slices = table.file_slices()
    return f"{sum(slice_.base is not None for slice_ in slices)}, {sum(len(slice_.logs) for slice_ in slices)}"


if __name__ == "__main__":
    main()
