"""At a terminal: tables are drawn, and a question is asked and answered."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from hoodie.storage.local import LocalStorage
from support.compacting import AFTER_SECOND, notes


def at_terminal(*words: object, answer: str = "", **environment: str) -> tuple[int, str]:
    """The exit status of a command in a pseudo-terminal, and all that it showed there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "hoodie.cli", *map(str, words)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "COLUMNS": "200", "TERM": "xterm", **environment},
    )
    os.close(theirs)
    if answer:
        os.write(ours, f"{answer}\n".encode())
    shown = b""
    while True:
        try:
            data = os.read(ours, 4096)
        except OSError:  # its end is closed
            break
        if not data:
            break
        shown += data
    os.close(ours)
    return process.wait(60), shown.decode()


def test_a_table_is_drawn_at_a_terminal_only(lake: Path) -> None:
    status, shown = at_terminal("ls", lake)
    assert status == 0
    assert "───" in shown
    assert f"{lake}/a" in shown
    status, shown = at_terminal("ls", lake, NO_COLOR="1")
    assert "───" not in shown


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 3)])
def test_a_rollback_is_shown_and_asked_about(lake: Path, answer: str, status: int) -> None:
    ended, shown = at_terminal("rollback", lake / "a", answer=answer)
    assert ended == status, shown
    assert "would roll back" in shown
    assert "Take that back, of 1 tables? [y/N]" in shown
    after = notes(LocalStorage(lake / "a"))
    assert (after == AFTER_SECOND) is (answer == "n")
