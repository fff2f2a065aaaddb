"""Compactors as processes of their own beside a writer: one; and several that share the plans, one of them killed."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.commit.markers import read_markers
from hoodie.model.instant import Action, State
from hoodie.model.meta import FILE_NAME
from hoodie.services.compaction.schedule import pending_compactions
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.load import read_commit
from support.compacting import OPTIONS, opened, schedule
from support.nightly import nightly
from support.oracles import assert_same_rows, read_hudi_rs

Start = Callable[..., subprocess.Popen[bytes]]

ROWS = 30_000
CITIES = [f"city{number}" for number in range(5)]
_PATIENCE = 90.0
_DONE = re.compile(r"^(\d{17}): 1 file slices compacted in ", re.MULTILINE)


def rows(city: str, count: int, version: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"{city}-{number}" for number in range(count)],
            "city": [city] * count,
            "ts": pa.array([version] * count, pa.int64()),
            "note": [f"{version}-{number * 7919 % 10007}" * 4 for number in range(count)],
        }
    )


@pytest.fixture(scope="module")
def table_in_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base file and a log of half its rows in each city."""
    path = tmp_path_factory.mktemp("compactors") / "table"
    table = ArrowTable.create(LocalStorage(path), OPTIONS)
    table.upsert(pa.concat_tables([rows(city, ROWS, 1) for city in CITIES]))
    table.upsert(pa.concat_tables([rows(city, ROWS // 2, 2) for city in CITIES]))
    return path


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `hoodie compactor run`; what it says goes to the file of its name. Those that are left are killed."""
    started = []

    def begin(name: str, path: Path, options: Mapping[str, str], *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "hoodie.cli", "compactor", "run", str(path), *arguments]
        for key, value in options.items():
            command += ["--option", f"{key}={value}"]
        with (tmp_path / name).open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()


def wait_until(condition: Callable[[], object], logs: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > end:
            said = "\n".join(f"{log.name}: {log.read_text()}" for log in logs.iterdir() if log.is_file())
            pytest.fail(f"not so after {_PATIENCE} s; the compactors said\n{said}")
        time.sleep(0.01)


def pending(path: Path) -> set[str]:
    return {instant.requested for instant, _ in pending_compactions(load_state(LocalStorage(path)))}


def test_one_compactor_watches_while_a_writer_goes_on(start: Start, tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "table")
    ArrowTable.create(storage, OPTIONS)
    table = opened(storage)
    compactor = start("one", tmp_path / "table", {}, "--engine", "local", "--watch", "--interval", "0.1")
    plans = []
    for version in range(1, 9):
        for city in CITIES[:2]:
            table.upsert(rows(city, 100 + version, version))
        if version % 2 == 0:
            plans.append(schedule(storage))
    wait_until(lambda: not pending(tmp_path / "table"), tmp_path)
    compactor.send_signal(signal.SIGTERM)
    assert compactor.wait(30) == 0
    assert "SIGTERM: no further compaction is begun" in (tmp_path / "one").read_text()
    timeline = load_state(storage).timeline
    assert [i.requested for i in timeline.completed({Action.COMMIT})] == plans
    found = table.snapshot()
    expected = {f"{city}-{number}": 8 for city in CITIES[:2] for number in range(108)}
    assert dict(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True)) == expected
    assert found.num_rows == len(expected)
    assert_same_rows(read_hudi_rs(tmp_path / "table"), found)


@pytest.fixture(params=[nightly("zookeeper"), "storage"])
def locks(request: pytest.FixtureRequest) -> Mapping[str, str]:
    """Two kinds of the table's lock, each with claims that end two seconds after a process died."""
    given: dict[str, object] = {"storage.validity.timeout.secs": 2, "storage.renew.interval.secs": 1}
    if request.param == "zookeeper":
        given |= {
            "zookeeper.url": request.getfixturevalue("zookeeper_server"),
            "zookeeper.base_path": "/hoodie/test",
            "zookeeper.lock_key": f"trips-{os.getpid()}",
            "zookeeper.session_timeout_ms": 2000,
        }
    return {f"hoodie.write.lock.{key}": str(value) for key, value in given.items()}


def owners(path: Path) -> dict[str, str]:
    """Who has which plan in hand, by instant."""
    found = {}
    for file in (path / ".hoodie" / ".locks").glob("compaction-*"):
        with suppress(FileNotFoundError):  # just released
            found[file.name.split("-")[1].split(".")[0]] = json.loads(file.read_bytes())["owner"]
    return found


def test_of_three_compactors_one_is_killed_and_every_plan_is_run_once(
    start: Start, table_in_log: Path, locks: Mapping[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "tables" / "table"
    shutil.copytree(table_in_log, path)
    storage = LocalStorage(path)
    before = ArrowTable(storage).snapshot()
    plans = {schedule(storage, **{"hoodie.compaction.target.io": "0"}) for _ in CITIES}
    assert len(plans) == len(CITIES)
    run = ("--engine", "local", "--watch", "--interval", "0.1")
    victim = start("victim", path, locks, *run)

    def in_hand() -> set[str]:
        states = {i.requested: i.state for i, _ in pending_compactions(load_state(storage))}
        mine = f"process {victim.pid} on "
        return {i for i, who in owners(path).items() if mine in who and states.get(i) is State.INFLIGHT}

    def is_stopped_at_work() -> bool:
        assert victim.poll() is None, (tmp_path / "victim").read_text()
        if in_hand():
            victim.send_signal(signal.SIGSTOP)
            if in_hand():
                return True
            victim.send_signal(signal.SIGCONT)
        return False

    wait_until(is_stopped_at_work, tmp_path)
    (left,) = in_hand()
    others = [start(name, path, locks, *run) for name in ("second", "third")]
    victim.kill()
    victim.wait()
    wait_until(lambda: not pending(path), tmp_path)
    for process in others:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0

    said = {name: _DONE.findall((tmp_path / name).read_text()) for name in ("victim", "second", "third")}
    assert sorted(instant for instants in said.values() for instant in instants) == sorted(plans), said
    assert left in {*said["second"], *said["third"]}, said
    timeline = load_state(storage).timeline
    completed = timeline.completed({Action.COMMIT})
    assert {i.requested for i in completed} == plans
    for instant in completed:
        stats = [stat for part in read_commit(storage, timeline, instant).stats.values() for stat in part]
        assert [stat.num_writes for stat in stats] == [ROWS]
        made = {file.relative_to(path).as_posix() for file in path.rglob(f"*_{instant.requested}.parquet")}
        assert made == {stat.path for stat in stats}
        assert read_markers(storage, instant.requested) == ()
    after = ordered(ArrowTable(storage).snapshot())
    assert after.drop_columns([FILE_NAME]) == ordered(before).drop_columns([FILE_NAME])
    assert ordered(read_hudi_rs(path)).select(["id", "ts", "note"]) == after.select(["id", "ts", "note"])


def ordered(found: pa.Table) -> pa.Table:
    return found.sort_by("id").combine_chunks()
