"""Moving an instant from state to state: each step is one exclusive create, so that only one of two writers succeeds.

`layout` says where the instants of the table lie and what they are called: `hoodie.timeline.timeline.layout_of`.
Source: docs/format/table-and-timeline.md 5.2 and 5.4.
"""

import dataclasses
import re
from collections.abc import Sequence
from contextlib import suppress

from hoodie.errors import InstantNotFound, WriteConflict
from hoodie.formats.timeline.commit_json import encode_commit, encode_inflight
from hoodie.model.commit import CommitMetadata
from hoodie.model.instant import COMMITS, Action, Instant, State
from hoodie.storage.protocol import Storage, meanwhile
from hoodie.timeline.late_listings import just_completed
from hoodie.timeline.timeline import Clock, TimelineLayout, comparable_action, time_after, utc_now

_ANY = re.compile(r"(?s).*")


def instant_path(instant: Instant, layout: TimelineLayout) -> str:
    """The path of an instant's file, relative to the base path. That of a completed one is `completed_path`'s."""
    return layout.path(instant)


def create_requested(
    storage: Storage, time: str, action: Action, content: bytes = b"", *, ahead: bool = False, layout: TimelineLayout
) -> Instant:
    """Announce an instant.

    content  its plan; empty for commits and delta commits
    ahead    nothing is done for it before this process makes it inflight, and sees that no other action has its time
    Raises   WriteConflict when the instant is taken
    """
    instant = Instant(time, action, State.REQUESTED)
    _create(storage, instant, content, layout, ahead=ahead)
    return instant if ahead else _require_own_time(storage, instant, layout)


def to_inflight(
    storage: Storage, instant: Instant, content: bytes = b"", *, just_requested: bool = False, layout: TimelineLayout
) -> Instant:
    """Begin the work of a requested instant; a savepoint begins without being requested.

    content         the workload profile of a write, the plan of a clean, else empty
    just_requested  this process has requested it a moment ago: whether it still is need not be looked at
    Raises   InstantNotFound when it is not requested (rolled back meanwhile); WriteConflict when another has begun it
    """
    inflight = dataclasses.replace(instant, state=State.INFLIGHT)
    if instant.action is Action.SAVEPOINT or just_requested:
        _create(storage, inflight, content, layout)
        return inflight
    require = _require_own_time if instant.action in COMMITS else _require
    if not storage.remote:
        require(storage, instant, layout)
        _create(storage, inflight, content, layout)
        return inflight
    # At once, as a look before the create is no better: who rolls the write back may come right after either. Whether
    # both files are there is looked at once more when the write is published.
    with meanwhile(storage, lambda: _refused(storage, inflight, content, layout)) as refused:
        try:
            require(storage, instant, layout)
        except (InstantNotFound, WriteConflict):
            if refused() is None:
                storage.discard(layout.path(inflight))
            raise
        problem = refused()
    if problem is not None:
        raise problem
    return inflight


def complete(
    storage: Storage,
    instant: Instant,
    content: bytes,
    *,
    just_listed: bool = False,
    ahead: bool = False,
    layout: TimelineLayout,
    clock: Clock = utc_now,
) -> Instant:
    """Publish an inflight instant: with this one create readers see it. A compaction completes as a commit.

    just_listed  the timeline was listed a moment ago, and has it inflight: whether it still is need not be looked at
    ahead        if it is lost, the next process completes it
    layout       where it stamps completion, the time comes after all times on the timeline, however clocks go: the
                 caller holds the table's lock, where there is one
    Raises       InstantNotFound when it is not inflight (rolled back meanwhile); WriteConflict when it is completed
                 already
    """
    completed = Instant(instant.requested, comparable_action(instant.action), State.COMPLETED)
    if layout.stamps_completion:
        completed = dataclasses.replace(completed, completed=_completion(storage, instant, layout, clock))
    elif not just_listed:
        _require(storage, dataclasses.replace(instant, state=State.INFLIGHT), layout)
    _create(storage, completed, content, layout, ahead=ahead)
    if storage.remote:
        just_completed(storage, layout.path(completed))
    return completed


def _completion(storage: Storage, instant: Instant, layout: TimelineLayout, clock: Clock) -> str:
    """When an inflight instant is completed that is completed now. Raises as `complete`

    Names of completed instants differ by this time: an exclusive create alone would let an instant complete twice.
    """
    names = {entry.name for entry in storage.list(layout.folder) if not entry.is_dir}
    inflight = dataclasses.replace(instant, state=State.INFLIGHT)
    if layout.path(inflight).rpartition("/")[2] not in names:
        raise _missing(inflight, layout)
    instants = [other for name in names if (other := layout.parse(name)) is not None]
    if completed := next((other for other in instants if _completes(other, instant)), None):
        raise WriteConflict(
            f"{layout.path(completed)} exists: another process has completed instant {instant.requested}"
        )
    newest = max(max(other.requested, other.completed) for other in instants)
    return time_after(newest, layout.zone, clock)


def _completes(other: Instant, instant: Instant) -> bool:
    return (
        other.state is State.COMPLETED
        and other.requested == instant.requested
        and comparable_action(other.action) is comparable_action(instant.action)
    )


def completed_instants(storage: Storage, instant: Instant, layout: TimelineLayout) -> list[Instant]:
    """The completed states of an instant that the timeline has, whatever the state of the one given: none or one, or
    more of a clean that two processes carried out at once."""
    if not layout.stamps_completion:
        completed = Instant(instant.requested, comparable_action(instant.action), State.COMPLETED)
        return [completed] if storage.exists(layout.path(completed)) else []
    parsed = (layout.parse(entry.name) for entry in storage.list(layout.folder) if not entry.is_dir)
    return sorted(other for other in parsed if other is not None and _completes(other, instant))


