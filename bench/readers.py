"""All columns of a table into Arrow, by hoodie and by hudi-rs: python -m bench.readers.

Of a table without logs, and of one with a tenth of its rows in logs. Rows are compared; CPU seconds and wall.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hudi import HudiReadOptions, HudiTableBuilder

import hoodie
from bench.meter import Meter, Reading


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("bench.readers", description=__doc__)
    parser.add_argument("--n", type=int, default=400_000, help="rows of a table")
    parser.add_argument("--rounds", type=int, default=5, help="after one that warms up and is not counted")
    given = parser.parse_args(arguments)
    print("| table | CPU s, hudi-rs | CPU s, hoodie | CPU ratio | wall ratio |\n|---|---|---|---|---|", flush=True)
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        with tempfile.TemporaryDirectory(prefix="readers-") as scratch:
            path = _table(Path(scratch) / "t", kind, given.n)
            readers: tuple[Callable[[str], pa.Table], ...] = (_by_hudi_rs, _by_hoodie)
            theirs, ours = (pc.sum(read(path)["ts"]).as_py() for read in readers)
            if theirs != ours:
                raise SystemExit(f"{kind}: the readers do not agree")
            found: list[list[Reading]] = [[], []]
            for _ in range(given.rounds + 1):
                for readings, read in zip(found, readers, strict=True):
                    with Meter() as meter:
                        read(path)
                    readings.append(meter.reading)
            cpu = [median(reading.cpu for reading in readings[1:]) for readings in found]
            wall = [median(reading.wall for reading in readings[1:]) for readings in found]
            print(
                f"| {kind} | {cpu[0]:.2f} | {cpu[1]:.2f} | {cpu[1] / cpu[0]:.2f} | {wall[1] / wall[0]:.2f} |",
                flush=True,
            )


def _table(path: Path, kind: str, count: int) -> str:
    table = hoodie.create_table(
        str(path), name="t", record_key="id", partition_by="city", ordering="ts", table_type=kind
    )
    table.bulk_insert(_rows(np.arange(count), 1))
    if kind == "MERGE_ON_READ":
        table.upsert(_rows(np.arange(0, count, 10), 2))
    return str(path)


def _rows(numbers: np.ndarray, ts: int) -> pa.Table:
    random = np.random.default_rng(ts)
    return pa.table(
        {
            "id": pa.array([f"k{number:09d}" for number in numbers]),
            "city": pa.array(np.array(["bern", "lima", "oslo", "rome"])[numbers % 4]),
            "ts": pa.array(np.full(len(numbers), ts, np.int64)),
            "price": random.random(len(numbers)),
            "quantity": random.integers(0, 99, len(numbers)),
            "note": pa.array([f"note {number % 977}" for number in numbers]),
        }
    )


def _by_hoodie(path: str) -> pa.Table:
    return hoodie.open_table(path).snapshot().to_arrow()


def _by_hudi_rs(path: str) -> pa.Table:
    batches = HudiTableBuilder.from_base_uri(path).build().read(HudiReadOptions())
    return pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive")


if __name__ == "__main__":
    main()
