"""The driver of one scenario on a cluster: `python scenario.py NAME MASTER_URL PATH`.

It writes tables below PATH, one for each way to spread a write, while something happens to the tasks. What a task does
on its first attempt is told by a kernel that stands in for the library's; signals between processes are files below
PATH/signals. What came of it is left in PATH/result.json, for the test to judge.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.errors import InvalidInput, WorkerEnvironment
from hoodie.spark.write import batch
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.state import load_state
from hoodie.writing import planning
from hoodie.writing.batch import stage
from hoodie.writing.tasks.run import run_task, write_stream

WAYS = ("staged", "shuffled")
SPREAD = {
    "hoodie.spark.driver.max.batch.bytes": 0,
    # Several file groups in each partition, also among the new ones.
    "hoodie.parquet.small.file.limit": 0,
    "hoodie.copyonwrite.insert.auto.split": "false",
    "hoodie.copyonwrite.insert.split.size": 300,
}
DRIVER = {**SPREAD, "hoodie.spark.driver.max.batch.bytes": 1 << 28}
_PATIENCE = 90.0


def session(master: str, **conf: object) -> SparkSession:
    """A session on the cluster, an executor on each worker."""
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.cores": 1,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 4,
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.scheduler.minRegisteredResourcesRatio": 1.0,
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
        **conf,
    }
    builder = SparkSession.builder.master(master).appName("scenario")
    for key, value in settings.items():
        builder = builder.config(key, str(value))
    return builder.getOrCreate()


def rows(spark: SparkSession, low: int, high: int, version: int) -> DataFrame:
    """Rows of keys low (inclusive) to high, in four Spark partitions and four of the table."""
    return spark.range(low, high, 1, 4).selectExpr(
        "concat('k', id) as id", "cast(id % 4 as string) as p", f"{version}L as ts", f"id * {version} as v"
    )


def table(spark: SparkSession, path: Path) -> HoodieTable:
    return hoodie.create_table(str(path), spark=spark, name="t", record_key="id", partition_by="p", ordering="ts")


@contextmanager
def executors_as(way: str) -> Iterator[None]:
    kept = stage.LARGEST_PARTITION
    if way == "shuffled":  # as if the batch were too large for each task to read its partition's rows
        stage.LARGEST_PARTITION = 0
    try:
        yield
    finally:
        stage.LARGEST_PARTITION = kept


# --- what happens to tasks ---


@dataclass(frozen=True)
class Signals:
    """Files by which drivers, tasks and tests tell each other how far they are."""

    folder: str

    def give(self, name: str, text: str = "") -> bool:
        """Whether this is the first to give the signal."""
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        own = Path(self.folder, f".{name}-{os.getpid()}-{time.monotonic_ns()}")
        own.write_text(text)
        try:
            os.link(own, Path(self.folder, name))
        except FileExistsError:
            return False
        finally:
            own.unlink()
        return True

    def given(self, name: str) -> str | None:
        try:
            return Path(self.folder, name).read_text()
        except FileNotFoundError:
            return None

    def wait(self, name: str) -> None:
        end = time.monotonic() + _PATIENCE
        while self.given(name) is None:
            if time.monotonic() > end:
                raise TimeoutError(f"nobody gave the signal {name}")
            time.sleep(0.05)


class AtClose(WrappedStorage):
    """Does something when a file is written and not there yet."""

    def __init__(self, inner: Any, act: Callable[[], None]) -> None:
        super().__init__(inner)
        self.act = act

    def mutate(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        if name == "close_output":
            self.act()
        return call()


@dataclass(frozen=True)
class Kernel:
    """Stands in for `run_task` or `write_stream`: the first task that comes here has its first attempt troubled.

    trouble  gets the signals, what does the task's work, and the task's storage
    """

    real: Callable[..., Any]
    signals: Signals
    trouble: Callable[[Signals, Callable[..., Any]], Any]
    others: Callable[[Signals, str, Callable[..., Any]], Any] | None = None

    def __call__(self, spec: Any, *args: Any, **named: Any) -> Any:
        number, _, _ = args[-1].partition("-")
        if self.real is write_stream:
            # A troubled attempt holds its rows: its stream ends when Spark gives it up.
            args = (*args[:-2], iter(list(args[-2])), args[-1])

        def work(act: Callable[[], None] | None = None) -> Any:
            return self.real(spec if act is None else replace(spec, storage=AtClose(spec.storage, act)), *args, **named)

        if self.signals.give("began", number):
            return self.trouble(self.signals, work)
        if self.others is not None:
            return self.others(self.signals, number, work)
        return work()


@contextmanager
def troubled(signals: Signals, trouble: Any, others: Any = None) -> Iterator[None]:
    planning.run_task = Kernel(run_task, signals, trouble, others)
    batch.write_stream = Kernel(write_stream, signals, trouble, others)
    try:
        yield
    finally:
        planning.run_task, batch.write_stream = run_task, write_stream


def wait_to_be_killed(signals: Signals) -> None:
    signals.give("waiting", str(os.getpid()))
    signals.wait("never")


def killed_amid_a_file(signals: Signals, work: Callable[..., Any]) -> Any:
    return work(lambda: wait_to_be_killed(signals))


def killed_after_its_files(signals: Signals, work: Callable[..., Any]) -> Any:
    work()
    wait_to_be_killed(signals)


def exits_amid_a_file(signals: Signals, work: Callable[..., Any]) -> Any:
    return work(lambda: os._exit(3))


def exits_after_its_files(signals: Signals, work: Callable[..., Any]) -> Any:
    work()
    os._exit(3)


def waits_for_the_other_attempt(signals: Signals, work: Callable[..., Any]) -> Any:
    """Two attempts with files of their own, both done."""
    done = work()
    signals.wait("other")
    return done


def goes_on_after_the_write(signals: Signals, work: Callable[..., Any]) -> Any:
    """An attempt that nobody waits for any more, and that does not know it."""
    try:
        signals.wait("returned")
        return work()
    finally:
        signals.give("ended")


def tell_other_attempt(signals: Signals, number: str, work: Callable[..., Any]) -> Any:
    done = work()
    if signals.given("began") == number:
        signals.give("other")
    return done


def refuses(signals: Signals, number: str, work: Callable[..., Any]) -> Any:
    """The second task to come fails, however often it is tried; after it has written its files."""
    done = work()
    if signals.give("refused", number) or signals.given("refused") == number:
        raise InvalidInput("a task that nobody can do")
    return done


# --- scenarios ---


def history(spark: SparkSession, path: Path) -> dict[str, Any]:
    """The same writes near and, both ways, spread."""
    routes = {}
    for name, options in {"driver": DRIVER, **dict.fromkeys(WAYS, SPREAD)}.items():
        with executors_as(name):
            one = table(spark, path / name)
            results = [
                one.bulk_insert(rows(spark, 0, 2400, 1), options=options),
                one.upsert(rows(spark, 1800, 3600, 2).union(rows(spark, 3500, 3600, 3)), options=options),
                one.delete(rows(spark, 0, 4000, 1).where("v % 7 = 0"), options=options),
            ]
        routes[name] = [[r.route, r.inserted, r.updated, r.deleted] for r in results]
    return routes


def lost(spark: SparkSession, path: Path) -> dict[str, Any]:
    return {"killed": killed(spark, path / "killed"), "exits": exits(spark, path / "exits")}


def twice(spark: SparkSession, path: Path) -> dict[str, Any]:
    return {"finish": both_finish(spark, path / "finish"), "late": late(spark, path / "late")}


def _each_way(spark: SparkSession, path: Path, troubles: dict[str, tuple[Any, ...]], *ends: str) -> dict[str, Any]:
    """An upsert and a bulk insert in trouble, both ways of the former.

    troubles  "staged", "shuffled" and "bulk" -> what happens to the tasks
    """
    found = {}
    for way in WAYS:
        one = table(spark, path / way)
        one.upsert(rows(spark, 0, 2400, 1), options=DRIVER)
        jobs = {way: lambda one=one: one.upsert(rows(spark, 1800, 3000, 2), options=SPREAD)}
        if way == "shuffled":
            jobs["bulk"] = lambda one=one: one.bulk_insert(rows(spark, 3000, 3600, 3), options=SPREAD)
        for name, job in jobs.items():
            signals = Signals(str(path / "signals" / name))
            with executors_as(way), troubled(signals, *troubles[name]):
                result = job()
            found[name] = [result.route, result.inserted, result.updated]
            if signals.given("began") is None:
                raise AssertionError(f"no task of {name} was troubled")
            signals.give("returned")
            for end in ends:
                signals.wait(end)
    return found


def killed(spark: SparkSession, path: Path) -> dict[str, Any]:
    troubles = {
        "staged": (killed_amid_a_file,),
        "shuffled": (killed_after_its_files,),
        "bulk": (killed_after_its_files,),
    }
    return _each_way(spark, path, troubles)


def exits(spark: SparkSession, path: Path) -> dict[str, Any]:
    troubles = {"staged": (exits_after_its_files,), "shuffled": (exits_amid_a_file,), "bulk": (exits_after_its_files,)}
    return _each_way(spark, path, troubles)


def both_finish(spark: SparkSession, path: Path) -> dict[str, Any]:
    return _each_way(spark, path, dict.fromkeys((*WAYS, "bulk"), (waits_for_the_other_attempt, tell_other_attempt)))


def late(spark: SparkSession, path: Path) -> dict[str, Any]:
    return _each_way(spark, path, dict.fromkeys((*WAYS, "bulk"), (goes_on_after_the_write,)), "ended")


def fails(spark: SparkSession, path: Path) -> dict[str, Any]:
    found = {}
    for way in WAYS:
        one = table(spark, path / way)
        one.upsert(rows(spark, 0, 2400, 1), options=DRIVER)
        signals = Signals(str(path / "signals" / way))
        with executors_as(way), troubled(signals, goes_on_after_the_write, refuses):
            try:
                one.upsert(rows(spark, 1800, 3000, 2), options=SPREAD)
            except Exception as error:  # the test judges which
                found[way] = [type(error).__name__, str(error)]
        before = hoodie.open_table(one.path).snapshot(columns=["id", "p", "ts", "v"]).to_arrow()
        found[f"{way} before"] = [before.num_rows, sum(before["ts"].to_pylist())]
        signals.give("returned")
        signals.wait("ended")
        with executors_as(way):
            one.upsert(rows(spark, 1800, 3000, 2), options=SPREAD)
    return found


def shipped(spark: SparkSession, path: Path) -> dict[str, Any]:
    """Workers without Hoodie: a write is refused, and goes through once its code is sent to them."""
    one = table(spark, path / "t")
    found: dict[str, Any] = {}
    try:
        one.upsert(rows(spark, 0, 1800, 1), options=SPREAD)
    except WorkerEnvironment as error:
        found["refused"] = str(error)
    found["left"] = [str(instant) for instant in load_state(one.storage).timeline.instants]
    hoodie.spark.ship(spark)
    one.upsert(rows(spark, 0, 1800, 1), options=SPREAD)
    result = one.upsert(rows(spark, 1800, 3000, 2), options=SPREAD)
    found["result"] = [result.route, result.inserted, result.updated]
    found["rows"] = one.snapshot().count()
    return found


def doors(spark: SparkSession, path: Path) -> list[int]:
    """Spark's own calls, a merge, SQL, a view that is inserted into, and a stream."""
    one, copy = table(spark, path / "t"), str(path / "copy")
    one.upsert(rows(spark, 0, 100, 1))
    hoodie.register(spark)
    one.merge(rows(spark, 90, 110, 2)).when_matched_update_all().when_not_matched_insert_all().execute()
    hoodie.spark.sql(spark, f"DELETE FROM hudi.`{one.path}` WHERE v < 50")
    options = {f"hoodie.datasource.write.{name}": field for name, field in KEYS.items()}
    changes = spark.readStream.format("hudi").load(one.path)
    writer = (
        changes.writeStream.format("hudi").options(**options).option("checkpointLocation", str(path / "checkpoint"))
    )
    writer.trigger(availableNow=True).start(copy).awaitTermination()
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW live USING hudi OPTIONS (path '{copy}')")
    spark.sql("INSERT INTO live (id, p, ts, v) VALUES ('k500', '0', 3, 500)")
    hoodie.spark.refresh_view(spark, "live")
    frames = (one.snapshot(), spark.read.format("hudi").load(copy), spark.table("live"))
    return [frame.count() for frame in frames]


