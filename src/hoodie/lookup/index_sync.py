"""What a rollback or restore means for an index outside the table: it hears of it, or the table remembers."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from hoodie.commit.rebuilt import read_whole, rebuild
from hoodie.commit.rollback_executor import rollback_plan
from hoodie.config.hbase import HBaseOptions
from hoodie.config.options import Options
from hoodie.errors import HoodieError, IndexOutOfDate, IndexUnavailable, InvalidOption
from hoodie.index import hbase, own
from hoodie.index.contract import Index
from hoodie.index.hbase_mark import told_the_index
from hoodie.index.hbase_missed import Missed, due, forget, remember, remembered
from hoodie.lookup.index_choice import named_index
from hoodie.lookup.index_notify import notify_of_rollbacks
from hoodie.lookup.index_repair import RunRepair, find_again
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileGroupId, parse_data_file
from hoodie.model.instant import WRITES, Action, Instant
from hoodie.model.plans import RollbackPlan
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState, load_state
from hoodie.view.load import data_files, list_partitions

_log = logging.getLogger("hoodie.index")

#: The table before -> requested times of the completed instants that are to go.
Going = Callable[[TableState], Collection[str]]


def _nothing(state: TableState) -> Collection[str]:
    return ()


@contextmanager
def index_follows(
    storage: Storage, options: Options, going: Going = _nothing, run: RunRepair | None = None
) -> Iterator[None]:
    """Around a rollback or restore: an index that keeps something of its own hears which instants are gone.

    HBASE: rows that come back get the entries again that they lost. Those of the instants that go count no more, but a
    row that one of them deleted or moved lost its entry when that was published. What is to be done is on the table's
    storage before anything goes, and is done by the next write should this process die.

    options  name the index, as those of a write do
    going    the completed instants that are meant to go
    run      puts the entries; None: threads of this process
    Raises   before anything has changed: InvalidOption when they name a user's own index that cannot be made, or an
             index in HBase that the instants went to is not named; IndexUnavailable when it cannot be reached
    Warns    IndexOutOfDate when the index does not store what it is sent: the table is as it should be, and remembers
    """
    before = load_state(storage)
    named = named_index(before, options)
    index = own.make(named.name, options, before.config) if named.own else None
    meant = going(before)
    instants = [each for each in before.timeline.commits if each.requested in meant]
    said = {each: read_whole(storage, before.timeline, each) for each in instants}
    in_hbase = named.name == hbase.NAME or any(map(told_the_index, _extras(before, said)))
    hbase_options = options.read(HBaseOptions)
    missed = _about_to_go(before, options, said, offline=hbase_options.offline) if in_hbase else []
    try:
        yield
    except HoodieError:
        _forget_what_stays(storage, missed)
        raise
    if index is None and not in_hbase:
        return
    after = load_state(storage)
    writes = [instant for instant in reversed(before.timeline.instants) if instant.action in WRITES]
    gone = [each.requested for each in writes if after.timeline.find(each.requested, each.action) is None]
    if in_hbase:
        _forget_what_stays(storage, missed)
        index = _make_up(after, options, gone, run, hbase_options)
    if index is not None:
        notify_of_rollbacks(index, gone)


def catch_up(before: TableState, now: TableState, index: Index, options: Options) -> None:
    """At the begin of a write with an index in HBase: put the entries that it lacks since instants were rolled back by
    somebody who could not reach it, or died. One listing; nothing else unless there are such.

    before  the table as it was before the write began; now: as it is, dead rollbacks finished
    Raises  IndexUnavailable and others, as `find_again`
    """
    if index.name != hbase.NAME:
        return
    storage = now.storage
    missed = [*due(remembered(storage), now.timeline), *_finished_for_others(before, now)]
    if missed:
        _log.info("%s: the index catches up with %d instants that were rolled back", now.config.name, len(missed))
        find_again(storage, options, missed)
        for each in missed:
            forget(storage, each.instant)


def _extras(before: TableState, said: Mapping[Instant, CommitMetadata | None]) -> Iterator[Mapping[str, str]]:
    """What users and indexes kept with the instants; for a damaged one, with all commits: it went where they did."""
    instants = before.timeline.commits if None in said.values() else list(said)
    commits = (read_whole(before.storage, before.timeline, instant) for instant in instants)
    return (commit.extra for commit in commits if commit is not None)


def _any_group(before: TableState, instant: Instant) -> frozenset[FileGroupId]:
    """The file groups that may have lost keys by a damaged commit: those it wrote to; all, if it replaced any."""
    if instant.action is Action.REPLACE_COMMIT:
        return frozenset(file.group for file in data_files(list_partitions(before.storage)))
    stats = rebuild(before.storage, before.timeline, instant).stats
    return frozenset(FileGroupId(partition, stat.file_id) for partition, part in stats.items() for stat in part)


def _about_to_go(
    before: TableState, options: Options, said: Mapping[Instant, CommitMetadata | None], *, offline: bool
) -> list[Missed]:
    """See that the index can be reached, and remember what it is going to lack."""
    if not said:
        return []
    if not offline:
        _require_reachable(before, options, [instant.requested for instant in said])
    missed = [
        Missed(instant.requested, _any_group(before, instant) if commit is None else hbase.lost_keys(commit))
        for instant, commit in said.items()
    ]
    missed = [each for each in missed if each.groups]
    for each in missed:
        remember(before.storage, each)
    return missed


def _require_reachable(before: TableState, options: Options, said: Collection[str]) -> None:
    what = f"{', '.join(sorted(said))} cannot be rolled back without the table's index in HBase"
    advice = (
        "Nothing has changed. With hoodie.index.hbase.rollback.offline=true it is rolled back all the same, and the "
        "next write with the index brings that up to date."
    )
    try:
        with hbase.reach(options, before.config).client() as client:
            client.check_table()
    except InvalidOption as problem:
        raise InvalidOption(f"{what}: {problem} Give the options of the table's writes. {advice}") from problem
    except IndexUnavailable as problem:
        raise IndexUnavailable(f"{what}: {problem} {advice}") from problem


def _forget_what_stays(storage: Storage, missed: Collection[Missed]) -> None:
    """What was remembered of instants that are completed still."""
    if missed:
        gone = {each.instant for each in due(missed, load_state(storage).timeline)}
        for each in missed:
            if each.instant not in gone:
                forget(storage, each.instant)


def _make_up(
    after: TableState, options: Options, gone: Collection[str], run: RunRepair | None, given: HBaseOptions
) -> Index | None:
    """Put what the index lacks now. Returns the index when it is to hear of the instants themselves."""
    missed = due(remembered(after.storage), after.timeline)
    problem: object = "hoodie.index.hbase.rollback.offline is on."
    try:
        if given.offline:
            index = None
        else:
            find_again(after.storage, options, missed, run)
            for each in missed:
                forget(after.storage, each.instant)
            missed = ()
            index = hbase.make(options, after.config) if given.rollback_sync and gone else None
    except HoodieError as failed:
        problem, index = failed, None
        if not missed:  # only the entries of the instants themselves stay, which do not count
            missed = [Missed(instant, frozenset()) for instant in gone]
    if missed:
        warnings.warn(
            IndexOutOfDate(
                f"{', '.join(each.instant for each in missed)} rolled back, but the index does not know the rows again "
                f"that came back: {problem} The table remembers: the next write with the index puts their entries."
            ),
            stacklevel=4,
        )
    return index


def _finished_for_others(before: TableState, now: TableState) -> Iterator[Missed]:
    """Rollbacks that another writer began, and that were finished on the way. One of Hudi's writers remembers nothing
    for us: its target may have been completed."""
    done = {each.requested for each in now.timeline.completed({Action.ROLLBACK})}
    for begun in before.timeline.pending({Action.ROLLBACK}):
        if begun.requested in done:  # else it was withdrawn
            plan = rollback_plan(now.storage, begun, now.layout)
            yield Missed(plan.instant.time, frozenset(_groups(plan)))


def _groups(plan: RollbackPlan) -> Iterator[FileGroupId]:
    for request in plan.requests:
        if request.file_id:
            yield FileGroupId(request.partition, request.file_id)
        for name in request.delete:
            if (file := parse_data_file(request.partition, name, 0)) is not None:
                yield file.group
