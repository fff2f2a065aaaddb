"""Moving an instant from state to state: each step is one exclusive create, so that only one of two writers succeeds.

Instants of layout 1, the one that is written. Source: docs/format/table-and-timeline.md 5.2 and 5.4.
"""

from __future__ import annotations

import dataclasses
from contextlib import suppress

from hoodie.errors import InstantNotFound, WriteConflict
from hoodie.model.instant import Action, Instant, State
from hoodie.storage.protocol import Storage
from hoodie.storage.together import together
from hoodie.timeline.just_completed import just_completed
from hoodie.timeline.layout import COMPLETES_AS, file_name

_FOLDER = ".hoodie"


def instant_path(instant: Instant) -> str:
    """The path of an instant's file, relative to the base path."""
    return f"{_FOLDER}/{file_name(instant)}"


def create_requested(storage: Storage, time: str, action: Action, content: bytes = b"") -> Instant:
    """Announce an instant.

    content  its plan; empty for commits and delta commits
    Raises   WriteConflict when the instant is taken
    """
    instant = Instant(time, Action.REPLACE_COMMIT if action is Action.CLUSTERING else action, State.REQUESTED)
    _create(storage, instant, content)
    return instant


def to_inflight(storage: Storage, instant: Instant, content: bytes = b"", *, just_requested: bool = False) -> Instant:
    """Begin the work of a requested instant; a savepoint begins without being requested.

    content         the workload profile of a write, the plan of a clean, else empty
    just_requested  this process has requested it a moment ago: whether it still is need not be looked at
    Raises   InstantNotFound when it is not requested (rolled back meanwhile); WriteConflict when another has begun it
    """
    made = dataclasses.replace(instant, state=State.INFLIGHT)
    if instant.action is Action.SAVEPOINT or just_requested:
        _create(storage, made, content)
        return made
    requested = dataclasses.replace(instant, state=State.REQUESTED)
    if not storage.remote:
        _require(storage, requested)
        _create(storage, made, content)
        return made
    # At once, as a look before the create is no better: who rolls the write back may come right after either. Whether
    # both files are there is looked at once more when the write is published.
    there, problem = together(
        storage, lambda: storage.exists(instant_path(requested)), lambda: _refused(storage, made, content)
    )
    if not there:
        if problem is None:
            storage.discard(instant_path(made))
        raise _missing(requested)
    if problem is not None:
        raise problem
    return made


def complete(storage: Storage, instant: Instant, content: bytes, *, just_listed: bool = False) -> Instant:
    """Publish an inflight instant: with this one create readers see it. A compaction completes as a commit.

    just_listed  the timeline was listed a moment ago, and has it inflight: whether it still is need not be looked at
    Raises       InstantNotFound when it is not inflight (rolled back meanwhile); WriteConflict when it is completed
                 already
    """
    if not just_listed:
        _require(storage, dataclasses.replace(instant, state=State.INFLIGHT))
    made = Instant(instant.requested, COMPLETES_AS.get(instant.action, instant.action), State.COMPLETED)
    _create(storage, made, content)
    just_completed(storage, instant_path(made))
    return made


def is_pending(storage: Storage, instant: Instant) -> bool:
    """Whether an inflight instant is neither completed nor rolled back (nor archived)."""
    done = Instant(instant.requested, COMPLETES_AS.get(instant.action, instant.action), State.COMPLETED)
    begun = dataclasses.replace(instant, state=State.INFLIGHT)
    return not storage.exists(instant_path(done)) and storage.exists(instant_path(begun))


def back_to_requested(storage: Storage, instant: Instant) -> Instant:
    """Remove the inflight file of a compaction or clustering, to run it again; its plan stays. Idempotent."""
    storage.discard(instant_path(dataclasses.replace(instant, state=State.INFLIGHT)))
    return dataclasses.replace(instant, state=State.REQUESTED)


def uncomplete(storage: Storage, instant: Instant, action: Action | None = None) -> Instant:
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
                storage.create_new(instant_path(earlier), b"")
    storage.discard(instant_path(dataclasses.replace(instant, state=State.COMPLETED)))
    return pending


def remove_pending(storage: Storage, instant: Instant) -> None:
    """Remove a pending instant, the last step of rolling it back. Idempotent."""
    # Inflight first: a crash in between leaves a requested instant, which the next rollback resumes.
    for state in (State.INFLIGHT, State.REQUESTED):
        storage.discard(instant_path(dataclasses.replace(instant, state=state)))


def _require(storage: Storage, instant: Instant) -> None:
    if not storage.exists(instant_path(instant)):
        raise _missing(instant)


def _missing(instant: Instant) -> InstantNotFound:
    path = instant_path(instant)
    return InstantNotFound(f"{path} is missing: instant {instant.requested} was rolled back, or never got that far")


def _refused(storage: Storage, instant: Instant, content: bytes) -> WriteConflict | None:
    try:
        _create(storage, instant, content)
    except WriteConflict as problem:
        return problem
    return None


def _create(storage: Storage, instant: Instant, content: bytes) -> None:
    path = instant_path(instant)
    try:
        storage.create_new(path, content)
    except FileExistsError as error:
        raise WriteConflict(f"{path} already exists: another writer took instant {instant.requested}") from error
