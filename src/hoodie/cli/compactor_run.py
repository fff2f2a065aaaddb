"""A compactor: a process that runs the pending compactions of a table, one after the other, until told to stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

from hoodie.cli.calls import Target, explained
from hoodie.cli.compactor_plans import PlanLine
from hoodie.cli.output import complain, with_path
from hoodie.errors import HoodieError, InstantNotFound, InvalidOption, MissingPackage, PlanInUse
from hoodie.model.instant import Instant
from hoodie.services.compaction.claim import left_running, runs_unclaimed
from hoodie.services.compaction.job import RunTasks
from hoodie.services.compaction.run import compact
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Runs that are remembered of each table, for the result at the end: a watching compactor goes on for ever.
_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Run:
    """A compaction that a compactor ran, or could not run.

    slices   file slices that were compacted
    problem  why it failed; ""
    error    the class of the error that says so; ""
    """

    instant: str
    slices: int
    seconds: float
    problem: str = ""
    error: str = ""

    @classmethod
    def failed(cls, instant: str, error: HoodieError) -> Run:
        problem = explained(error)[1]
        return cls(instant, 0, 0.0, problem.message, problem.type)


@dataclass(frozen=True, slots=True)
class Runs:
    """What a compactor did, in order.

    plans  of a dry run: the pending compactions, oldest first
    """

    runs: tuple[Run, ...]
    plans: tuple[PlanLine, ...] = ()


#: Makes what runs tasks, once there is something to run; None: threads of this process.
_Engine = Callable[[], RunTasks | None]


@dataclass(slots=True)
class Stop:
    """Whether a signal came. The first one lets the work at hand end, the second one interrupts it.

    lines  that were printed, of those that are printed once however often a compactor looks
    """

    requested: threading.Event = field(default_factory=threading.Event)
    quiet: bool = False
    lines: set[str] = field(default_factory=set)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.requested.is_set():
            raise KeyboardInterrupt
        self.requested.set()
        if not self.quiet:
            tell(f"{signal.Signals(number).name}: no further compaction is begun")

    def tell_once(self, line: str) -> None:
        if not self.quiet and line not in self.lines:
            self.lines.add(line)
            tell(line)


def run_compactor(
    targets: Sequence[Target],
    engine: str,
    conf: Mapping[str, str],
    interval: float | None,
    runs: dict[str, list[Run]],
    *,
    instant: str | None = None,
    quiet: bool = False,
) -> int:
    """Run pending compactions.

    engine    one of `ENGINES`
    conf      Spark settings
    interval  seconds between looks for new plans; None: end when there is none to run
    runs      takes what was done, by the path of the table
    instant   the one plan that is run, be it by another now; None: all that nobody runs
    quiet     print nothing but errors
    returns   0; 1 when a plan could not be run, or the work was interrupted
    Raises    TableNotFound and other errors of the one table, when the first look fails; one of several is passed over
    """
    stop = Stop(quiet=quiet)
    for target in targets:
        runs[target.path] = []
        if len(targets) == 1:
            load_state(target.storage)
    with _signals(stop), closing(_Spark(conf, stop)) as spark:
        start = _threads if engine == "local" else spark.tasks

        def look() -> bool:
            failed = [_look_at(target, start, stop, runs[target.path], len(targets) > 1, instant) for target in targets]
            return any(failed)

        try:
            status = watch(look, interval, stop)
            if interval is None and not quiet and not any(runs.values()):
                tell("nothing to do: no compaction is pending, or another process runs it")
            return status
        except KeyboardInterrupt:
            complain("interrupted: the plan stays, and is run by the next compactor")
            return 1


def watch(look: Callable[[], bool], interval: float | None, stop: Stop) -> int:
    """Look for plans and run them: see `run`. look: whether a plan failed"""
    while True:
        failed = look()
        if interval is None:
            return int(failed)
        if stop.requested.wait(interval):
            return 0


def _look_at(target: Target, engine: _Engine, stop: Stop, runs: list[Run], several: bool, instant: str | None) -> bool:
    """Run the plans of a table; whether that failed, as it does where there is no table."""
    try:
        with typed_errors():
            storage = target.storage
        return run_all(storage, target.settings, engine, stop, runs, target.path if several else "", instant)
    except HoodieError as error:
        runs.append(Run.failed("", error))
        complain(with_path(target.path, runs[-1].problem))
        return True


def run_all(
    storage: Storage,
    settings: Settings,
    engine: _Engine,
    stop: Stop,
    runs: list[Run] | None = None,
    label: str = "",
    named: str | None = None,
) -> bool:
    """Run the plans that there are, and those that come meanwhile, each once. Whether one of them failed.

    runs   takes what was done
    label  the table's path before each line; "": it is the only table
    named  the one plan that is run; None: all but those that a process runs which claims nothing
    """
    ended_runs = [] if runs is None else runs
    tried: set[str] = set()
    failed = False
    while not stop.requested.is_set():
        instant = ""
        try:
            with typed_errors():
                state = load_state(storage)
                plans = [plan for plan in state.timeline.pending_compactions if plan.requested not in tried]
                if named is None:
                    instant = next((plan.requested for plan in plans if not _left(state, plan, stop, label)), "")
                elif not tried:
                    instant = named
            if not instant:
                break
            tried.add(instant)
            result = compact(storage, settings, instant, engine())
        except HoodieError as error:
            if named is None and isinstance(error, (PlanInUse, InstantNotFound)):
                continue  # another compactor runs it, or has run it
            failed = True
            ended_runs.append(Run.failed(instant, error))
            problem = ended_runs[-1].problem
            complain(with_path(storage.root, with_path(instant, problem) if instant else problem))
            if not instant:  # the next look may find the storage well again
                break
        else:
            assert result is not None  # an instant was named
            run = Run(instant, len(result.files), round(sum(result.seconds.values()), 3))
            ended_runs.append(run)
            if not stop.quiet:
                line = f"{instant}: {run.slices} file slices compacted in {run.seconds:.1f} s"
                tell(with_path(label, line) if label else line)
        del ended_runs[:-_KEPT]
    return failed


def _left(state: TableState, plan: Instant, stop: Stop, label: str) -> bool:
    """Whether a plan is left alone, as a process runs it that claims nothing; a line says so once."""
    if not runs_unclaimed(state, plan):
        return False
    line = left_running(plan, f"--instant {plan.requested}")
    stop.tell_once(with_path(label, line) if label else line)
    return True


def tell(line: str) -> None:
    print(line, flush=True)


def _threads() -> None:
    return None


@dataclass(slots=True)
class _Spark:
    """A session that is started for the first plan. Where the settings name no master it is in this process."""

    conf: Mapping[str, str]
    stop: Stop
    _session: SparkSession | None = None

    def tasks(self) -> RunTasks:
        try:
            from hoodie.spark.compaction import carry_out
        except MissingPackage as missing:
            raise InvalidOption(
                "PySpark is not installed here: take --engine local, which merges in threads of this process, or "
                "pip install 'hoodie[spark]'"
            ) from missing

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
