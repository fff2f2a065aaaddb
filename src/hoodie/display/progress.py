"""What is shown while a call takes long: a bar in a terminal or a notebook with tqdm, else lines on standard error.

A line needs neither a terminal nor its width: it is written after two seconds, and then each time as much time again
has passed, at most a minute. One thread of this process writes the lines of all calls, and ends when none is under way.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from importlib.util import find_spec
from typing import Any, Concatenate, ParamSpec, TypeVar

from hoodie.display.summary import bytes_text, count_text, seconds_text

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
_Client = TypeVar("_Client")

#: Tells that a task has ended: tasks, rows and bytes that it wrote. Any thread may call it.
Advance = Callable[[int, int, int], None]

#: Seconds before a bar is shown: short work needs none.
_DELAY = 1.0
#: Seconds before the first line is written, and the most between two.
_FIRST, _LONGEST = 2.0, 60.0
_TICK = 0.25
OPTION = "hoodie.console.progress"


@dataclass(slots=True, eq=False)
class Work:
    """A call that is under way.

    tasks  how many there are; 0: nobody knows
    noun   one of them
    due    seconds after its beginning at which a line is written
    quiet  a bar shows it
    """

    what: str
    tasks: int = 0
    noun: str = "task"
    finished: int = 0
    rows: int = 0
    size: int = 0
    begun: float = field(default_factory=lambda: time.monotonic())  # by name: tests have a clock of their own
    due: float = _FIRST
    quiet: bool = False

    def line(self, seconds: float) -> str:
        parts = [f"{self.finished:,} of {count_text(self.tasks, self.noun)}"] if self.tasks else []
        parts += [f"{self.rows:,} rows, {bytes_text(self.size)}"] if self.rows or self.size else []
        return f"{self.what}: {', '.join([*parts, seconds_text(seconds)])}"


_WORK: ContextVar[Work | None] = ContextVar("hoodie_work", default=None)
_changing = threading.Lock()
_under_way: dict[int, Work] = {}
_writer: threading.Thread | None = None


@contextmanager
def working(what: str, *, show: bool = True) -> Iterator[Work]:
    """Lines that say that a call is under way, while the block runs; within another one nothing of its own.

    what  the call, such as "check trips"
    show  False: the options want none
    """
    global _writer
    around, work = _WORK.get(), Work(what)
    if not show or around is not None:
        yield around or work
        return
    before = _WORK.set(work)
    with _changing:
        _under_way[id(work)] = work
        if _writer is None or not _writer.is_alive():  # nor after a fork
            _writer = threading.Thread(target=_write_lines, name="hoodie-progress", daemon=True)
            _writer.start()
    try:
        yield work
    finally:
        _WORK.reset(before)
        with _changing:
            _under_way.pop(id(work), None)


def _write_lines() -> None:
    global _writer
    while True:
        time.sleep(_TICK)
        with _changing:
            if not _under_way:
                _writer = None
                return
        write_due_lines()


def write_due_lines() -> None:
    """Write the lines of the calls under way that are due."""
    now = time.monotonic()
    with _changing:
        due = [work for work in _under_way.values() if now - work.begun >= work.due and not work.quiet]
    for work in due:
        seconds = now - work.begun
        work.due = seconds + min(seconds, _LONGEST)
        with suppress(OSError, ValueError, AttributeError):  # no standard error, or a closed one
            sys.stderr.write(f"{work.line(seconds)}\n")
            sys.stderr.flush()


def counted(call: Callable[[T], R], total: int, noun: str) -> Callable[[T], R]:
    """The same function, for items that the call under way counts as its steps, in whichever thread.

    total  of the items
    noun   one of them, such as "file slice"
    """
    work = _WORK.get()
    if work is None:
        return call
    with _changing:
        if work.noun == noun:
            work.tasks += total
        else:
            work.tasks, work.noun, work.finished = total, noun, 0

    def step(item: T) -> R:
        result = call(item)
        with _changing:
            work.finished += work.noun == noun
        return result

    return step


@contextmanager
def progress(what: str, tasks: int, *, show: bool) -> Iterator[Advance]:
    """A bar or lines with the tasks that have ended, rows and bytes, while the block runs.

    what   the work, such as "upsert trips"
    tasks  how many there are
    show   False: the options want none
    """
    if not show or not tasks:
        yield lambda tasks, rows, size: None
        return
    with working(what) as work:
        bar = _bar(what, tasks) if is_interactive() else None
        name, work.what, work.tasks, work.noun, work.quiet = work.what, what, tasks, "task", bar is not None

        def advance(tasks: int, rows: int, size: int) -> None:
            with _changing:
                work.finished += tasks
                work.rows += rows
                work.size += size
                if bar is not None:
                    bar.set_postfix_str(f"{work.rows:,} rows, {bytes_text(work.size)}", refresh=False)
                    bar.update(tasks)

        try:
            with bar or nullcontext():
                yield advance
        finally:
            work.what, work.tasks, work.finished, work.rows, work.size, work.quiet = name, 0, 0, 0, 0, False


def reporting(name: str, call: Callable[Concatenate[_Client, P], T]) -> Callable[Concatenate[_Client, P], T]:
    """A method of a client, as a call that is under way: `working` around it, unless the client's options, or those of
    the call, want none."""

    @wraps(call)
    def call_with_progress(client: _Client, /, *args: P.args, **named: P.kwargs) -> T:
        options = (getattr(client, "options", None), named.get("options"))
        table = str(getattr(client, "path", "") or "").rstrip("/").rpartition("/")[2]
        with working(f"{name} {table}".rstrip(), show=all(map(wants_progress, options))):
            return call(client, *args, **named)

    return call_with_progress


def wants_progress(options: object) -> bool:
    """Whether options leave progress on, whatever else is in them."""
    value = options.get(OPTION, True) if isinstance(options, Mapping) else True
    return str(value).lower() != "false"


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
