"""A write's steps on the timeline: begin, describe, publish.

How concurrent writers are handled: docs/design/concurrency.md.
"""

import logging
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from hoodie.commit.batch_ids import require_new, with_batch
from hoodie.commit.conflict_check import (
    failed_writes,
    made_on,
    pending_rollbacks,
    refuse_during_restore,
    require_no_conflict,
    require_version,
    require_whole,
    with_late_writes,
    withdraw,
)
from hoodie.commit.heartbeat import Heartbeat, remove_heartbeat, silent_writes, start_heartbeat
from hoodie.commit.lost import refuse_lost
from hoodie.commit.markers import Marker, delete_markers, read_markers
from hoodie.commit.rollback_executor import resume_rollback, roll_back
from hoodie.config.locks import FailedWrites
from hoodie.config.metadata import RequestedPartitions
from hoodie.config.write import WriteOperation
from hoodie.errors import (
    HoodieError,
    InstantNotFound,
    ListingStale,
    LockLost,
    LockTimeout,
    OptionIgnored,
    UnsupportedTable,
    WriteConflict,
    clause,
)
from hoodie.formats.timeline.plans import encode_replace_plan
from hoodie.locks import Lock
from hoodie.metadata.changes import KeyChanges, changes_of_commit
from hoodie.metadata.keeping.build import build, missing_partitions, not_built, recorded_settings, why_not_built
from hoodie.metadata.keeping.drop import drop_partitions, warn_of_drop
from hoodie.metadata.keeping.follow import follow_change
from hoodie.metadata.partitions.kind import Change, ReadKeys
from hoodie.model.commit import CommitMetadata, WriteStat, inflight_profile
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import ReplacePlan
from hoodie.plan.conflict import SEEN
from hoodie.plan.write import WritePlan
from hoodie.storage.protocol import meanwhile, redacted_path, remove_with_temporaries
from hoodie.table.properties import recover, update_properties
from hoodie.table.replacement import NOT_YET
from hoodie.table.settings import Executors, Writers
from hoodie.table.state import TableState
from hoodie.timeline.load import load_timeline, moves_rows, remember_commit
from hoodie.timeline.stopped_upgrade import UPGRADED_FOLDER
from hoodie.timeline.timeline import Clock, Timeline, moment_of, new_time, utc_now
from hoodie.timeline.transition import (
    complete,
    completed_content,
    completed_instants,
    create_requested,
    discard_completed,
    inflight_content,
    instant_path,
    to_inflight,
)

_log = logging.getLogger("hoodie.write")


@dataclass(frozen=True, slots=True)
class Transaction:
    """A write that has an instant. Readers see nothing of it before `publish`."""

    state: TableState  # as it was when the instant was taken: what the write changes is found in it
    instant: Instant
    operation: WriteOperation
    writers: Writers = field(default_factory=Writers)
    heart: Heartbeat | None = field(default=None, compare=False, repr=False)

    @property
    def time(self) -> str:
        return self.instant.requested

    @property
    def path(self) -> str:
        """The table's, without secrets."""
        return redacted_path(self.state.storage.root)

    def fall_silent(self) -> None:
        """The write is abandoned, for another process to roll back."""
        if self.heart is not None:
            self.heart.stop()

    def end(self) -> None:
        """The write is published, or rolled back."""
        if self.heart is not None:
            self.heart.end()


def begin(
    state: TableState,
    operation: WriteOperation,
    action: Action,
    clock: Clock = utc_now,
    writers: Writers | None = None,
    read_keys: ReadKeys | None = None,
    executors: Executors | None = None,
) -> Transaction:
    """Create an instant, under the table's lock where there is one; failed writes are rolled back first.

    writers    how it coordinates with other writers; None: it is the only one
    read_keys  for a record index that is built before the write; None: of a table without logs
    executors  as for `build`
    Raises   WriteConflict when another writer takes the same instant, or a restore is under way; LockTimeout
    """
    writers = writers or Writers()
    with writers.lock_on(state.storage) as lock:
        if lock.real:
            now = state.reload()
            require_version(state, now)
            state = now
        refuse_during_restore(state.timeline)
        state = clean_up(state, clock, writers)
        if writers.metadata.build or writers.metadata.remove:
            state = _with_metadata_table(state, writers.metadata, read_keys, executors)
        time = new_time(state.timeline, state.config.timezone, clock)
        content = b""
        if action is Action.REPLACE_COMMIT:
            words = "DELETE_PARTITION" if operation is WriteOperation.DELETE_PARTITION else ""
            content = encode_replace_plan(ReplacePlan(operation=words), state.storage.root)
        # A write without a heartbeat would be considered dead: the heartbeat comes first.
        how = writers.concurrency
        heart = start_heartbeat(state.storage, time, how) if how.policy is FailedWrites.LAZY else None
        try:
            requested = create_requested(state.storage, time, action, content, ahead=True, layout=state.layout)
        except BaseException:
            if heart is not None:
                heart.end()
            raise
    return Transaction(state, requested, operation, writers, heart)


