"""Which batches of which applications a table has: kept in the commits' metadata, as Hudi's streaming sink does.

Each commit copies the map {application: number of its newest batch}, so that archiving does not lose it; archiving
waits for a commit that has what it would take away.
"""

import json
from collections.abc import Iterable, Mapping

from hoodie.config.locks import BatchOptions
from hoodie.errors import CorruptFile, HoodieError
from hoodie.model.commit import CommitMetadata
from hoodie.model.instant import Instant
from hoodie.table.state import TableState
from hoodie.timeline.load import Grown, read_commit

#: The entry of a commit's extra metadata that holds the map.
CHECKPOINT = "_hudi_streaming_sink_checkpoint"
#: The entry of the commit that wrote the batch itself; the map alone does not identify it.
_WRITTEN = "_hoodie_written_batch"


class BatchKnown(HoodieError):
    """The batch is in the table already; the current write is rolled back.

    instant   of the commit that wrote it; "" when that is no longer on the active timeline, or a later batch of the
              application is all that is known
    metadata  of that commit
    """

    def __init__(self, application: str, batch: int, instant: str, metadata: CommitMetadata | None) -> None:
        super().__init__(application, batch, instant, metadata)
        self.application, self.batch, self.instant, self.metadata = application, batch, instant, metadata

    def __str__(self) -> str:
        where = f", at {self.instant}" if self.instant else ""
        return f"batch {self.batch} of {self.application!r} was written before{where}; nothing is written now"


def require_new(state: TableState, batch: BatchOptions) -> None:
    """Raises BatchKnown when the table has this batch, or a later one of its application."""
    if not batch.application:
        return
    if newest_batches(state).get(batch.application, -1) >= batch.batch:
        commit, metadata = _commit_of(state, batch)
        raise BatchKnown(batch.application, batch.batch, commit.requested if commit else "", metadata)


def with_batch(state: TableState, batch: BatchOptions, extra: Mapping[str, str]) -> dict[str, str]:
    """The extra metadata of a commit, batches that are known included. state: at the moment of the commit"""
    batches = newest_batches(state, all_read=bool(batch.application))
    if batch.application:
        batches = {**batches, batch.application: batch.batch}
    if not batches or (CHECKPOINT in extra and not batch.application):  # the caller knows it
        return dict(extra)
    mark = {_WRITTEN: json.dumps({batch.application: batch.batch})} if batch.application else {}
    return {**extra, **mark, CHECKPOINT: json.dumps({name: str(number) for name, number in batches.items()})}


def newest_batches(
    state: TableState, *, all_read: bool = True, among: Iterable[Instant] | None = None
) -> dict[str, int]:
    """The newest batch of each application: the greatest number over all commits of the active timeline.

    The newest commit alone does not tell: one that began earlier may be completed after it, and other writers may not
    copy the map. A commit that is archived meanwhile knows nothing that others do not.

    all_read  False: commits that cannot be read are left out
    among     commits; None: all
    Raises    CorruptFile on a commit that cannot be read
    """
    count, remembered = (NEWEST.get(state.storage, state.timeline) if among is None else None) or (0, {})
    newest, whole = dict(remembered), True
    for instant in state.timeline.commits[count:] if among is None else among:
        try:
            batches = batches_of(state, instant)
        except FileNotFoundError:
            whole = False
            continue
        except CorruptFile:
            if all_read:
                raise
            whole = False
            continue
        for application, batch in batches.items():
            newest[application] = max(batch, newest.get(application, batch))
    if whole and among is None:
        NEWEST.put(state.storage, state.timeline, newest)
    return newest


#: The newest batches of tables that this process has written to.
NEWEST: Grown[dict[str, int]] = Grown()


def batches_of(state: TableState, instant: Instant) -> dict[str, int]:
    """The map of one commit. Raises CorruptFile"""
    text = read_commit(state.storage, state.timeline, instant).extra.get(CHECKPOINT)
    return {} if text is None else _parse(text, state.timeline.path(instant))


def _commit_of(state: TableState, batch: BatchOptions) -> tuple[Instant | None, CommitMetadata | None]:
    """The commit that wrote the batch, if it is on the active timeline."""
    for instant in reversed(state.timeline.commits):
        metadata = read_commit(state.storage, state.timeline, instant)
        mark = metadata.extra.get(_WRITTEN)
        if mark and _parse(mark, state.timeline.path(instant)).get(batch.application) == batch.batch:
            return instant, metadata
    return None, None


def _parse(text: str, path: str) -> dict[str, int]:
    try:
        return {str(name): int(number) for name, number in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise CorruptFile(path, f"{text[:80]!r} is not a map of batches") from error
