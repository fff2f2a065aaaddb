"""`hoodie compactor`, in this process: what it prints, what it runs, and how signals stop it."""

import os
import signal
import threading
from pathlib import Path

import pytest

import hoodie
from hoodie.cli.compactor import Plans, _text, plan_lines
from hoodie.cli.compactor_run import Stop, _handle, run_all, watch
from hoodie.cli.main import main
from hoodie.cli.output import Grid
from hoodie.model.commit import WriteStat
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import CompactionOperation, CompactionPlan
from hoodie.services.compaction.claim import claimed, runs_unclaimed
from hoodie.services.compaction.job import CompactionJob
from hoodie.services.compaction.run import run_on_driver
from hoodie.services.compaction.schedule import pending_compactions
from hoodie.storage.local import LocalStorage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage
from support.compacting import AFTER_LATER, AFTER_SECOND, LATER, batch, fill, notes, opened, schedule

ONE_SLICE = "hoodie.compaction.target.io=0"
DUE = "hoodie.compact.inline.max.delta.commits=1"


@pytest.fixture
def path(tmp_path: Path) -> str:
    fill(LocalStorage(tmp_path))
    return str(tmp_path)


def pending(path: str) -> list[str]:
    return [instant.requested for instant, _ in pending_compactions(load_state(LocalStorage(path)))]


