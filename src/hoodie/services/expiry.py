"""Expiry of partitions: those that nobody has written to for long are deleted, by a commit that replaces their file
groups with nothing, as `delete_partitions` does. Cleaning removes the files later.

Hudi calls it partition TTL.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from hoodie.commit.rollback_planner import block_instants
from hoodie.config.locks import BatchOptions
from hoodie.config.options import declared
from hoodie.config.services import Expiry, ExpiryOptions
from hoodie.config.validators import ValidatorOptions
from hoodie.display.render import Displayed
from hoodie.display.summary import ResultSummary, summary
from hoodie.errors import InvalidOption
from hoodie.formats.java.properties import parse_properties
from hoodie.model.files import METAFILE, FileSlice, LogFile
from hoodie.model.instant import time_before
from hoodie.services.clean import service_state
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage, in_threads, join
from hoodie.table.settings import MapItems, Settings
from hoodie.table.state import TableState
from hoodie.timeline.load import read_commit
from hoodie.timeline.timeline import Clock, time_after, utc_now
from hoodie.view.slices import merged_slices
from hoodie.writing.finish import AfterCommit
from hoodie.writing.run import delete_partitions

_log = logging.getLogger("hoodie.services")

INLINE = "hoodie.partition.ttl.inline"
_DAYS = "hoodie.partition.ttl.strategy.days.retain"


@dataclass(frozen=True, slots=True, repr=False)
class ExpiryResult(Displayed):
    """Which partitions were deleted because they had expired, or would be.

    instant     of the commit that deleted them; "" when none has expired
    partitions  partition paths, the oldest first
    before      the instant time before which the last write of a partition is too old
    dry_run     nothing was changed
    """

    instant: str = ""
    partitions: tuple[str, ...] = ()
    before: str = ""
    dry_run: bool = False

    def __str__(self) -> str:
        verb = "would delete" if self.dry_run else "deleted"
        if not self.partitions:
            return f"no partition was last written before {self.before}"
        at = f" at {self.instant}" if self.instant else ""
        return "\n".join(
            [
                f"{verb} {len(self.partitions)} partitions last written before {self.before}{at}",
                *(f"  {path}" for path in self.partitions),
            ]
        )

    def _summary(self) -> ResultSummary:
        rows = [(path,) for path in self.partitions]
        return summary(str(self).partition("\n")[0], ("partition",), rows, len(rows), compact=True)


@typed_errors()
def expire_partitions(
    storage: Storage,
    settings: Settings,
    *,
    dry_run: bool = False,
    after_commit: AfterCommit | None = None,
    clock: Clock = utc_now,
    run: MapItems | None = None,
) -> ExpiryResult:
    """Delete the partitions that have expired, in one commit.

    settings      `hoodie.partition.ttl.strategy.*`: which have
    dry_run       only say which would be deleted
    after_commit  runs the services; None: there are none
    run           as for `delete_partitions`
    Raises        InvalidOption when the options do not say for how many days partitions are kept; UnsupportedTable;
                  WriteConflict when other writers write to one of them meanwhile: nothing is deleted then
    """
    how = settings.expiry
    if how.days < 0:
        raise InvalidOption(
            f"{_DAYS} is not set: it says for how many days partitions are kept, and has no default. Without it none "
            "expires"
        )
    state = service_state(storage, settings, dry_run)
    before = time_before(time_after("", state.config.timezone, clock), days=how.days)
    if not state.config.partition_by:
        return ExpiryResult(before=before, dry_run=dry_run)
    partitions = expired_partitions(state, how, before, how.selected or None)
    if dry_run or not partitions:
        return ExpiryResult("", partitions, before, dry_run)
    # Seen again once the delete has begun: other writers may have written to them since.
    choose = partial(expired_partitions, how=how, before=before, partitions=partitions)
    deletion = delete_partitions(storage, partitions, _own_settings(settings), after_commit, choose=choose, run=run)
    deleted_partitions = tuple(path for path in partitions if path in deletion.metadata.replaced)
    _log.info("%s: %d partitions expired at %s", state.config.name, len(deleted_partitions), deletion.instant)
    return ExpiryResult(deletion.instant, deleted_partitions, before)


def expired_partitions(
    state: TableState, how: ExpiryOptions, before: str, partitions: Collection[str] | None = None
) -> tuple[str, ...]:
    """The partition paths that have expired, the oldest first.

    before      the instant time before which the last write is too old
    partitions  where to look; None: the whole table
    """
    slices = merged_slices(state.view(partitions)).values()
    times = newest_in_names(slices)
    if how.counted_from is Expiry.KEEP_BY_CREATION_TIME:
        return expired_before(_creation_times(state.storage, times), before, how.most)
    for path in _written_since(state, before):
        times.pop(path, None)
    old = {path for path, time in times.items() if time < before}
    for path, time in _newest_in_logs(state, before, [one for one in slices if one.group.partition in old]):
        times[path] = max(time, times[path])
    return expired_before(times, before, how.most)


def _written_since(state: TableState, before: str) -> set[str]:
    """The partitions that commits of the timeline wrote to since then."""
    recent = [instant for instant in state.timeline.commits if max(instant.requested, instant.completed) >= before]
    commits = in_threads(lambda instant: read_commit(state.storage, state.timeline, instant), recent)
    return {path for commit in commits for path, stats in commit.stats.items() if stats}


def _newest_in_logs(state: TableState, before: str, slices: Iterable[FileSlice]) -> list[tuple[str, str]]:
    """Partition paths with the instants of log blocks, where the commits of some since then may be archived: in layout
    1 the names of logs do not have them."""
    first = state.timeline.first_commit
    if state.layout.version.logs_of_writes or (first and first < before):
        return []
    logs = [log for slice_ in slices for log in slice_.logs]

    def newest(log: LogFile) -> tuple[str, str]:
        return log.group.partition, max((time or "" for time in block_instants(state.storage, log)), default="")

    return in_threads(newest, logs)


def _creation_times(storage: Storage, times: dict[str, str]) -> dict[str, str]:
    """When partitions were made, by their metafiles; without a readable one that says so, the last write's time."""

    def created(path: str) -> str:
        metafile = join(path, METAFILE)
        if not storage.exists(metafile):
            return times[path]
        return parse_properties(storage.read(metafile), metafile).get("commitTime", "") or times[path]

    return dict(zip(times, in_threads(created, list(times)), strict=True))


