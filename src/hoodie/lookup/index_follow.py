"""An index that keeps something of its own hears which instants a rollback or restore undoes, and can be made anew."""

import os
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from hoodie.commit.rebuilt import read_whole
from hoodie.config.write import IndexType
from hoodie.errors import IndexOutOfDate, InvalidOption
from hoodie.index import own
from hoodie.index.choose import OUTSIDE, make_index, package
from hoodie.index.contract import Index, Rebuilt
from hoodie.lookup.index_choice import named_index
from hoodie.model.commit import CommitMetadata
from hoodie.model.instant import WRITES, Instant
from hoodie.storage.protocol import Storage, in_threads
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state
from hoodie.timeline.timeline import Timeline


def notify_rolled_back(index: Index, before: Timeline, now: Timeline) -> None:
    """Tell the index of writes that were pending before, and that the beginning of another has rolled back."""
    dead = [instant for instant in before.pending() if now.find(instant.requested, instant.action) is None]
    notify_of_rollbacks(index, [instant.requested for instant in dead])


def notify_of_rollbacks(index: Index, instants: Iterable[str]) -> None:
    """Tell the index of instants that were rolled back. An error becomes a warning: the rollback stands."""
    for instant in instants if index.rolled_back is not None else ():
        assert index.rolled_back is not None
        try:
            index.rolled_back(instant)
        except Exception as problem:  # of whatever kind a user's own index raises
            warnings.warn(
                IndexOutOfDate(f"{instant} is rolled back, but the index {index.name} does not take that: {problem}"),
                stacklevel=2,
            )


#: In the extra metadata of a commit: its keys went to the index of this name, outside the table.
_SEEN = re.compile(r"hoodie\.index\.(\w+)\.seen")
#: The table before -> requested times of the completed instants that are to go.
Going = Callable[[TableState], Collection[str]]
#: Completed instants that are to go, with what they say of themselves; None: that is damaged.
Undone = Mapping[Instant, CommitMetadata | None]


@dataclass(frozen=True, slots=True)
class RepairJob:
    """Entries of an index outside the table that rows need again.

    put        what a task does: how many entries it put; picklable
    tasks      one for each file slice
    on_driver  whether it is small enough for threads of the driver, by the options for writes
    """

    put: Callable[[Any], int]
    tasks: tuple[Any, ...]
    on_driver: bool


#: Carries the tasks of a job out: how many entries each put.
RunRepair = Callable[[RepairJob], Iterable[int]]


def repair_near(job: RepairJob) -> list[int]:
    """Carry the tasks out by a thread a core. The first failure is raised once the tasks that had begun have ended."""
    return in_threads(job.put, job.tasks, os.cpu_count() or 1)


@contextmanager
def index_follows(
    storage: Storage, settings: Settings, going: Going = lambda state: (), run: RunRepair | None = None
) -> Iterator[None]:
    """An index of the user's own is told of the instants that are gone. The package of one that is kept outside the
    table has `follow(before, options, undone, run)`, a context manager that is around all of it: before, the table;
    undone, an `Undone`. It is asked where the options name the index, or a commit that is to go says that its keys
    went there.

    settings name the index, as those of a write do
    going    the completed instants that are meant to go
    run      puts entries again; None: threads of this process
    Raises   before anything has changed: InvalidOption when they name a user's own index that cannot be made; what the
             package's `follow` raises
    """
    before = load_state(storage)
    named = named_index(before, settings)
    index = own.make_own(named.name, settings.options, before.config) if named.own else None
    meant = going(before)
    instants = [instant for instant in before.timeline.commits if instant.requested in meant]
    undone = {instant: read_whole(storage, before.timeline, instant) for instant in instants}
    outside = {named.name, *_indexes_of_commits(before, undone)}
    with ExitStack() as stack:
        for kind in OUTSIDE:
            if kind in outside:
                stack.enter_context(package(kind).follow(before, settings.options, undone, run))
        yield
    if index is not None:
        notify_of_rollbacks(index, gone_since(before, load_state(storage)))


def gone_since(before: TableState, after: TableState) -> list[str]:
    """Requested times of the writes that are gone, newest first."""
    writes = [instant for instant in reversed(before.timeline.instants) if instant.action in WRITES]
    return [instant.requested for instant in writes if after.timeline.find(instant.requested, instant.action) is None]


def _indexes_of_commits(before: TableState, undone: Undone) -> Iterator[str]:
    """The indexes that the keys of these commits went to; for a damaged one, of all commits: it went where they did."""
    instants = before.timeline.commits if None in undone.values() else list(undone)
    for commit in (read_whole(before.storage, before.timeline, instant) for instant in instants):
        for key in commit.extra if commit is not None else ():
            if said := _SEEN.fullmatch(key):
                yield said[1].upper()


def rebuild_index(storage: Storage, settings: Settings, *, mend_doubled: bool = False) -> Rebuilt:
    """Put an entry for each row, and remove entries without a row. The table is only read, except with `mend_doubled`.

    settings      of a write, which name the index and say how it is reached
    mend_doubled  delete the rows of keys that are in several file groups, all but the newest of each: by the table's
                  ordering columns, then by the instant that wrote it. One commit
    Raises        InvalidOption when the index keeps nothing outside the table, or cannot be reached by the options;
                  others as the index's own `rebuild`
    """
    state = load_state(storage)
    named = named_index(state, settings)
    if named.own:
        index = own.make_own(named.name, settings.options, state.config)
    elif named.name in OUTSIDE or not named.name:
        index = make_index(IndexType(named.name or OUTSIDE[0]), settings.options, state.config)
    else:
        index = None
    if index is None or index.rebuild is None:
        raise InvalidOption(f"the index {named.name} keeps nothing outside the table: there is nothing to rebuild")
    return index.rebuild(storage, mend_doubled)