KEYS = {"recordkey.field": "id", "partitionpath.field": "p", "precombine.field": "ts"}


def alone(spark: SparkSession, path: Path) -> list[Any]:
    """A write by executors, and nothing else."""
    result = table(spark, path / "t").upsert(rows(spark, 0, 1800, 1), options=SPREAD)
    return [result.route, result.inserted]


def archived(spark: SparkSession, path: Path) -> list[Any]:
    """A write by executors, and where the code that they run lies."""

    def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import hoodie as there

        for one in batches:
            yield pa.record_batch([pa.array([f"{sys.executable} {there.__file__}"] * len(one))], names=["where"])

    found = spark.range(1).mapInArrow(where, "where string").first()
    return [*alone(spark, path), found["where"]]


#: Attempts that Spark gives up go on for a while, as they do on a machine that is cut off from the driver.
_SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": 1.1,
    "spark.speculation.quantile": 0.1,
    "spark.speculation.minTaskRuntime": "1s",
    "spark.python.task.killTimeout": "90s",
}
SCENARIOS: dict[str, tuple[Callable[[SparkSession, Path], Any], dict[str, Any]]] = {
    "history": (history, {}),
    "lost": (lost, {}),
    "twice": (twice, _SPECULATION),
    "shipped": (shipped, {}),
    "alone": (alone, {}),
    "doors": (doors, {}),
    "archived": (archived, {}),
    "fails": (fails, {"spark.python.task.killTimeout": "90s"}),
}


def main(name: str, master: str, path: str) -> None:
    run, conf = SCENARIOS[name]
    spark = session(master, **{**conf, **json.loads(os.environ.get("SCENARIO_CONF", "{}"))})
    try:
        started = time.monotonic()
        found = run(spark, Path(path))
        print(f"scenario {name}: {time.monotonic() - started:.1f} s", flush=True)
    finally:
        spark.stop()
    Path(path, "result.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
