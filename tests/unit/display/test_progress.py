"""Progress of long calls: a bar in a terminal that has tqdm, lines elsewhere; nothing of short ones."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli.main import main
from hoodie.display import progress as module
from hoodie.display.progress import counted, in_notebook, is_interactive, progress, working, write_due_lines
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.local import LocalStorage
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage
from support.nightly import nightly
from support.reported import DUE, table_with_history

SOURCE = """if True:
    import time
    from hoodie.display.progress import progress
    with progress("upsert trips", 4, show={show}) as advance:
        for _ in range(4):
            time.sleep({pause})
            advance(1, 1000, 2_000_000)
"""


def seen_in_a_terminal(source: str) -> str:
    """What a fresh Python writes to a terminal that is its standard error."""
    ours, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 100))
    with subprocess.Popen([sys.executable, "-c", source], stderr=terminal) as child:
        os.close(terminal)
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:  # the terminal is closed: the child has ended
            pass
    os.close(ours)
    assert child.returncode == 0, seen
    return seen.decode()


def test_long_work_shows_tasks_rows_and_bytes_in_a_terminal() -> None:
    seen = seen_in_a_terminal(SOURCE.format(show=True, pause=0.6))
    assert "upsert trips" in seen
    assert "3/4" in seen
    assert "3,000 rows, 6.0 MB" in seen


@pytest.mark.parametrize(("show", "pause"), [(True, 0.01), nightly(False, 0.6)])
def test_short_work_and_the_option_show_nothing(show: bool, pause: float) -> None:
    assert "upsert" not in seen_in_a_terminal(SOURCE.format(show=show, pause=pause))


def test_short_work_writes_no_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert not is_interactive()
    with progress("upsert trips", 1, show=True) as advance:
        advance(1, 1, 1)
    assert capfd.readouterr() == ("", "")


def test_a_notebook_is_known_by_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1)))
    assert in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    assert not in_notebook()


def test_without_tqdm_there_is_no_bar(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "is_interactive", lambda: True)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with progress("upsert trips", 1, show=True) as advance:
        advance(1, 1, 1)
    assert capfd.readouterr() == ("", "")


def test_writes_and_compactions_tell_of_each_task(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int, list[tuple[int, int, int]]]] = []

    class Bar:
        def __init__(self, what: str, tasks: int) -> None:
            self.postfix: list[str] = []
            self.updates: list[int] = []
            told.append((what, tasks, self.updates))  # type: ignore[arg-type]

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *raised: object) -> None:
            return None

        def set_postfix_str(self, text: str, refresh: bool) -> None:
            self.postfix.append(text)

        def update(self, count: int) -> None:
            self.updates.append(count)

    table = table_with_history(MemoryStorage())
    monkeypatch.setattr(module, "is_interactive", lambda: True)
    monkeypatch.setattr(module, "_bar", Bar)
    table.upsert(pa.table({"id": ["t0", "t1"], "city": ["oslo", "rome"], "ts": [7, 7]}))
    compact(table.storage, Settings.of({}), schedule_compaction(table.storage, Settings.read(DUE)))
    table.upsert(pa.table({"id": ["t0"], "city": ["oslo"], "ts": [8]}), {"hoodie.console.progress": "false"})
    assert told == [("upsert trips", 2, [1, 1]), ("compaction", 3, [1, 1, 1])]


class Clock:
    """The clock of progress, which stands still between two moves. The thread that writes lines waits for the end."""

    def __init__(self) -> None:
        self.now, self.over = 0.0, threading.Event()

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.over.wait()

    def move(self, seconds: float) -> None:
        self.now += seconds
        write_due_lines()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    clock = Clock()
    with monkeypatch.context() as patch:
        patch.setattr(module, "time", clock)
        yield clock
        clock.over.set()


def test_long_work_writes_lines_without_a_terminal(clock: Clock, capfd: pytest.CaptureFixture[str]) -> None:
    with progress("upsert trips", 4, show=True) as advance:
        for _ in range(4):
            clock.move(1.2)
            advance(1, 1000, 2_000_000)
    assert capfd.readouterr().err.splitlines() == [
        "upsert trips: 1 of 4 tasks, 1,000 rows, 2.0 MB, 2.4 s",
        "upsert trips: 3 of 4 tasks, 3,000 rows, 6.0 MB, 4.8 s",
    ]
    with progress("upsert trips", 4, show=False):
        clock.move(5)
    assert capfd.readouterr().err == ""


def test_lines_come_at_most_a_minute_apart(clock: Clock, capfd: pytest.CaptureFixture[str]) -> None:
    with working("check trips"):
        for _ in range(300):
            clock.move(1)
    at = [line.partition(": ")[2] for line in capfd.readouterr().err.splitlines()]
    assert at == ["2.0 s", "4.0 s", "8.0 s", "16 s", "32 s", "1 min 4 s", "2 min 4 s", "3 min 4 s", "4 min 4 s"]


def test_a_fresh_python_writes_lines_to_a_pipe_without_a_width() -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "TERM")}
    child = subprocess.run(
        [sys.executable, "-c", SOURCE.format(show=True, pause=0.8)], capture_output=True, text=True, env=environment
    )
    assert child.returncode == 0, child.stderr
    assert child.stderr.startswith("upsert trips: ")


@pytest.mark.parametrize("how", ["call", "command", "quiet call", "quiet command"])
def test_a_long_call_says_that_it_is_under_way(
    how: str, tmp_path: Path, clock: Clock, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, list_tree = str(tmp_path / "trips"), LocalStorage.list_tree
    hoodie.create_table(path, record_key="id").insert(pa.table({"id": ["a"]}))

    def slowly(*given: Any, **named: Any) -> Any:
        clock.move(2.5)
        return list_tree(*given, **named)

    monkeypatch.setattr(LocalStorage, "list_tree", slowly)
    if how == "command":
        main(["check", path])
    elif how == "quiet command":
        main(["check", path, "--option", "hoodie.console.progress=false"])
    else:
        hoodie.open_table(path, options={"hoodie.console.progress": how == "call"}).check()
    said = capfd.readouterr().err
    expected = {"call": "check trips: 2.5 s", "command": f"check {path}: 2.5 s"}.get(how)
    assert said.startswith(expected) if expected else not said


def test_a_call_within_a_call_writes_no_line_of_its_own(clock: Clock, capfd: pytest.CaptureFixture[str]) -> None:
    with working("merge trips"), working("upsert trips"), progress("upsert trips", 2, show=True) as advance:
        count = counted(str, 2, "file")
        clock.move(2.6)
        advance(1, 5, 10)
        count(1)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("upsert trips: 0 of 2")


def test_the_thread_that_writes_ends_with_the_calls() -> None:
    def is_there() -> bool:
        return any(thread.name == "hoodie-progress" for thread in threading.enumerate())

    with working("check trips"):
        assert is_there()
    end = time.monotonic() + 60
    while is_there() and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_there()