def _with_metadata_table(
    state: TableState, requested: RequestedPartitions, read_keys: ReadKeys | None, executors: Executors | None
) -> TableState:
    """Build the partitions of the metadata table that the table lacks, and remove those that are not to be; the state
    afterwards. Where other writers are at work the next write builds them.

    Warns OptionIgnored of what is not built in a table of its version
    """
    if state.config.replaced_at == NOT_YET:
        return state
    if problem := not_built(state.config, requested.build):
        warnings.warn(OptionIgnored(f"{state.config.name}: {problem}. The write goes on without"), stacklevel=3)
    if state.config.was_upgraded:
        return state
    if unwanted := [name for name in requested.remove if name in state.config.metadata_partitions]:
        drop_partitions(state.storage, state.config, unwanted)
        state = state.reload()
    settings = recorded_settings(set(requested.build) & {*state.config.metadata_partitions}, requested.options)
    if settings.items() - state.config.properties.items():  # for what is written from now on
        update_properties(state.storage, settings)
        state = state.reload()
    if not (new := missing_partitions(state.config, requested.build)):
        recover(state.storage)  # of a writer that died as it had built it
        return state
    if reason := why_not_built(state.timeline):
        _log.info("%s: %s of the metadata table is not built yet: %s", state.config.name, ", ".join(new), reason)
        return state
    try:
        build(state.storage, state.config, state.timeline, new, requested.options, read_keys, executors)
    except UnsupportedTable as problem:  # such as a key in two file groups: the write goes on without
        warn_of_drop(state.storage, f"what was begun of {', '.join(new)}", str(problem))
    return state.reload()


def clean_up(state: TableState, clock: Clock = utc_now, writers: Writers | None = None) -> TableState:
    """Finish interrupted rollbacks and roll back dead writes, by the policy for failed writes; the state afterwards.

    The caller holds the table's lock, where there is one.
    Raises WriteConflict when a writer without a lock does the same concurrently
    """
    if not state.timeline.pending(Action) and UPGRADED_FOLDER not in state.timeline.folders:
        return state  # nothing is under way
    try:
        return _clean_up(state, clock, writers or Writers())
    except (FileNotFoundError, InstantNotFound) as error:
        raise WriteConflict(
            f"another writer is rolling back the same failed writes ({clause(error)}). Try again; several writers "
            "need a lock: hoodie.write.concurrency.mode=optimistic_concurrency_control. If the message stays, "
            "`hoodie check` says what the timeline lacks"
        ) from error


def _clean_up(state: TableState, clock: Clock, writers: Writers) -> TableState:
    state = with_late_writes(state)
    stale = pending_rollbacks(state.timeline)
    for rollback in stale:
        resume_rollback(state.storage, rollback, state.layout)
        _log.info("%s: finished the interrupted rollback %s", state.config.name, rollback.requested)
    if stale:
        state = state.reload()
    for failed in dead_writes(state, writers):
        listing, published = not writers.rollback.using_markers, False
        try:
            at = new_time(state.timeline, state.config.timezone, clock)
            roll_back(state.storage, failed, at, listing=listing, layout=state.layout)
        except WriteConflict:  # it is published: its writer was alive and finished in time
            published = True
        remove_heartbeat(state.storage, failed.requested)
        if not published:
            _log.info("%s: rolled the failed %s %s back", state.config.name, failed.action, failed.requested)
        state = state.reload()
        if published and _pending(state, failed):
            for completed in completed_instants(state.storage, failed, state.layout):
                raise ListingStale(instant_path(completed, state.layout))
    return state


def _pending(state: TableState, instant: Instant) -> bool:
    listed = state.timeline.find(instant.requested, instant.action)
    return listed is not None and listed.state is not State.COMPLETED


def dead_writes(state: TableState, writers: Writers) -> list[Instant]:
    """The pending writes that are to be rolled back, newest first."""
    policy = writers.concurrency.policy
    failed = failed_writes(state.timeline, partial(moves_rows, state.storage, state.timeline))
    if policy is FailedWrites.NEVER or not failed:
        return []
    if policy is not FailedWrites.EAGER:
        silent = silent_writes(state.storage, [instant.requested for instant in failed], writers.concurrency)
        failed = [instant for instant in failed if instant.requested in silent]
    for instant in failed:
        refuse_lost(state, instant)
    return failed


