"""Writes that fail or die on the way: readers see the table as it was, and the next write leaves nothing of them."""

import io
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import fastavro
import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.errors import StorageFailed
from hoodie.model.instant import Action, Instant, State
from hoodie.storage.protocol import is_temporary
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.state import load_state
from hoodie.testing.storage import Crash
from hoodie.testing.tables import StorageError
from support import spark_tables
from support.nightly import nightly
from support.oracles import read_hudi_rs
from support.routes import ROUTES, SPREAD

T = TypeVar("T")
COLUMNS = ["id", "city", "ts", "note"]
FIRST = [("a", "oslo", 1, "x"), ("b", "rome", 1, "x"), ("c", "rome", 1, "x")]
CHANGES = [("a", "oslo", 2, "y"), ("c", "rome", 2, "y"), ("d", "bern", 2, "y")]
AFTER = [CHANGES[0], FIRST[1], CHANGES[1], CHANGES[2]]
LATER = [("e", "oslo", 3, "z")]


def frame(spark: SparkSession, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    types = [pa.string(), pa.string(), pa.int64(), pa.string()]
    values = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)]
    return spark.createDataFrame(pa.table(values, names=COLUMNS))


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> HoodieTable:
    made = spark_tables.table(spark, tmp_path / "t", partition_by="city")
    made.insert(frame(spark, FIRST))
    return made


def holds(table: HoodieTable, expected: Sequence[tuple[Any, ...]]) -> None:
    """The table has these rows for Spark, Arrow and hudi-rs."""
    for reader, rows in {
        "without Spark": hoodie.open_table(table.path).snapshot(columns=COLUMNS).to_arrow(),
        "snapshot": table.snapshot().select(*COLUMNS).toArrow(),
        "hudi-rs": read_hudi_rs(table.path, COLUMNS),
    }.items():
        assert sorted(tuple(row.values()) for row in rows.to_pylist()) == sorted(expected), reader


def instants(table: HoodieTable) -> list[Instant]:
    return list(load_state(hoodie.open_table(table.path, spark=table.session).storage).timeline.instants)


def pending(table: HoodieTable) -> list[str]:
    return [instant.requested for instant in instants(table) if instant.state is not State.COMPLETED]


def named_for(table: HoodieTable, instant: str) -> list[str]:
    """Files that bear the instant in name or folder; temporary files, which nobody reads, apart."""
    found = (str(path.relative_to(table.path)) for path in Path(table.path).rglob("*") if path.is_file())
    return sorted(name for name in found if instant in name and not is_temporary(Path(name).name))


def rolled_back(table: HoodieTable) -> list[str]:
    """The instants that completed rollbacks took back, as an Avro reader of Hudi's file finds them."""
    found = []
    for instant in instants(table):
        if instant.action is Action.ROLLBACK:
            assert instant.state is State.COMPLETED
            content = Path(table.path, ".hoodie", f"{instant.requested}.rollback").read_bytes()
            (record,) = fastavro.reader(io.BytesIO(content))
            assert record["startRollbackTime"] == instant.requested
            assert [entry["commitTime"] for entry in record["instantsRollback"]] == record["commitsRollback"]
            deleted = [len(part["successDeleteFiles"]) for part in record["partitionMetadata"].values()]
            assert record["totalFilesDeleted"] == sum(deleted)
            found += record["commitsRollback"]
    return found


class DiesAtPublication(WrappedStorage):
    """Dies, or is refused, where the completed instant would be created. Workers get the storage within."""

    def __init__(self, inner: Any, error: type[BaseException]) -> None:
        super().__init__(inner)
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return WrappedStorage, (self.inner,)

    def mutate(self, name: str, path: str, call: Callable[[], T]) -> T:
        if name == "create_new" and path.endswith((".commit", ".replacecommit")):
            raise self.error(path)
        return call()


# --- what the rows do ---


def poisoned(batch: DataFrame) -> DataFrame:
    """The rows, one of which raises when Spark evaluates it."""

    def check(value: str) -> str:
        if value == "y":
            raise ValueError("a value that nobody can take")
        return value

    return batch.withColumn("note", F.udf(check, "string")(F.col("note")))


