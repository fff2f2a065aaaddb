"""The same queries by Trino, Presto and Hive, compared with the library's own reads.

    export HUDI_JAR=…/hudi-hadoop-mr-bundle-0.15.0.jar   # Apache Hudi's, for Hive
    cd demo/engines && docker compose up --detach
    python demo/engines/compare.py
    cd demo/engines && docker compose down --volumes

It makes a Copy-on-Write and a Merge-on-Read table in MinIO, syncs them, asks each engine for rows and sums, and exits
with 1 if one answers otherwise. It needs Docker, and `pip install 'hoodie[hive,s3]'`. Not run so far: it was written
where there is no Docker.
"""

import csv
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import hoodie

HERE = Path(__file__).parent
BUCKET = "lake"
DATABASE = "city"
STORAGE = {
    "key": "hoodie",
    "secret": "hoodie-lake",
    "client_kwargs": {"endpoint_url": "http://127.0.0.1:9000", "region_name": "us-east-1"},
}
SYNC = {
    "hoodie.datasource.hive_sync.metastore.uris": "thrift://127.0.0.1:9083",
    "hoodie.datasource.hive_sync.database": DATABASE,
    "hoodie.sync.manifest.view": "true",
}
COLUMNS = ("id", "city", "ts", "fare")
#: What each engine's own client is called with; it gets the query last.
ENGINES: Mapping[str, tuple[str, ...]] = {
    "trino": ("trino", "trino", "--catalog", "hudi", "--schema", DATABASE, "--output-format", "CSV", "--execute"),
    "presto": (
        # Its hudi connector merges logs wrongly.
        *("presto", "/opt/presto-cli", "--server", "localhost:8080", "--catalog", "hive"),
        *("--schema", DATABASE, "--output-format", "CSV", "--execute"),
    ),
    "hive": (
        *("hive", "beeline", "-u", f"jdbc:hive2://localhost:10000/{DATABASE}", "-n", "hive"),
        *("--silent=true", "--showHeader=false", "--outputformat=csv2", "-e"),
    ),
}
#: Engines that read base files alone, by every entry of a Merge-on-Read table: Trino up to 476, at least.
WITHOUT_LOGS = {"trino"}

Answer = list[tuple[str, ...]]


@dataclass(frozen=True)
class Question:
    """entry    of the metastore
    sql      one query
    rows     the answer, sorted
    by_base  that of engines that read base files alone
    """

    entry: str
    sql: str
    rows: Answer
    by_base: Answer


def make(name: str, table_type: str, root: str, storage: Mapping[str, object] | None) -> hoodie.HoodieTable:
    """A table with updates, a delete and, if it is Merge-on-Read, logs."""
    table = hoodie.create_table(
        f"{root}/{name}",
        name=name,
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type=table_type,
        storage_options=storage,
        options={"hoodie.sync.manifest": "symlink,csv", "hoodie.parquet.compression.codec": "snappy"},
    )
    table.upsert(_rows([("a", "oslo", 1, 3.5), ("b", "oslo", 1, 4.0), ("c", "rome", 1, 5.25), ("d", "rome", 1, 1.0)]))
    table.upsert(_rows([("a", "oslo", 2, 8.5), ("e", "bern", 2, 2.0)]))
    table.delete(_rows([("d", "rome", 2, 0.0)]))
    return table


def _rows(rows: list[tuple[str, str, int, float]]) -> pa.Table:
    kinds = (pa.string(), pa.string(), pa.int64(), pa.float64())
    columns = zip(COLUMNS, zip(*rows, strict=True), kinds, strict=True)
    return pa.table({name: pa.array(values, kind) for name, values, kind in columns})


def questions(entry: str, rows: pa.Table, base: pa.Table) -> Iterator[Question]:
    """What an entry is asked, and what rows it should have: all of them, one partition, sums by city.

    base  the rows of base files alone
    """
    columns = ", ".join(COLUMNS)
    for sql, answer in (
        (f"SELECT {columns} FROM {entry}", _all),
        (f"SELECT {columns} FROM {entry} WHERE city = 'oslo'", _oslo),
        (f"SELECT city, count(*), sum(fare) FROM {entry} GROUP BY city", _sums),
    ):
        yield Question(entry, sql, answer(rows), answer(base))


def _all(rows: pa.Table) -> Answer:
    return _answer(rows.select(COLUMNS))


def _oslo(rows: pa.Table) -> Answer:
    return _all(rows.filter(pc.field("city") == "oslo"))


def _sums(rows: pa.Table) -> Answer:
    return _answer(rows.group_by("city").aggregate([("id", "count"), ("fare", "sum")]))


def _answer(rows: pa.Table) -> Answer:
    return sorted(tuple(map(str, row.values())) for row in rows.to_pylist())


def all_questions(trips: hoodie.HoodieTable, devices: hoodie.HoodieTable) -> list[Question]:
    rows, base = devices.snapshot().to_arrow(), devices.snapshot(optimized=True).to_arrow()
    trip_rows = trips.snapshot().to_arrow()
    asked = [*questions("trips", trip_rows, trip_rows), *questions("devices_ro", base, base)]
    for entry in ("devices_rt", "devices"):
        asked += questions(entry, rows, base)
    return asked


def ask(engine: str, sql: str) -> Answer:
    """The answer of an engine's own client, in its container."""
    command = ["docker", "compose", "exec", "--no-TTY", *ENGINES[engine], sql]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{engine}: {sql}: {done.stderr.strip()[-2000:]}")
    return sorted(tuple(row) for row in csv.reader(done.stdout.splitlines()) if row)


def compare(asked: list[Question], engines: Mapping[str, object], ask: Callable[[str, str], Answer]) -> list[str]:
    """One line for each answer that is not the expected one."""
    wrong = []
    for engine in engines:
        for question in asked:
            try:
                answer = ask(engine, question.sql)
            except RuntimeError as problem:
                wrong.append(str(problem))
                continue
            expected = question.by_base if engine in WITHOUT_LOGS else question.rows
            if answer != expected:
                wrong.append(f"{engine}: {question.sql}: {answer}, expected {expected}")
    return wrong


def main() -> int:
    from fsspec import filesystem

    filesystem("s3", **STORAGE).makedirs(BUCKET, exist_ok=True)
    tables = [
        make(*kind, f"s3://{BUCKET}", STORAGE) for kind in (("trips", "COPY_ON_WRITE"), ("devices", "MERGE_ON_READ"))
    ]
    for table in tables:
        seen_by_engines = {"hoodie.datasource.meta.sync.base.path": table.path.replace("s3://", "s3a://", 1)}
        print(table.sync(options={**SYNC, **seen_by_engines}))
    wrong = compare(all_questions(*tables), ENGINES, ask)
    print("\n".join(wrong) or "all engines gave the same rows and sums")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
