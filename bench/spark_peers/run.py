"""All parts by all engines by turns, and the rows of each compared with DuckDB's after each step.

An engine does a part on a table of 2,000 rows first, so that its JVM has seen it; then on the one that is measured.
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.cases import files_below
from bench.spark_peers.engines import ENGINES, EngineFailed, Session
from bench.spark_peers.parts import PARTS, UPSERTS, Part, Step
from bench.spark_peers.rows import Rows, prepare_apart, same

_WARM_N = 2_000
#: Batches of a step there.
_WARM_BATCHES = 3


@dataclass(frozen=True)
class Outcome:
    """One step of an engine; seconds and bytes.

    spark    its version
    number   of the round
    calls    wall and CPU of each of its calls
    written  of files that it made or changed, and that were there afterwards
    problem  what the engine said, or how its rows differ from DuckDB's; "": neither
    """

    step: str
    engine: str
    spark: str
    number: int = 0
    calls: tuple[tuple[float, float], ...] = ()
    written: int = 0
    problem: str = ""

    @property
    def cpu(self) -> float:
        return sum(cpu for _, cpu in self.calls)


def run(
    n: int, rounds: int, engines: Sequence[str], parts: Sequence[str], commits: int, data: Path, made: Path
) -> Iterator[Outcome]:
    """commits  of ten rows, at most
    made     where the tables lie meanwhile
    """
    large, small = prepare_apart((n, _WARM_N), data)
    for number in range(rounds):
        folder = made / f"round-{number}"
        with ExitStack() as stack:
            sessions = {}
            for name in engines:
                sessions[name] = Session(ENGINES[name], folder / name)
                stack.callback(sessions[name].stop)
            workers = [
                _Worker(name, session.wait(), number, session, small, large, commits)
                for name, session in sessions.items()
            ]
            turn = number % len(workers)
            for part in parts:
                for worker in workers[turn:] + workers[:turn]:
                    yield from worker.do(PARTS[part])
        shutil.rmtree(folder)


def add(outcomes: Iterable[Outcome], file: Path) -> None:
    """A line of JSON each, as they come."""
    for outcome in outcomes:
        with file.open("a") as lines:
            print(json.dumps(asdict(outcome)), file=lines)


def read(file: Path) -> list[Outcome]:
    """Of a step that an engine did again in the same round the last outcome."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    outcomes = [Outcome(**{**line, "calls": tuple(map(tuple, line["calls"]))}) for line in lines]
    return list({(one.step, one.engine, one.number): one for one in outcomes}.values())


class _Worker:
    """One engine that does parts, one after another."""

    def __init__(
        self, name: str, spark: str, number: int, session: Session, small: Path, large: Path, commits: int
    ) -> None:
        self.outcome = partial(Outcome, engine=name, spark=spark, number=number)
        self.session, self.commits = session, commits
        self.small, self.large = small, large
        self.rows = {folder: Rows(folder) for folder in (small, large)}
        self.loaded: set[str] = set()

    def do(self, part: Part) -> Iterator[Outcome]:
        """An outcome for each step, until one fails."""
        try:
            list(self._steps(part, self.small, f"warm_{part.name}", _WARM_BATCHES))
            yield from self._steps(
                part, self.large, f"t_{part.name}", self.commits if part.name == "commits" else UPSERTS
            )
        except EngineFailed as error:
            yield self.outcome(part.steps[0].name, problem=str(error))

    def _steps(self, part: Part, folder: Path, table: str, most: int) -> Iterator[Outcome]:
        rows, call = self.rows[folder], self.session.call
        rows.bulk("orders")
        bulk = part.steps[0].call == "bulk"
        if not bulk:
            size = table.partition("_")[0]
            kept = f"{size}_{'logs' if part.logs else 'files'}"
            if kept not in self.loaded:
                self._at(f"{size}_loaded", part.logs)
                call("drop")
                call("bulk", str(folder / "orders"))
                call("keep", kept)
                call("drop")
                self.loaded.add(kept)
        path = self._at(table, part.logs)
        call("drop") if bulk else call("again", kept)
        since = call("mark") if part.changes else None
        for step in part.steps:
            try:
                yield self._step(step, rows, folder, path, since, most)
            except EngineFailed as error:
                yield self.outcome(step.name, problem=str(error))
                return
        call("drop")

    def _at(self, table: str, logs: bool) -> Path:
        return Path(self.session.call("at", table, logs))

    def _step(self, step: Step, rows: Rows, folder: Path, path: Path, since: Any, most: int) -> Outcome:
        before = files_below(path)
        calls, answer = [], None
        for batch in step.batches[:most] or [""]:
            answer, reading = self.session.measure(step.call, *_arguments(step, rows, folder, batch, since))
            calls.append((reading.wall, reading.cpu))
            if step.call in ("upsert", "delete", "merge"):
                getattr(rows, step.call)(batch)
        after = files_below(path)
        written = sum(size for file, size in after.items() if before.get(file) != size and not file.endswith(".crc"))
        if step.writes:
            exported = self.session.folder / "exported"
            self.session.call("export", str(exported))
            answer, expected = rows.digest(exported), rows.digest()
        else:
            expected = rows.answer(step.call, *step.batches)
        problem = "" if same(answer, expected) else f"rows differ: {answer}, not {expected}"
        return self.outcome(step.name, calls=tuple(calls), written=written if step.writes else 0, problem=problem)


def _arguments(step: Step, rows: Rows, folder: Path, batch: str, since: Any) -> list[Any]:
    """What a method of `tables.Table` takes."""
    if step.call == "bulk":
        return [str(folder / batch)]
    if step.call == "changes":
        return [since]
    if not step.batches:
        return []
    days = rows.days(batch)
    return [str(folder / batch), days if len(days) < 10 else []]
