"""What a rollback or restore means for an index in HBase: it gets entries again, or the table remembers which."""

import logging
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from hoodie.commit.rebuilt import rebuild_commit
from hoodie.commit.rollback_executor import rollback_plan
from hoodie.config.hbase import HBaseOptions
from hoodie.config.options import Options
from hoodie.errors import HoodieError, IndexOutOfDate, IndexUnavailable, InvalidOption, sentence
from hoodie.hbase.index import lost_keys, make_entries, reach
from hoodie.hbase.missed_rollbacks import MissedRollback, forget_missed, record_missed, recorded_instants, uncompleted
from hoodie.hbase.repair import find_again
from hoodie.index.contract import Index, IndexContext
from hoodie.lookup.index_follow import RunRepair, Undone, gone_since, notify_of_rollbacks
from hoodie.model.files import FileGroupId, parse_data_file
from hoodie.model.instant import Action, Instant
from hoodie.model.plans import RollbackPlan
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState, load_state
from hoodie.timeline.timeline import Timeline, layout_of
from hoodie.view.load import data_files, list_partitions

_log = logging.getLogger("hoodie.index")


@contextmanager
def follow(before: TableState, options: Options, undone: Undone, run: RunRepair | None) -> Iterator[None]:
    """Around a rollback or restore: rows that come back get the entries again that they lost.

    Entries of the instants that go count no more, but a row that one of them deleted or moved lost its entry when that
    was published. What is to be done is on the table's storage before anything goes, and is done by the next write
    should this process die.

    Raises   before anything has changed: InvalidOption when the options do not name the index; IndexUnavailable when it
             cannot be reached
    Warns    IndexOutOfDate when the index does not store what it is sent: the table is as it should be, and remembers
    """
    hbase_options = options.read(HBaseOptions)
    missed = _about_to_go(before, options, undone, offline=hbase_options.offline)
    try:
        yield
    except HoodieError:
        _forget_what_stays(before.storage, missed)
        raise
    after = load_state(before.storage)
    rolled_back = gone_since(before, after)
    _forget_what_stays(before.storage, missed)
    index = _make_up(after, options, rolled_back, run, hbase_options)
    if index is not None:
        notify_of_rollbacks(index, rolled_back)


def catch_up(options: Options, before: Timeline, now: IndexContext) -> None:
    """At the begin of a write: put the entries that the index lacks since instants were rolled back by somebody who
    could not reach it, or died. One listing; nothing else unless there are such.

    before  the timeline before the write began; now: the table as it is, dead rollbacks finished
    Raises  IndexUnavailable and others, as `find_again`
    """
    missed = [*uncompleted(recorded_instants(now.storage), now.timeline), *_finished_for_others(before, now)]
    if missed:
        _log.info("%s: the index catches up with %d instants that were rolled back", now.config.name, len(missed))
        find_again(now.storage, options, missed)
        for record in missed:
            forget_missed(now.storage, record.instant)


def _any_group(before: TableState, instant: Instant) -> frozenset[FileGroupId]:
    """The file groups that may have lost keys by a damaged commit: those it wrote to; all, if it replaced any."""
    if instant.action is Action.REPLACE_COMMIT:
        return frozenset(file.group for file in data_files(list_partitions(before.storage)))
    stats = rebuild_commit(before.storage, before.timeline, instant).stats
    return frozenset(FileGroupId(partition, stat.file_id) for partition, part in stats.items() for stat in part)


def _about_to_go(before: TableState, options: Options, undone: Undone, *, offline: bool) -> list[MissedRollback]:
    """See that the index can be reached, and remember what it is going to lack."""
    if not undone:
        return []
    if not offline:
        _require_reachable(before, options, [instant.requested for instant in undone])
    missed = [
        MissedRollback(instant.requested, _any_group(before, instant) if commit is None else lost_keys(commit))
        for instant, commit in undone.items()
    ]
    missed = [record for record in missed if record.groups]
    for record in missed:
        record_missed(before.storage, record)
    return missed


def _require_reachable(before: TableState, options: Options, undone: Collection[str]) -> None:
    what = f"{', '.join(sorted(undone))} cannot be rolled back without the table's index in HBase"
    advice = (
        "Nothing has changed. With hoodie.index.hbase.rollback.offline=true it is rolled back all the same, and the "
        "next write with the index brings that up to date."
    )
    try:
        with reach(options, before.config).client() as client:
            client.check_table()
    except InvalidOption as problem:
        raise InvalidOption(
            f"{what}: {sentence(problem)} Give the options of the table's writes. {advice}"
        ) from problem
    except IndexUnavailable as problem:
        raise IndexUnavailable(f"{what}: {problem} {advice}") from problem


def _forget_what_stays(storage: Storage, missed: Collection[MissedRollback]) -> None:
    """What was remembered of instants that are completed still."""
    if missed:
        due_instants = {record.instant for record in uncompleted(missed, load_state(storage).timeline)}
        for record in missed:
            if record.instant not in due_instants:
                forget_missed(storage, record.instant)


def _make_up(
    after: TableState,
    options: Options,
    rolled_back: Collection[str],
    run: RunRepair | None,
    hbase_options: HBaseOptions,
) -> Index | None:
    """Put what the index lacks now. Returns the index when it is to hear of the instants themselves."""
    missed = uncompleted(recorded_instants(after.storage), after.timeline)
    problem: object = "hoodie.index.hbase.rollback.offline is on."
    try:
        if hbase_options.offline:
            index = None
        else:
            find_again(after.storage, options, missed, run)
            for record in missed:
                forget_missed(after.storage, record.instant)
            missed = ()
            index = make_entries(options, after.config) if hbase_options.rollback_sync and rolled_back else None
    except HoodieError as failed:
        problem, index = failed, None
        if not missed:  # only the entries of the instants themselves stay, which do not count
            missed = [MissedRollback(instant, frozenset()) for instant in rolled_back]
    if missed:
        warnings.warn(
            IndexOutOfDate(
                f"{', '.join(record.instant for record in missed)} rolled back, but the index does not know the "
                f"rows again that came back: {problem} The table remembers: the next write with the index puts their "
                "entries."
            ),
            stacklevel=4,
        )
    return index


def _finished_for_others(before: Timeline, now: IndexContext) -> Iterator[MissedRollback]:
    """Rollbacks that another writer began, and that were finished on the way. One of Hudi's writers remembers nothing
    for us: its target may have been completed."""
    completed = {rollback.requested for rollback in now.timeline.completed({Action.ROLLBACK})}
    for begun in before.pending({Action.ROLLBACK}):
        if begun.requested in completed:  # else it was withdrawn
            plan = rollback_plan(now.storage, begun, layout_of(now.config))
            yield MissedRollback(plan.instant.time, frozenset(_groups(plan)))


def _groups(plan: RollbackPlan) -> Iterator[FileGroupId]:
    for request in plan.requests:
        if request.file_id:
            yield FileGroupId(request.partition, request.file_id)
        for name in request.delete:
            if (file := parse_data_file(request.partition, name, 0)) is not None:
                yield file.group
