"""A compactor: a process that runs the pending compactions of a table, one after the other, until told to stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from hoodie.config.options import Options
from hoodie.errors import HoodieError, InstantNotFound, PlanInUse
from hoodie.services.compaction.job import RunTasks
from hoodie.services.compaction.run import compact
from hoodie.storage import storage_for
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.state import load_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES = ("spark", "local")

#: Makes what runs tasks, once there is something to run; None: threads of this process.
Engine = Callable[[], RunTasks | None]


@dataclass(slots=True)
class Stop:
    """Whether a signal came. The first one lets the work at hand end, the second one interrupts it."""

    asked: threading.Event = field(default_factory=threading.Event)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.asked.is_set():
            raise KeyboardInterrupt
        self.asked.set()
        tell(f"{signal.Signals(number).name}: no further compaction is begun")


def run(path: str, options: Options, engine: str, conf: Mapping[str, str], interval: float | None) -> int:
    """Run pending compactions.

    conf      Spark settings
    interval  seconds between looks for new plans; None: end when there is none to run
    returns   0; 1 when a plan could not be run, or the work was interrupted
    Raises    TableNotFound and other errors of the table, when the first look fails
    """
    storage, stop = storage_for(path), Stop()
    load_state(storage)
    with _signals(stop), closing(_Spark(conf, stop)) as spark:
        try:
            return watch(storage, options, _threads if engine == "local" else spark.tasks, interval, stop)
        except KeyboardInterrupt:
            tell("interrupted: the plan stays, and is run by the next compactor")
            return 1


def watch(storage: Storage, options: Options, engine: Engine, interval: float | None, stop: Stop) -> int:
    """Look for plans and run them: see `run`."""
    while True:
        failed = run_all(storage, options, engine, stop)
        if interval is None:
            return int(failed)
        if stop.asked.wait(interval):
            return 0


def run_all(storage: Storage, options: Options, engine: Engine, stop: Stop) -> bool:
    """Run the plans that there are, and those that come meanwhile, each once. Whether one of them failed."""
    tried: set[str] = set()
    failed = False
    while not stop.asked.is_set():
        instant = ""
        try:
            with typed_errors():
                pending = [i.requested for i in load_state(storage).timeline.pending_compactions]
            instant = next((instant for instant in pending if instant not in tried), "")
            if not instant:
                break
            tried.add(instant)
            result = compact(storage, options, instant, engine())
        except (PlanInUse, InstantNotFound):  # another compactor runs it, or has run it
            continue
        except HoodieError as error:
            failed = True
            tell(f"{instant or storage.root}: {error}", *getattr(error, "__notes__", ()), stream=sys.stderr)
            if not instant:  # the next look may find the storage well again
                break
        else:
            assert result is not None  # an instant was named
            tell(f"{instant}: {len(result.files)} file slices compacted in {sum(result.seconds.values()):.1f} s")
    return failed


def tell(*lines: str, stream: TextIO | None = None) -> None:
    print(*lines, sep="\n  ", file=stream, flush=True)


def _threads() -> None:
    return None


@dataclass(slots=True)
class _Spark:
    """A session that is started for the first plan. Where the settings name no master it is in this process."""

    conf: Mapping[str, str]
    stop: Stop
    _session: SparkSession | None = None

    def tasks(self) -> RunTasks:
        from hoodie.spark.compaction import carry_out

        if self._session is None:
            self._session = self._start()
            _handle(self.stop)  # Spark has put a handler of its own in place
        return partial(carry_out, self._session)

    def close(self) -> None:
        if self._session is not None:
            self._session.stop()

    def _start(self) -> SparkSession:
        from pyspark.sql import SparkSession

        from hoodie.spark.session import local_session

        started = not {"SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"}.isdisjoint(os.environ)  # by spark-submit, say
        if not started and {"spark.master", "spark.remote"}.isdisjoint(self.conf):
            return local_session("hoodie-compactor", **self.conf)
        builder = SparkSession.builder.appName("hoodie-compactor")
        for key, value in self.conf.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


@contextmanager
def _signals(stop: Stop) -> Iterator[None]:
    before = _handle(stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _handle(stop: Stop) -> dict[signal.Signals, Any]:
    return {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