def _own_settings(settings: Settings) -> Settings:
    """The settings of the commit that deletes: without what is about the batch of a write before it."""
    prefix = settings.write.metadata_prefix
    others = {key for group in (BatchOptions, ValidatorOptions) for _, spec in declared(group) for key in spec.keys}
    return Settings.of(
        {
            key: value
            for key, value in settings.options.items()
            if key not in others and key != INLINE and not (prefix and key.startswith(prefix))
        }
    )


# --- the rules; source: Hudi's KeepByTimeStrategy, docs/services.md says what differs ---


def newest_in_names(slices: Iterable[FileSlice]) -> dict[str, str]:
    """The newest instant in the names of the files of each partition, by partition path.

    slices  what a reader merges of each file group. Names of logs have their own delta commit in layout 2 only
    """
    times: dict[str, str] = {}
    for slice_ in slices:
        own = [slice_.base_instant, *(log.base_instant for log in slice_.logs)]
        times[slice_.group.partition] = max(*own, times.get(slice_.group.partition, ""))
    return times


def expired_before(times: Mapping[str, str], before: str, most: int) -> tuple[str, ...]:
    """The partition paths whose time is earlier, the oldest first.

    times  instant times by partition path
    most   how many at most
    """
    old = sorted((time, partition) for partition, time in times.items() if time < before)
    return tuple(partition for _, partition in old[:most])
