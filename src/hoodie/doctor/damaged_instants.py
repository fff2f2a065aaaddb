"""Instant files that are empty or cut short: what to do about each, by its action and state.

Nothing is deleted that a plan, a reader or a rollback still needs, nor before it is old enough to be no live writer's.
"""

from collections.abc import Collection, Iterator, Mapping

from hoodie.display.summary import count_text
from hoodie.doctor.findings import Fault, Finding, Mend, Remedy, Scene, Severity
from hoodie.model.files import LogFile
from hoodie.model.instant import COMMITS, Action, Instant, State
from hoodie.storage.protocol import Entry, join
from hoodie.timeline.load import clustering_inputs
from hoodie.view.load import older_file

_COPY = "restore it from a copy of the table"
COMPACTIONS = (Action.COMPACTION, Action.LOG_COMPACTION)
#: Their plan is made anew, or what they were to undo is pending still: they can go while they are pending.
_REPEATED = (Action.CLEAN, Action.ROLLBACK)


def damaged_instant(
    scene: Scene, instant: Instant, path: str, states: Mapping[State, Entry], fault: Fault, problem: str
) -> Iterator[Finding]:
    """The finding about an instant's file that is empty or cannot be read, and one about the file that goes with it.

    states  the instant's files
    """
    advice, mend = _what_to_do(scene, instant, states, fault)
    remedies = [] if mend is None else [Remedy(mend, instant.requested if mend is Mend.ROLL_BACK else path)]
    if not scene.is_settled(states[instant.state].mtime):
        remedies = []
    yield Finding(Severity.ERROR, fault, path, problem, advice, next(iter(remedies), None))
    inflight = states.get(State.INFLIGHT)
    if mend is Mend.DELETE and set(states) == {State.REQUESTED, State.INFLIGHT} and instant.state is State.REQUESTED:
        assert inflight is not None  # it is among the states
        where = join(scene.timeline.folder, inflight.name)
        remedy = Remedy(Mend.DELETE, where) if remedies and scene.is_settled(inflight.mtime) else None
        problem, advice = f"the plan of this {instant.action} cannot be read", "It goes with the plan"
        yield Finding(Severity.ERROR, Fault.HALF, where, problem, advice, remedy)


def _what_to_do(scene: Scene, instant: Instant, states: Collection[State], fault: Fault) -> tuple[str, Mend | None]:
    if instant.state is State.COMPLETED:
        return _completed(scene, instant, states, fault)
    if State.COMPLETED in states:
        return (
            "Its instant is completed and does not need it, but archiving stops at it: it can be deleted",
            Mend.DELETE,
        )
    return _advice_for_pending(scene, instant, states)


def _completed(scene: Scene, instant: Instant, states: Collection[State], fault: Fault) -> tuple[str, Mend | None]:
    action, time = instant.action, instant.requested
    if action in COMMITS:
        return _commit(scene, instant, fault), None
    if action is Action.CLEAN and fault is Fault.EMPTY and len(states) == 3:
        # Without the file its plan would be pending, and Hudi 0.15 deletes folders that were written to since the plan.
        return "The next `hoodie clean TABLE` writes it again, by its plan: let it come before a clean by Hudi", None
    if action in _REPEATED:
        who = "the next clean" if action is Action.CLEAN else "the next write"
        again = f": {who} does the same again" if State.REQUESTED in states else ""
        return f"It only records what was done, and can be deleted{again}", Mend.DELETE
    if action is Action.SAVEPOINT:
        return f"Delete the savepoint, with `hoodie savepoint delete TABLE {time}`, and make it again, or {_COPY}", None
    if action is Action.RESTORE:
        return (
            f"The restore is done. To get rid of it, {_COPY}; where it alone is deleted, the restore would begin again",
            None,
        )
    return f"No other file says what it did: {_COPY}", None


def _commit(scene: Scene, instant: Instant, fault: Fault) -> str:
    """The ways out of a damaged commit. A rollback undoes the newest one only: later ones are made of its rows."""
    time = instant.requested
    newer = sum(commit.requested > time for commit in scene.timeline.commits)
    if not newer:
        return f"Roll it back, with `hoodie rollback TABLE {time}`, which finds by listing what it wrote, or {_COPY}"
    savepoints = [saved.requested for saved in scene.timeline.completed({Action.SAVEPOINT}) if saved.requested < time]
    restore = f", or `hoodie restore TABLE {savepoints[-1]}` goes back to a savepoint" if savepoints else ""
    # What a replace commit replaced only its file says, and the plan of a clustering: nothing, where none is older.
    can_stay = fault is Fault.EMPTY and (
        instant.action is not Action.REPLACE_COMMIT
        or clustering_inputs(scene.storage, scene.timeline, time) is not None
        or not older_file(scene.timeline, instant, scene.files)
    )
    stay = "leave it: its rows are read, and it is archived in its time; or " if can_stay else ""
    return (
        f"{_COPY.capitalize()}. Without one, {stay}take {count_text(newer, 'newer commit')} back and then this one, "
        f"newest first, by {newer + 1} times `hoodie rollback TABLE`{restore}; then write the rows of these again"
    )


def _advice_for_pending(scene: Scene, instant: Instant, states: Collection[State]) -> tuple[str, Mend | None]:
    action = instant.action
    if action in _REPEATED:
        return "It can be deleted", Mend.DELETE
    if action in COMPACTIONS:
        logs = [file for file in scene.files if isinstance(file, LogFile)]
        opened = [log for log in logs if log.base_instant == instant.requested]
        if opened:
            belong = f"{len(opened)} logs, such as {opened[0].path}, were written for the base files that it makes"
            return f"Restore it from a copy, or the table to an older savepoint: {belong}", None
        return "No log was written for the base files that it was to make: it can be deleted", Mend.DELETE
    if action in COMMITS and State.INFLIGHT in states:
        return "If its writer is dead, the next write rolls it back; --repair does so now", Mend.ROLL_BACK
    if State.INFLIGHT not in states:
        return "Its writer died while it wrote the plan, and did nothing else: it can be deleted", Mend.DELETE
    return f"Nothing goes on without it: {_COPY}", None