def to_work(transaction: Transaction, plan: WritePlan | None) -> Transaction:
    """Write the workload profile, which rollback and conflict checks read."""
    layout, tasks = transaction.state.layout, plan.tasks if plan else ()
    groups = [(t.group, t.slice.base_instant if t.slice else None, t.inserts, t.updates) for t in tasks]
    content = inflight_content(inflight_profile(transaction.operation.recorded, groups), layout)
    instant = to_inflight(transaction.state.storage, transaction.instant, content, layout=layout)
    return replace(transaction, instant=instant)


def describe(
    transaction: Transaction,
    stats: Sequence[WriteStat],
    replaced: Mapping[str, Collection[str]],
    extra: Mapping[str, str],
) -> CommitMetadata:
    """The metadata of the commit.

    stats     of the winning attempts
    replaced  partition path -> ids of file groups that this write replaces
    extra     the schema as Avro JSON under "schema", and what the user wants kept with the commit
    Raises    HoodieError when statistics contradict each other
    """
    return CommitMetadata(
        operation=transaction.operation.recorded,
        stats={partition: tuple(part) for partition, part in _checked(stats, transaction.time).items()},
        replaced={partition: tuple(sorted(ids)) for partition, ids in replaced.items()},
        extra=dict(extra),
    )


def publish(
    transaction: Transaction, metadata: CommitMetadata, keys: KeyChanges | None = None, *, unseeing: bool = False
) -> CommitMetadata:
    """What the commit says, once `publish_seen` has made the write visible. Raises as it does."""
    return publish_seen(transaction, metadata, keys=keys, unseeing=unseeing)[0]


def publish_seen(
    transaction: Transaction,
    metadata: CommitMetadata,
    *,
    lingering: bool = True,
    keys: KeyChanges | None = None,
    unseeing: bool = False,
) -> tuple[CommitMetadata, TableState | None]:
    """Make the write visible: one exclusive create, after the leftovers of lost task attempts are gone.

    lingering  task attempts may have been given up, and may still be at work, as on executors; tasks of this process
               run once, and leave what they report
    keys       which keys it changes, for the record index; None: that is not known
    unseeing   its rows were made without a look at those of the table: what others add to the same logs meanwhile
               does not matter to it, where its writer asks for no more (NON_BLOCKING_CONCURRENCY_CONTROL)
    returns  what the commit says: the metadata, and which batches the table has; and the table with it, where it was
             looked at once more after that
    Raises   WriteConflict naming the instants and file groups of other writers that stand against it, or when it is
             published already; InstantNotFound when another writer rolled it back; LockTimeout, LockLost; BatchKnown
             when another has written the same batch. Nothing is published then
    """
    storage = transaction.state.storage
    published = metadata.paths
    beside = (
        unseeing and transaction.writers.concurrency.non_blocking and transaction.state.layout.version.logs_of_writes
    )
    with transaction.writers.lock_on(storage) as lock:
        with meanwhile(storage, transaction.state.look_again) as look_again:
            # On remote storage also without such attempts: markers are listed meanwhile, and deleted by name.
            markers = remove_leftovers(transaction, published) if lingering or storage.remote else None
            now = look_again()
        require_version(transaction.state, now)
        require_no_conflict(transaction.state, transaction.instant, metadata, now, alone=not lock.real, beside=beside)
        require_new(now, transaction.writers.batch)
        extra = with_batch(now, transaction.writers.batch, metadata.extra)
        metadata = replace(metadata, extra={**extra, SEEN: made_on(transaction.state.timeline)})
        if transaction.heart is not None:
            transaction.heart.check()
        lock.check()
        if now.config.has_metadata_table:
            follow_change(
                Change(storage, now.config, now.timeline, transaction.time, changes_of_commit(metadata), metadata, keys)
            )
            lock.check()
        layout = transaction.state.layout
        content = completed_content(metadata, transaction.instant.action, layout)
        # `require_no_conflict` looked
        commit = complete(storage, transaction.instant, content, just_listed=True, layout=layout)
        timeline = _confirm(transaction, metadata, lock, beside)
        if commit.completed:
            lock.outlast(moment_of(commit.completed, layout.zone), utc_now)
    after = None if timeline is None else replace(now, timeline=timeline)
    if timeline is not None:
        remember_commit(storage, timeline, commit, metadata, len(content))
    transaction.end()
    with suppress(OSError):  # readers see the write by now, and markers of a completed instant mean nothing
        # Attempts that were given up may have finished a file meanwhile. Later ones see that the write is over.
        if lingering:
            remove_leftovers(transaction, published)
        delete_markers(storage, transaction.time, None if lingering else markers)
    return metadata, after