@ROUTES
@pytest.mark.parametrize("operation", ["upsert", nightly("delete"), nightly("insert_overwrite")])
def test_rows_that_cannot_be_evaluated_leave_the_table_untouched(spark, table, operation, route):
    before = {path: path.stat().st_mtime_ns for path in Path(table.path).rglob("*") if path.is_file()}
    bad = poisoned(frame(spark, CHANGES))
    if operation == "delete":
        bad = bad.withColumn("city", F.concat("city", F.substring("note", 9, 1)))
    with pytest.raises((PySparkException, Py4JError), match="a value that nobody can take"):
        getattr(table, operation)(bad, options=route)
    assert {path: path.stat().st_mtime_ns for path in Path(table.path).rglob("*") if path.is_file()} == before


def test_a_bulk_insert_that_dies_amid_its_rows_is_rolled_back(spark, table):
    mixed = frame(spark, [*LATER, ("f", "lima", 1, "z")]).unionByName(poisoned(frame(spark, CHANGES)))
    with pytest.raises((PySparkException, Py4JError), match="a value that nobody can take"):
        table.bulk_insert(mixed, options=SPREAD)
    (dead,) = rolled_back(table)
    assert named_for(table, dead) == []
    assert pending(table) == []
    holds(table, FIRST)
    table.bulk_insert(frame(spark, LATER), options=SPREAD)
    holds(table, [*FIRST, *LATER])


# --- what the storage does ---


@ROUTES
@pytest.mark.parametrize("operation", ["upsert", nightly("insert_overwrite"), "bulk_insert", nightly("delete")])
def test_a_write_that_cannot_be_published_is_taken_back_at_once(spark, table, operation, route):
    storage = table.storage
    table.storage = DiesAtPublication(storage, StorageError)
    with pytest.raises(StorageFailed) as raised:
        getattr(table, operation)(frame(spark, CHANGES), options=route)
    assert isinstance(raised.value.__cause__, StorageError)
    table.storage = storage
    (dead,) = rolled_back(table)
    assert named_for(table, dead) == []
    assert pending(table) == []
    holds(table, FIRST)
    assert len(table.history()) == 1


@ROUTES
@pytest.mark.parametrize("operation", ["upsert", nightly("insert_overwrite_table"), nightly("bulk_insert")])
def test_the_next_write_takes_back_what_a_dead_one_left(spark, table, operation, route):
    storage = table.storage
    table.storage = DiesAtPublication(storage, Crash)
    with pytest.raises(Crash):
        getattr(table, operation)(frame(spark, CHANGES), options=route)
    table.storage = storage
    (dead,) = pending(table)
    left = named_for(table, dead)
    assert any(name.endswith(".parquet") for name in left)
    assert any(".hoodie/.temp/" in name for name in left)
    holds(table, FIRST)
    # Looking does not clean up.
    table.explain_upsert(frame(spark, LATER))
    assert named_for(table, dead) == left
    table.upsert(frame(spark, LATER), options=route)
    assert rolled_back(table) == [dead]
    assert named_for(table, dead) == []
    assert pending(table) == []
    holds(table, [*FIRST, *LATER])
    assert {s.group.partition for s in table.file_slices()} == {"oslo", "rome"}
    # And once is enough.
    table.upsert(frame(spark, LATER), options=route)
    assert rolled_back(table) == [dead]


# --- what the process does ---


SCRIPT = """
    import os, signal, sys
    import hoodie
    from hoodie.writing import finish

    def killed(*arguments, **named):
        os.kill(os.getpid(), signal.SIGKILL)

    fast = {"spark.sql.shuffle.partitions": 1, "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    spark = hoodie.spark.local_session("killed", cores=1, **fast)
    table = hoodie.open_table(sys.argv[1], spark=spark)
    finish.publish_seen = killed
    rows = [("a", "oslo", 2, "y"), ("d", "bern", 2, "y")]
    table.upsert(spark.createDataFrame(rows, "id string, city string, ts long, note string"))
"""


@pytest.fixture
def killed(table: HoodieTable, tmp_path: Path) -> str:
    """The instant of a write whose process was killed before it published."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    run = subprocess.run([sys.executable, str(script), table.path], capture_output=True, timeout=200, check=False)
    assert run.returncode == -signal.SIGKILL, run.stderr.decode()[-3000:]
    (dead,) = pending(table)
    return dead


@pytest.mark.nightly
@pytest.mark.timeout(240)
@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL")
def test_a_killed_process_leaves_a_table_that_reads_and_writes_as_before(spark, table, killed):
    assert sum(name.endswith(".parquet") for name in named_for(table, killed)) == 2
    holds(table, FIRST)
    result = table.upsert(frame(spark, CHANGES))
    assert (result.inserted, result.updated) == (1, 2)
    holds(table, AFTER)
    assert rolled_back(table) == [killed]
    assert named_for(table, killed) == []
    assert killed < result.instant
