"""Cleaning: files that no read, savepoint or pending plan still needs are deleted, by a plan on the timeline.

The next clean finishes one that was interrupted, by its plan: each step is idempotent.
docs/design/cleaning.md says what differs from Hudi's. Source: docs/format/table-services.md 1.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from hoodie.config.services import CleanOptions, CleanPolicy
from hoodie.config.table import require_writable
from hoodie.display.progress import counted
from hoodie.display.render import Displayed
from hoodie.display.summary import ColumnKind, ResultSummary, ShownColumn, summary
from hoodie.errors import CorruptFile, WriteConflict
from hoodie.formats.timeline.services import (
    decode_clean_metadata,
    decode_clean_plan,
    encode_clean_metadata,
    encode_clean_plan,
)
from hoodie.merge.payloads import KNOWN_PAYLOADS
from hoodie.metadata.changes import of_clean
from hoodie.metadata.keeping.follow import follow_change
from hoodie.metadata.partitions.kind import Change
from hoodie.model.files import METAFILES, parse_data_file
from hoodie.model.instant import WRITES, Action, Instant, State
from hoodie.model.plans import CleanedPartition, CleanMetadata, CleanPlan
from hoodie.plan.clean import (
    SAVEPOINTS,
    CleanScope,
    commits_since,
    earliest_retained,
    emptied,
    files_to_delete,
    looked_up_to,
    scope_of,
    superseding,
)
from hoodie.recovery.savepoint import savepointed_files
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage, in_threads, is_temporary, join, rewrite, split
from hoodie.table.partition_metadata import ensure_partition
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state, on_newest
from hoodie.timeline.archive import archive_files
from hoodie.timeline.load import Memory, load_timeline, pending_plans, read_commit
from hoodie.timeline.timeline import Clock, new_time, utc_now
from hoodie.timeline.transition import complete, create_requested, remove_pending, to_inflight
from hoodie.view.load import load_view
from hoodie.writing.write import writable_state

_log = logging.getLogger("hoodie.services")

_THREADS = 16


@dataclass(frozen=True, slots=True, repr=False)
class CleanResult(Displayed):
    """What a clean deleted, or would delete.

    instant     of the clean; "" when there was nothing to do
    earliest    the oldest commit as of which reads still work; "": the policy counts versions
    files       names of files by partition path, without those that were already missing
    partitions  partition paths that were removed whole
    finished    interrupted cleans that were finished first
    dry_run     nothing was changed
    """

    instant: str = ""
    policy: str = ""
    earliest: str = ""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """The files, relative to the base path."""
        return tuple(join(partition, name) for partition, names in self.files.items() for name in names)

    def __str__(self) -> str:
        verb = "would delete" if self.dry_run else "deleted"
        retention = f", keeping what reads as of {self.earliest} and later need" if self.earliest else ""
        whole = f", {len(self.partitions)} of them whole" if self.partitions else ""
        lines = [f"clean {self.instant or '(nothing to do)'}: {verb} {len(self.paths)} files in {len(self.files)} "]
        lines[0] += f"partitions{whole}{retention}"
        if self.finished:
            lines.append(
                f"  {'would finish' if self.dry_run else 'finished'} {', '.join(self.finished)}, interrupted before"
            )
        lines += [f"  {path}" for path in self.paths[:20]]
        lines += [f"  and {len(self.paths) - 20} more"] if len(self.paths) > 20 else []
        return "\n".join(lines)

    def _summary(self) -> ResultSummary:
        rows = ((partition, len(names)) for partition, names in self.files.items())
        columns = ("partition", ShownColumn("files", ColumnKind.COUNT))
        return summary(str(self).partition("\n")[0], columns, rows, len(self.files), compact=True)


@typed_errors()
def clean(
    storage: Storage,
    settings: Settings,
    *,
    dry_run: bool = False,
    automatic: bool = False,
    state: TableState | None = None,
    clock: Clock = utc_now,
) -> CleanResult:
    """Finish interrupted cleans, then delete what the policy does not keep.

    dry_run    only say what would be deleted
    automatic  only when `hoodie.clean.max.commits` says so; by versions look only where commits replaced files
    state      the table's, by `service_state`, if it was loaded just now
    Raises     WriteConflict while a restore is pending; LockTimeout, LockLost; UnsupportedTable; CorruptFile;
               InvalidOption. A clean that was planned by then is finished by the next one
    """
    state = state or service_state(storage, settings, dry_run)
    state, interrupted = on_newest(state, lambda newest: (newest, interrupted_cleans(newest)))
    how = settings.cleaning_of(state.config)
    if not dry_run:
        for instant in interrupted:
            resume_clean(storage, instant, settings)
    finished = tuple(instant.requested for instant in interrupted)
    with settings.writers.lock_on(storage) as lock:
        if interrupted or lock.real:
            state = load_state(storage)
        last = last_clean(state)
        if automatic and commits_since(state.timeline, last) < how.every:
            return CleanResult(finished=finished)
        time = new_time(state.timeline, state.config.timezone, clock)
        plan, recorded = make_plan(state, how, last, time, automatic=automatic)
        result = CleanResult("", plan.policy, plan.earliest[0] if plan.earliest else "", plan.files, plan.partitions)
        result = replace(result, finished=finished, dry_run=dry_run)
        if dry_run or not (plan.files or recorded):
            return result
        lock.check()
        content = encode_clean_plan(plan, storage.root)
        requested = create_requested(storage, time, Action.CLEAN, content, ahead=True, layout=state.layout)
    _log.info("%s: clean %s begins: %d files", state.config.name, time, sum(map(len, plan.files.values())))
    metadata = execute_clean(storage, requested, plan, settings, state, just_requested=True)
    deleted_files = {partition: part.deleted for partition, part in metadata.partitions.items() if part.deleted}
    whole = tuple(partition for partition, part in metadata.partitions.items() if part.removed)
    return replace(result, instant=time, files=deleted_files, partitions=whole)


def service_state(storage: Storage, settings: Settings, dry_run: bool) -> TableState:
    """The state of a table that a service is to work on.

    Raises UnsupportedTable when the table must not be written; WriteConflict while a restore is pending
    """
    if dry_run:  # nothing changes: a metadata table that a write would remove stays
        state = load_state(storage)
        require_writable(state.config, KNOWN_PAYLOADS)
    else:
        state = writable_state(storage, settings, places_keys=False)
    if restores := state.timeline.pending({Action.RESTORE}):
        raise WriteConflict(
            f"the restore {restores[0].requested} is pending and needs its files. Finish it by restoring again."
        )
    return state


def interrupted_cleans(state: TableState) -> tuple[Instant, ...]:
    """The pending cleans, and the newest completed one if its file is empty: Hudi 0.15 died while it published it, and
    would follow its plan again, folders of partitions included that were written to since."""
    newest = state.timeline.completed({Action.CLEAN})[-1:] if last_clean(state) is None else ()
    begun = [replace(clean, state=at, completed="") for clean in newest for at in (State.REQUESTED, State.INFLIGHT)]
    has_plan = {split(state.layout.path(instant))[1] for instant in begun} <= state.timeline.files
    return (*state.timeline.pending({Action.CLEAN}), *(newest if has_plan else ()))


def last_clean(state: TableState) -> CleanMetadata | None:
    """What the newest completed clean did; None when there is none, or its file is empty."""
    for instant in reversed(state.timeline.completed({Action.CLEAN})):
        return CLEANS.get_or_read(state.storage, state.timeline, instant, partial(_read_clean, state, instant))
    return None


#: What completed cleans did: of up to 8 MiB of their files.
CLEANS: Memory[CleanMetadata | None] = Memory(8 * 1024 * 1024)


def _read_clean(state: TableState, instant: Instant) -> CleanMetadata | None:
    path = state.timeline.path(instant)
    data = state.storage.read(path)
    return decode_clean_metadata(data, path) if data else None


# --- planning ---


def make_plan(
    state: TableState, how: CleanOptions, last: CleanMetadata | None, time: str, *, automatic: bool
) -> tuple[CleanPlan, bool]:
    """What a clean at an instant deletes, and whether it is recorded even if that is nothing."""
    timeline, storage = state.timeline, state.storage
    savepoints = [instant.requested for instant in timeline.completed({Action.SAVEPOINT})]
    earliest = earliest_retained(timeline, how, time)
    scope = CleanScope(None)
    if how.incremental:
        all_active = last is not None or not archive_files(storage, state.config)
        scope = scope_of(timeline, how, earliest, last, savepoints, all_active=all_active)
    elif earliest is None and how.policy is not CleanPolicy.KEEP_LATEST_FILE_VERSIONS:
        scope = CleanScope(())
    partitions: set[str] | None = None
    if scope.commits is not None and (automatic or how.policy is not CleanPolicy.KEEP_LATEST_FILE_VERSIONS):
        partitions = set()
        for instant in scope.commits:
            partitions |= superseding(read_commit(storage, timeline, instant))
    files: dict[str, tuple[str, ...]] = {}
    whole: tuple[str, ...] = ()
    if partitions is None or partitions:
        view = load_view(storage, timeline, state.config, partitions)
        files = files_to_delete(view, how, earliest, pending_files(state), savepointed_files(state))
        whole = emptied(view, files)
    plan = CleanPlan(
        policy=how.policy.value,
        earliest=None if earliest is None else (earliest.requested, earliest.action.value, State.COMPLETED.name),
        last_completed=looked_up_to(timeline, how),
        files=files,
        partitions=whole,
        extra={SAVEPOINTS: ",".join(savepoints)} if savepoints else {},
    )
    return plan, how.incremental and scope.worth_a_record


def pending_files(state: TableState) -> frozenset[str]:
    """Paths of the files that pending compactions, log compactions and clusterings are to read."""
    plans = pending_plans(state.storage, state.timeline)
    return frozenset(path for slices in plans.values() for slice_ in slices for path in slice_.paths)


# --- deleting ---


def resume_clean(storage: Storage, instant: Instant, settings: Settings) -> CleanMetadata | None:
    """Finish a clean that another process began. One without a plan, of a writer that died, is removed: None.

    A completed one, whose file is empty, is published again.

    Raises CorruptFile
    """
    state = load_state(storage)
    path = state.layout.path(Instant(instant.requested, Action.CLEAN, State.REQUESTED))
    try:
        data = storage.read(path)
    except FileNotFoundError:  # the inflight file has the plan as well
        path = state.layout.path(Instant(instant.requested, Action.CLEAN, State.INFLIGHT))
        data = storage.read(path) if storage.exists(path) else b""
    if not data:
        remove_pending(storage, instant, state.layout)
        return None
    return execute_clean(storage, instant, decode_clean_plan(data, path), settings, state)


def execute_clean(
    storage: Storage,
    instant: Instant,
    plan: CleanPlan,
    settings: Settings,
    state: TableState,
    *,
    just_requested: bool = False,
) -> CleanMetadata:
    """Do what a clean's plan says. Two processes may do it at once: one of them publishes the end.

    state           the table's: of its settings, only; the timeline is listed anew
    just_requested  as for `to_inflight`
    """
    started = time.monotonic()
    _require_data_files(plan, state.layout.path(Instant(instant.requested, Action.CLEAN, State.REQUESTED)))
    begun = Instant(instant.requested, Action.CLEAN, State.INFLIGHT)
    if instant.state is State.REQUESTED:
        with suppress(WriteConflict):  # another process goes by the same plan
            content = encode_clean_plan(plan, storage.root) if state.layout.version.clean_has_plan else b""
            to_inflight(storage, instant, content, just_requested=just_requested, layout=state.layout)
    # Savepoints look for plans once they are on the timeline, and plans for savepoints: one of the two sees the other.
    now = load_timeline(storage, state.config, before=state.timeline)
    if just_requested and any(i.requested == begun.requested and i.action is not Action.CLEAN for i in now.instants):
        remove_pending(storage, begun, state.layout)
        raise WriteConflict(f"another process took instant {begun.requested} at the same moment; nothing was cleaned")
    saved = savepointed_files(replace(state, timeline=now))
    partitions = _delete(storage, plan, saved, listed=just_requested)
    for partition in _remove_partitions(storage, plan.partitions, instant.requested):
        cleaned_partition = partitions.get(partition, CleanedPartition(policy=plan.policy))
        partitions[partition] = replace(cleaned_partition, removed=True)
    metadata = CleanMetadata(
        start=instant.requested,
        millis=int((time.monotonic() - started) * 1000),
        earliest=plan.earliest[0] if plan.earliest else "",
        last_completed=plan.last_completed,
        partitions=partitions,
        extra=plan.extra,
    )
    _log.info(
        "%s: clean %s deleted %d files in %.3f s",
        state.config.name,
        instant.requested,
        metadata.files_deleted,
        metadata.millis / 1000,
    )
    with settings.writers.lock_on(storage) as lock:
        lock.check()
        with suppress(WriteConflict):  # the other came first, with the same outcome
            if state.config.has_metadata_table:
                _tell_metadata_table(state, begun, metadata, saved)
                lock.check()
            content = encode_clean_metadata(metadata)
            if instant.state is State.COMPLETED:  # in its place: without the file the plan would be pending
                rewrite(storage, state.timeline.path(instant), content)
            else:
                complete(storage, begun, content, ahead=True, layout=state.layout)
    return metadata


def _tell_metadata_table(state: TableState, begun: Instant, metadata: CleanMetadata, saved: frozenset[str]) -> None:
    """Write to the metadata table what is gone, unless another process has completed the clean meanwhile."""
    now = state.look_again()
    current = now.timeline.find(begun.requested, Action.CLEAN)
    if current is None or current.state is not State.COMPLETED:
        saved_names = {split(path)[1] for path in saved}
        follow_change(Change(state.storage, now.config, now.timeline, begun.requested, of_clean(metadata, saved_names)))


def _require_data_files(plan: CleanPlan, path: str) -> None:
    """A plan, at a path, may come from any writer: only data files are deleted for it."""
    for partition, names in plan.files.items():
        for name in names:
            if partition.split("/")[0] == ".hoodie" or parse_data_file(partition, name, 0) is None:
                raise CorruptFile(path, f"a plan to delete {join(partition, name)}, which is not a data file")


def _delete(storage: Storage, plan: CleanPlan, saved: frozenset[str], *, listed: bool) -> dict[str, CleanedPartition]:
    """listed  the plan is of files that were listed just now, so they are there"""
    paths = [join(partition, name) for partition, names in plan.files.items() for name in names]
    paths = [path for path in paths if path not in saved]

    def remove(path: str) -> bool:
        if not (listed and storage.remote):
            return storage.delete(path)
        storage.discard(path)
        return True

    was_there = in_threads(counted(remove, len(paths), "file"), paths, _THREADS)
    deleted = {path for path, existed in zip(paths, was_there, strict=True) if existed}
    return {
        partition: CleanedPartition(
            policy=plan.policy,
            planned=names,
            deleted=tuple(name for name in names if join(partition, name) in deleted),
            failed=tuple(name for name in names if join(partition, name) not in deleted),
        )
        for partition, names in plan.files.items()
    }


def _remove_partitions(storage: Storage, partitions: Sequence[str], clean: str) -> list[str]:
    """Remove the metafiles of emptied folders, unless a writer is using them. Returns the removed ones.

    A writer puts the metafile into a folder before its first file there, if it is missing. One that began when it still
    existed gets it back. Folders themselves stay where the storage has them: a file may be about to be written.
    """
    empty: dict[str, list[str]] = {}
    for partition in partitions:
        names = [entry.name for entry in storage.list(partition)]
        if all(name in METAFILES or _is_litter(name) for name in names):
            empty[partition] = sorted(names, key=lambda name: name in METAFILES)
        elif METAFILES.isdisjoint(names) and any(parse_data_file(partition, name, 0) for name in names):
            ensure_partition(storage, partition, clean)  # an interrupted run of this clean removed it
    if not empty or _writes_since(storage, clean):
        return []
    for partition, names in empty.items():
        for name in names:
            storage.delete(join(partition, name))
    if _writes_since(storage, clean):
        for partition in empty:
            ensure_partition(storage, partition, clean)
        return []
    return list(empty)


def _writes_since(storage: Storage, clean: str) -> bool:
    return any(
        instant.action in WRITES and (instant.state is not State.COMPLETED or instant.requested > clean)
        for instant in load_state(storage).timeline.instants
    )


def _is_litter(name: str) -> bool:
    """A Hadoop checksum, or a temporary file of a dead writer."""
    return (name.startswith(".") and name.endswith(".crc")) or is_temporary(name)