def instants_at(storage: Storage, time: str, layout: TimelineLayout) -> list[Instant]:
    """The instants of a time that the timeline has, whatever their action, each state by itself."""
    names = [name for name in storage.list_some(layout.folder, frozenset(), _ANY)[1] if name.startswith(time)]
    return [instant for instant in map(layout.parse, names) if instant is not None and instant.requested == time]


def is_pending(storage: Storage, instant: Instant, layout: TimelineLayout) -> bool:
    """Whether an inflight instant is neither completed nor rolled back (nor archived)."""
    begun = dataclasses.replace(instant, state=State.INFLIGHT)
    return not completed_instants(storage, instant, layout) and storage.exists(layout.path(begun))


def back_to_requested(storage: Storage, instant: Instant, layout: TimelineLayout) -> Instant:
    """Remove the inflight file of a compaction or clustering, to run it again; its plan stays. Idempotent."""
    storage.discard(layout.path(dataclasses.replace(instant, state=State.INFLIGHT, completed="")))
    return dataclasses.replace(instant, state=State.REQUESTED, completed="")


def uncomplete(storage: Storage, instant: Instant, action: Action | None = None, *, layout: TimelineLayout) -> Instant:
    """Remove the completed file of an instant, the first step of rolling it back. Idempotent.

    action  what it was before completion, such as COMPACTION for a commit; None: the same
    returns the inflight instant
    """
    pending = Instant(instant.requested, action or instant.action, State.INFLIGHT)
    # Both states must exist before the completed file is removed: else a crash in between would lose the instant.
    for state in (State.REQUESTED, State.INFLIGHT):
        earlier = dataclasses.replace(pending, state=state)
        if not (state is State.REQUESTED and pending.action is Action.SAVEPOINT):
            with suppress(FileExistsError):
                storage.create_new(layout.path(earlier), b"")
    discard_completed(storage, instant, layout)
    return pending


def discard_completed(storage: Storage, instant: Instant, layout: TimelineLayout) -> None:
    """Remove the completed file of an instant. Idempotent."""
    if layout.stamps_completion:
        for completed in completed_instants(storage, instant, layout):
            storage.discard(layout.path(completed))
    else:
        completed = Instant(instant.requested, comparable_action(instant.action), State.COMPLETED)
        storage.discard(layout.path(completed))


def remove_pending(storage: Storage, instant: Instant, layout: TimelineLayout) -> None:
    """Remove a pending instant, the last step of rolling it back. Idempotent."""
    # Inflight first: a crash in between leaves a requested instant, which the next rollback resumes.
    for state in (State.INFLIGHT, State.REQUESTED):
        storage.discard(layout.path(dataclasses.replace(instant, state=state, completed="")))


def _require(storage: Storage, instant: Instant, layout: TimelineLayout) -> Instant:
    if not storage.exists(layout.path(instant)):
        raise _missing(instant, layout)
    return instant


def _require_own_time(storage: Storage, requested: Instant, layout: TimelineLayout) -> Instant:
    """As `_require`, before anything is written: markers and files are named after the time, whatever the action. Where
    two actions took one time at once, the later at least sees the other, and withdraws its request."""
    alike = instants_at(storage, requested.requested, layout)
    return requested if alike == [requested] else _first_of(storage, requested, alike, layout)


def _first_of(storage: Storage, own: Instant, alike: Sequence[Instant], layout: TimelineLayout) -> Instant:
    if own not in alike:  # or the storage lists late
        _require(storage, own, layout)
    for other in alike:
        if comparable_action(other.action) is not comparable_action(own.action):
            storage.discard(layout.path(own))
            raise WriteConflict(
                f"another process took instant {own.requested} at the same moment, for a {other.action}: this "
                f"{own.action} has written nothing"
            )
    return own


def _missing(instant: Instant, layout: TimelineLayout) -> InstantNotFound:
    path = layout.path(instant)
    return InstantNotFound(f"{path} is missing: instant {instant.requested} was rolled back, or never got that far")


def _refused(storage: Storage, instant: Instant, content: bytes, layout: TimelineLayout) -> WriteConflict | None:
    try:
        _create(storage, instant, content, layout)
    except WriteConflict as problem:
        return problem
    return None


def _create(storage: Storage, instant: Instant, content: bytes, layout: TimelineLayout, *, ahead: bool = False) -> None:
    path = layout.path(instant)
    try:
        (storage.create_ahead if ahead else storage.create_new)(path, content)
    except FileExistsError as error:
        raise WriteConflict(f"{path} already exists: another writer took instant {instant.requested}") from error


def completed_content(metadata: CommitMetadata, action: Action, layout: TimelineLayout) -> bytes:
    """The content of a completed commit, delta commit or replace commit.

    action  of the instant, pending or completed
    """
    if not layout.stamps_completion:
        return encode_commit(metadata)
    from hoodie.formats.timeline.commit_avro import encode_avro_commit

    return encode_avro_commit(metadata, replacing=comparable_action(action) is Action.REPLACE_COMMIT)


def inflight_content(profile: CommitMetadata, layout: TimelineLayout) -> bytes:
    """The content of an inflight write: its workload profile (`inflight_profile`)."""
    if not layout.stamps_completion:
        return encode_inflight(profile)
    from hoodie.formats.timeline.commit_avro import encode_avro_commit

    return encode_avro_commit(profile)
