"""Repairing what an examination found, as far as it is safe without a person: what a write would do anyway, and
removing files that no instant, marker, plan or savepoint can still need.
"""

from collections.abc import Callable, Iterable

from hoodie.commit.lost import refuse_lost
from hoodie.commit.rollback_executor import resume_rollback, roll_back
from hoodie.doctor.examine import GRACE, examine
from hoodie.doctor.findings import Finding, Mend, Remedies, Remedy
from hoodie.doctor.key_columns import rewrite_history
from hoodie.formats.timeline.archive_log import with_java_headers
from hoodie.locks import Lock
from hoodie.locks.clock import LOCKS
from hoodie.metadata.keeping.drop import drop_metadata
from hoodie.model.files import METAFILE
from hoodie.model.instant import Action, State
from hoodie.storage.protocol import Storage, join, rewrite
from hoodie.table.downgraded_timeline import finish_downgrade
from hoodie.table.partition_metadata import ensure_partition
from hoodie.table.properties import recover, rewrite_checksum
from hoodie.table.settings import Writers
from hoodie.table.state import load_state
from hoodie.timeline.stopped_upgrade import move_back
from hoodie.timeline.timeline import Clock, new_time, utc_now
from hoodie.view.load import partition_depth

#: What has to be right before the table can be looked at.
_FIRST = (Mend.RECOVER, Mend.CHECKSUM, Mend.MOVE_BACK, Mend.FINISH)


def plan_repair(findings: Iterable[Finding], *, checksum: bool = False) -> Remedies:
    """The remedies of a repair, in order.

    checksum  whether hoodie.properties with a wrong checksum gets a right one: only where its names are known to be
              right
    """
    remedies = {f.remedy for f in findings if f.remedy is not None}
    chosen = [remedy for remedy in remedies if checksum or remedy.mend is not Mend.CHECKSUM]
    newest_first = sorted(chosen, reverse=True)
    return Remedies(sorted(newest_first, key=lambda remedy: _ORDER.index(remedy.mend)))


def repair(
    storage: Storage,
    *,
    writers: Writers | None = None,
    dry_run: bool = True,
    checksum: bool = False,
    grace: float = GRACE,
    now: int | None = None,
    clock: Clock = utc_now,
) -> Remedies:
    """Repair what is safe to repair; returns what was done, or (dry run) would be.

    The table is examined again before anything is done, and after its settings were repaired. All of it happens under
    the table's lock where the writers have one; without one the caller must ensure that no writer is active.

    writers  `hoodie.write.lock.*` as the table's writers have them
    grace, now  as `check` takes them
    Raises   TableNotFound; UnsupportedTable; CorruptFile where a rollback cannot be planned; nothing is half done: the
             next repair resumes each remedy. InvalidOption; LockTimeout: nothing has changed; LockLost
    """
    lock = (writers or Writers()).lock_on(storage)
    if dry_run:
        return plan_repair(examine(storage, rows=False, metafiles=True, grace=grace, now=now), checksum=checksum)
    with lock:
        return _repair(storage, lock, checksum=checksum, grace=grace, now=now, clock=clock)


def _repair(storage: Storage, lock: Lock, *, checksum: bool, grace: float, now: int | None, clock: Clock) -> Remedies:
    applied: list[Remedy] = []

    def plan(checksum: bool) -> list[Remedy]:
        planned = plan_repair(examine(storage, rows=False, metafiles=True, grace=grace, now=now), checksum=checksum)
        # We hold the table's lock: its file is not a leftover.
        return [remedy for remedy in planned if not (lock.real and remedy.target.startswith(f"{LOCKS}/table."))]

    def mend(remedy: Remedy) -> None:
        lock.check()
        _MEND[remedy.mend](storage, remedy.target, clock)
        applied.append(remedy)

    planned = plan(checksum)
    settings = [remedy for remedy in planned if remedy.mend in _FIRST]
    for remedy in settings:
        mend(remedy)
    for remedy in plan(False) if settings else planned:
        mend(remedy)
    for remedy in plan(False) if applied else ():  # what only shows once something else is gone
        if remedy not in applied:
            mend(remedy)
    return Remedies(applied)


def _metafile(storage: Storage, target: str, clock: Clock) -> None:
    for entry in storage.list(target):
        if entry.name == METAFILE and partition_depth(storage.read(join(target, METAFILE))) is None:
            storage.delete(join(target, METAFILE))
    ensure_partition(storage, target, load_state(storage).timeline.newest_commit)


def _archive(storage: Storage, target: str, clock: Clock) -> None:
    content = with_java_headers(storage.read(target), target)
    if content is not None:
        rewrite(storage, target, content)


def _resume(storage: Storage, target: str, clock: Clock) -> None:
    state = load_state(storage)
    rollback = state.timeline.find(target, Action.ROLLBACK)
    if rollback is not None and rollback.state is not State.COMPLETED:
        resume_rollback(storage, rollback, state.layout)


def _roll_back(storage: Storage, target: str, clock: Clock) -> None:
    state = load_state(storage)
    instants = [i for i in state.timeline.pending() if i.requested == target]
    for failed in instants:
        refuse_lost(state, failed)
        at = new_time(state.timeline, state.config.timezone, clock)
        roll_back(storage, failed, at, layout=state.layout)


#: Settings first: nothing else can be loaded without them. Then partitions; then writes, whose rollback removes files
#: too.
_MEND: dict[Mend, Callable[[Storage, str, Clock], object]] = {
    Mend.RECOVER: lambda storage, target, clock: recover(storage),
    Mend.CHECKSUM: lambda storage, target, clock: rewrite_checksum(storage, clock()),
    Mend.MOVE_BACK: lambda storage, target, clock: move_back(storage),
    Mend.FINISH: lambda storage, target, clock: finish_downgrade(storage, load_state(storage).config),
    Mend.METADATA: lambda storage, target, clock: drop_metadata(storage),
    Mend.COLUMNS: lambda storage, target, clock: rewrite_history(load_state(storage)),
    Mend.METAFILE: _metafile,
    Mend.ARCHIVE: _archive,
    Mend.RESUME: _resume,
    Mend.ROLL_BACK: _roll_back,
    Mend.DELETE: lambda storage, target, clock: storage.delete(target),
    Mend.DELETE_TREE: lambda storage, target, clock: storage.delete_tree(target),
}
_ORDER = list(_MEND)
