"""A progress bar for long work, in a terminal or a notebook; nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Lock
from typing import Any

from hoodie.display.summary import bytes_text

#: Tells that a task has ended: tasks, rows and bytes that it wrote. Any thread may call it.
Advance = Callable[[int, int, int], None]

#: Seconds before a bar is shown: short work needs none.
_DELAY = 1.0


@contextmanager
def progress(what: str, tasks: int, *, show: bool) -> Iterator[Advance]:
    """A bar of tasks that have ended, with rows and bytes, while the block runs.

    what   the work, such as "upsert trips"
    tasks  how many there are
    show   False: the options want none
    """
    bar = _bar(what, tasks) if show and tasks and is_interactive() else None
    if bar is None:
        yield _silent
        return
    changing, done = Lock(), [0, 0]

    def advance(tasks: int, rows: int, size: int) -> None:
        with changing:
            done[0] += rows
            done[1] += size
            bar.set_postfix_str(f"{done[0]:,} rows, {bytes_text(done[1])}", refresh=False)
            bar.update(tasks)

    with bar:
        yield advance


def _silent(tasks: int, rows: int, size: int) -> None:
    return None


def is_interactive() -> bool:
    """Whether somebody looks on: standard error is a terminal, or the code runs in a notebook."""
    return in_notebook() or bool(getattr(sys.stderr, "isatty", lambda: False)())


def in_notebook() -> bool:
    """Whether the code runs in a Jupyter kernel. IPython is asked only where it is loaded already."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


def _bar(what: str, tasks: int) -> Any:
    """A bar of tqdm; None where that is not installed."""
    if find_spec("tqdm") is None:
        return None
    if in_notebook() and find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm
    else:
        from tqdm import tqdm
    return tqdm(total=tasks, desc=what, unit=" tasks", delay=_DELAY, leave=False, dynamic_ncols=True)