def out_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_plan_is_made_shown_and_run(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compactor", "schedule", path]) == 0
    assert out_of(capsys) == ["nothing to do: no compaction is due, or there are no logs to compact"]
    assert main(["compactor", "schedule", path, "--option", DUE, "--extra", "who=me", "--extra", "why=a=b"]) == 0
    (instant,) = out_of(capsys)
    assert pending(path) == [instant]
    assert pending_compactions(load_state(LocalStorage(path)))[0][1].extra == {"who": "me", "why": "a=b"}
    assert main(["compactor", "plan", path, "--executor-cores", "4"]) == 0
    _, line = out_of(capsys)
    assert line.split() == [instant, "requested", "2", "3", "0", "0", "1"]
    assert main(["compactor", "run", path, "--engine", "local"]) == 0
    assert out_of(capsys)[0].startswith(f"{instant}: 2 file slices compacted in ")
    assert notes(LocalStorage(path)) == AFTER_SECOND
    assert main(["compactor", "plan", path]) == 0
    assert out_of(capsys) == ["no compaction is pending"]


def test_executors_to_ask_for_are_slices_by_cores() -> None:
    def plan(slices: int) -> CompactionPlan:
        metrics = {"TOTAL_LOG_FILES": 2.0, "TOTAL_IO_READ_MB": 100.0, "TOTAL_IO_WRITE_MB": 90.0}
        one = CompactionOperation(
            group=FileGroupId("p", "f"), base_instant="1", base_file="", log_files=(), metrics=metrics
        )
        return CompactionPlan(operations=(one,) * slices)

    instants = [Instant(f"2024010100000000{n}", Action.COMPACTION, State.INFLIGHT) for n in range(3)]
    pending = list(zip(instants, map(plan, (1, 8, 9)), strict=True))
    (grid,) = _text(Plans(tuple(plan_lines(pending))), 4)
    assert isinstance(grid, Grid)
    assert [row[1:] for row in grid.rows] == [
        ("inflight", 1, 2, 100, 90, 1),
        ("inflight", 8, 16, 800, 720, 2),
        ("inflight", 9, 18, 900, 810, 3),
    ]


def test_a_plan_is_looked_into_mended_and_withdrawn(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    instant = schedule(LocalStorage(path))
    assert main(["compactor", "validate", path]) == 0
    assert main(["compactor", "repair", path, instant]) == 0
    assert out_of(capsys) == ["nothing is wrong"] * 2
    (log,) = (Path(path) / "rome").glob(".*.log.*")
    log.unlink()
    assert main(["compactor", "validate", path, instant]) == 1
    assert out_of(capsys)[0].endswith(f"partition 'rome': {log.name} is missing")
    assert main(["compactor", "run", path, "--engine", "local"]) == 3
    assert log.name in capsys.readouterr().err
    assert main(["compactor", "repair", path, instant]) == 0
    assert out_of(capsys)[0].endswith(f"{log.name} is missing and left out")
    assert main(["compactor", "unschedule", path, instant]) == 0
    assert out_of(capsys) == [f"compaction {instant} is withdrawn"]
    assert pending(path) == []


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["schedule", "{}", "--option", "hoodie.compct.inline=1"], 2, "unknown option 'hoodie.compct.inline'"),
        (["unschedule", "{}", "2024"], 3, "instant 2024 is not on the timeline"),
        (["unschedule", "{}"], 2, "needs the instant of a plan"),
        (["validate", "{}", "2024"], 3, "instant 2024 is not on the timeline"),
        (["plan", "{}/nowhere"], 3, "no table here"),
        (["run", "{}/nowhere", "--watch", "--engine", "local"], 3, "no table here"),
    ],
)
def test_an_error_is_one_line_and_a_status(
    path: str, arguments: list[str], status: int, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compactor", *(word.format(path) for word in arguments)]) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("hoodie: ")
    assert problem in line


@pytest.mark.parametrize(
    "arguments", [["--interval", "0"], ["--interval", "x"], ["--option", "a"], ["--conf", "=b"], ["--engine", "flink"]]
)
def test_a_wrong_command_line_has_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compactor", "run", "table", *arguments]) == 2
    assert arguments[1] in capsys.readouterr().err


def test_a_plan_that_fails_does_not_keep_others_from_being_run(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    storage = LocalStorage(path)
    first = schedule(storage, **dict([ONE_SLICE.split("=")]))
    second = schedule(storage)
    for log in (Path(path) / "oslo").glob(".*.log.*"):
        log.unlink()
    assert main(["compactor", "run", path, "--engine", "local"]) == 3
    said = capsys.readouterr()
    assert said.err.startswith(f"hoodie: {path}: {first}: ")
    assert said.out.startswith(f"{second}: 1 file slices compacted")
    assert pending(path) == [first]


def test_a_table_that_is_missing_among_others_is_named_once(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compaction", "run", path, f"{path}/nowhere", "--engine", "local"]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"hoodie: {path}/nowhere: no table here")


def test_each_of_several_tables_is_named_with_what_was_run(
    path: str, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    other = str(tmp_path_factory.mktemp("other"))
    fill(LocalStorage(other))
    instants = [(table, schedule(LocalStorage(table))) for table in (path, other)]
    assert main(["compaction", "run", path, other, "--engine", "local"]) == 0
    for line, (table, instant) in zip(out_of(capsys)[:2], instants, strict=True):
        assert line.startswith(f"{table}: {instant}: 2 file slices compacted in ")


def test_a_plan_in_other_hands_is_left_alone(path: str) -> None:
    storage = LocalStorage(path)
    instant = schedule(storage)
    with claimed(storage, Settings.of({}), instant):
        assert main(["compactor", "run", path, "--engine", "local"]) == 0
        assert pending(path) == [instant]
    assert main(["compactor", "run", path, "--engine", "local"]) == 0
    assert pending(path) == []


def test_a_plan_that_a_job_of_hudi_runs_is_left_with_a_line_until_it_is_named(
    path: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    storage, run = LocalStorage(path), ["compaction", "run", path, "--engine", "local"]
    instant = schedule(storage)
    storage.create_new(f".hoodie/{instant}.compaction.inflight", b"")
    assert main(run) == 0
    line = f"compaction {instant} is left to a job of Hudi"
    assert out_of(capsys)[0].startswith(line)
    stop = Stop()
    for _ in range(3):  # looks of one that watches
        run_all(storage, Settings.of({}), lambda: None, stop)
    assert len(out_of(capsys)) == 1
    assert hoodie.open_table(path).compact() is None
    (said,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert line in said
    assert f"compact('{instant}')" in said
    assert pending(path) == [instant]
    assert main([*run, "--instant", "20200101000000000"]) == 3
    assert "20200101000000000" in capsys.readouterr().err
    assert main([*run, "--instant", instant]) == 0
    assert pending(path) == []
    assert main([*run, "--watch", "--instant", instant]) == 2


def test_whether_hudi_runs_a_plan_that_is_only_requested_costs_no_listing(path: str) -> None:
    schedule(LocalStorage(path))
    storage = CountingStorage(LocalStorage(path))
    state = load_state(storage)
    storage.calls.clear()
    assert not any(runs_unclaimed(state, plan) for plan in state.timeline.pending_compactions)
    assert not storage.calls


def test_a_watching_compactor_runs_what_is_planned_meanwhile(path: str) -> None:
    storage, stop = LocalStorage(path), Stop()
    thread = threading.Thread(
        target=watch, args=(lambda: run_all(storage, Settings.of({}), lambda: None, stop), 0.02, stop)
    )
    thread.start()
    try:
        for rows, after in ((LATER, AFTER_LATER), ({"a": ("oslo", 9, "last")}, {**AFTER_LATER, "a": "last"})):
            opened(storage).upsert(batch(rows))
            schedule(storage)
            while pending(path):
                threading.Event().wait(0.02)
            assert notes(storage) == after
    finally:
        stop.requested.set()
        thread.join()


def test_a_signal_lets_the_plan_at_hand_end_and_begins_no_other(path: str) -> None:
    storage, stop = LocalStorage(path), Stop()
    schedule(storage, **dict([ONE_SLICE.split("=")]))
    second = schedule(storage)

    def told_to_stop(job: CompactionJob) -> list[WriteStat | None]:
        os.kill(os.getpid(), signal.SIGTERM)
        return run_on_driver(job)

    before = _handle(stop)
    try:
        assert not run_all(storage, Settings.of({}), lambda: told_to_stop, stop)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert pending(path) == [second]
    assert notes(storage) == AFTER_SECOND


def test_a_second_signal_gives_the_plan_at_hand_up(path: str) -> None:
    storage, stop = LocalStorage(path), Stop()
    instant = schedule(storage)

    def told_to_stop_twice(job: CompactionJob) -> list[WriteStat | None]:
        stats = run_on_driver(job)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        return stats

    before = _handle(stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_all(storage, Settings.of({}), lambda: told_to_stop_twice, stop)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    state = load_state(storage)
    assert [i.state for i in state.timeline.pending_compactions] == [State.REQUESTED]
    assert not list(Path(path).rglob(f"*_{instant}.parquet"))
    assert run_all(storage, Settings.of({}), lambda: None, Stop()) is False  # its claim was given back
    assert pending(path) == []


def test_handlers_of_signals_are_put_back(path: str) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    assert main(["compactor", "run", path, "--engine", "local"]) == 0
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
