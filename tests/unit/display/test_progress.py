"""Progress bars: seen in a terminal, nowhere else, and only of long work."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from types import SimpleNamespace

import pyarrow as pa
import pytest

from hoodie.display import progress as module
from hoodie.display.progress import in_notebook, is_interactive, progress
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage
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


@pytest.mark.parametrize(("show", "pause"), [(True, 0.01), (False, 0.6)])
def test_short_work_and_the_option_show_nothing(show: bool, pause: float) -> None:
    assert "upsert" not in seen_in_a_terminal(SOURCE.format(show=show, pause=pause))


def test_nothing_is_shown_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
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