def _confirm(transaction: Transaction, metadata: CommitMetadata, lock: Lock, beside: bool) -> Timeline | None:
    """See that nobody came between the last look and the publication: this writer may have slept there.

    returns  the timeline as it is now; None where the lock says that nobody came
    Raises LockLost, WriteConflict, InstantNotFound: what was published is withdrawn. Nobody was told that it is
    """
    try:
        if lock.real:
            return _confirm_under(lock, transaction, metadata, beside)
        # Where two writers publish at once, the second sees the first, or both see each other.
        return _look_again(transaction, metadata, alone=True)
    except HoodieError as error:
        storage = transaction.state.storage
        discard_completed(storage, transaction.instant, transaction.state.layout)
        if isinstance(error, InstantNotFound):  # the writer that rolls it back may have looked for files too early
            remove_with_temporaries(storage, sorted(metadata.paths))
        error.add_note(f"Instant {transaction.time} was visible for a moment and is withdrawn.")
        raise


def _confirm_under(lock: Lock, transaction: Transaction, metadata: CommitMetadata, beside: bool) -> Timeline | None:
    try:
        lock.check()
        return None
    except LockLost:
        # A writer that held the lock meanwhile saw this commit or did not: that shows once it is done.
        again = transaction.writers.lock_on(transaction.state.storage)
        if not again.acquire(transaction.writers.lock.wait / 1000):
            raise
        with again.keeping():
            return _look_again(transaction, metadata, alone=False, beside=beside)


def _look_again(transaction: Transaction, metadata: CommitMetadata, *, alone: bool, beside: bool = False) -> Timeline:
    state = transaction.state
    now = replace(state, timeline=load_timeline(state.storage, state.config, before=state.timeline))
    require_no_conflict(
        transaction.state, transaction.instant, metadata, now, alone=alone, published=True, beside=beside
    )
    require_whole(now, transaction.instant)
    return now.timeline


def abandon(transaction: Transaction) -> bool:
    """Roll this failed write back. If that fails too, the next write does it.

    returns  False when there is nothing to roll back: readers see the write, though its writer got no response; or
             another writer has rolled it back
    Raises   LockTimeout
    """
    lock = transaction.writers.lock_on(transaction.state.storage)
    if not lock.acquire(transaction.writers.lock.wait / 1000):
        transaction.fall_silent()
        raise LockTimeout(f"could not acquire the {lock.what}")
    with lock.keeping():
        try:
            state = transaction.state.reload()
            if state.config.version != transaction.state.config.version:
                withdraw(state.storage, transaction.instant, transaction.state.layout)
                return True
            current = state.timeline.find(transaction.time, transaction.instant.action)
            if current is None or current.state is State.COMPLETED:
                return False
            listing = not transaction.writers.rollback.using_markers
            roll_back(
                state.storage,
                transaction.instant,
                new_time(state.timeline, state.config.timezone, utc_now),
                listing=listing,
                layout=state.layout,
            )
        finally:
            transaction.end()
    return True


@contextmanager
def given_up_on_error(transaction: Transaction) -> Iterator[None]:
    """A write that fails in the block is rolled back at once. If that fails too, the error says so."""
    try:
        yield
    except Exception as problem:
        try:
            abandon(transaction)
        except (HoodieError, OSError) as second:
            problem.add_note(f"Rolling instant {transaction.time} back failed; the next write will. ({second})")
        raise
    except BaseException:  # such as an interrupt: the process may live on, and would keep the write's heart beating
        transaction.fall_silent()
        raise


def _checked(stats: Sequence[WriteStat], instant: str) -> dict[str, list[WriteStat]]:
    by_partition: dict[str, list[WriteStat]] = {}
    seen: set[FileGroupId] = set()
    for stat in stats:
        partition = stat.partition or ""
        group = FileGroupId(partition, stat.file_id)
        if group in seen and stat.log_version is None:
            raise HoodieError(f"instant {instant}: file group {group} was written twice; nothing is published")
        if stat.path is None or not stat.path.startswith(f"{partition}/" if partition else ""):
            raise HoodieError(f"instant {instant}: {stat.path} is not in partition {partition!r}; nothing is published")
        seen.add(group)
        by_partition.setdefault(partition, []).append(stat)
    return by_partition


def remove_leftovers(transaction: Transaction, published: Collection[str]) -> tuple[Marker, ...]:
    """Remove files that only markers name, not statistics: of task attempts that lost or were retried. All markers."""
    storage = transaction.state.storage
    markers = read_markers(storage, transaction.time)
    lost = [marker.path for marker in markers if marker.path not in published]
    remove_with_temporaries(storage, lost)
    if lost:
        _log.info("write %s: removed %d files of task attempts that were given up", transaction.time, len(lost))
    return markers
