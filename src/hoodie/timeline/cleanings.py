"""What cleans took away, or are about to: those on the timeline, whatever their state, and those in the archive."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile
from hoodie.formats.timeline.services import decode_clean_metadata, decode_clean_plan
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import CleanMetadata
from hoodie.storage.protocol import Storage, in_threads, join
from hoodie.timeline.archive import archived_cleans
from hoodie.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class CleanedFiles:
    """earliest  the oldest commit that the clean keeps; "" when it counts versions
    files     paths of what it removed or will remove
    """

    requested: str
    earliest: str
    files: frozenset[str]


def cleanings(storage: Storage, config: TableConfig, timeline: Timeline, after: str) -> list[CleanedFiles]:
    """Cleans after an instant, those in the archive included. Raises CorruptFile

    Cleans are archived separately: commits that are older than an archived one may still be on the timeline.
    """
    cleans = [instant for instant in timeline.instants if instant.action is Action.CLEAN]
    later = [instant for instant in cleans if instant.requested > after]
    on_timeline = _read(storage, timeline, later)
    older = any(instant.state is State.COMPLETED and instant.requested <= after for instant in cleans)
    if older and None not in on_timeline:  # those in the archive are older than all on the timeline
        return [cleaning for cleaning in on_timeline if cleaning]
    archived = [_cleaned_files(metadata) for metadata in archived_cleans(storage, config, after)]
    return [cleaning for cleaning in on_timeline if cleaning] + archived


def cleaned_files(storage: Storage, timeline: Timeline, cleans: Iterable[Instant]) -> set[str]:
    """Paths of the files that cleans on the timeline removed, or are about to."""
    return {path for cleaning in _read(storage, timeline, cleans) if cleaning for path in cleaning.files}


def _read(storage: Storage, timeline: Timeline, cleans: Iterable[Instant]) -> list[CleanedFiles | None]:
    """None: it was archived since the timeline was loaded."""

    def read(instant: Instant) -> CleanedFiles | None:
        completed = instant.state is State.COMPLETED
        plan_path = timeline.path(replace(instant, state=State.REQUESTED, completed=""))
        path = timeline.path(instant) if completed else plan_path
        try:
            data = storage.read(path)
            if completed and not data and storage.exists(plan_path):  # its writer died while it published it
                completed, path, data = False, plan_path, storage.read(plan_path)
        except FileNotFoundError:
            return None
        if completed:
            metadata = decode_clean_metadata(data, path)
            refuse_other_clean(metadata, instant, path)
            return _cleaned_files(metadata)
        if not data:  # its planner died: it is planned again
            return CleanedFiles(instant.requested, "", frozenset())
        plan = decode_clean_plan(data, path)
        return CleanedFiles(instant.requested, plan.earliest[0] if plan.earliest else "", _paths(plan.files))

    return in_threads(read, list(cleans))


def refuse_other_clean(metadata: CleanMetadata, instant: Instant, path: str) -> None:
    """Raises CorruptFile where the file of a clean says what another one removed: reads of earlier states go by it"""
    if metadata.start not in ("", instant.requested):
        advice = "Restore it from a copy of the table"
        raise CorruptFile(path, f"the content is that of the clean {metadata.start}", advice=advice)


def _cleaned_files(metadata: CleanMetadata) -> CleanedFiles:
    parts = metadata.partitions.items()
    names = {partition: (*part.planned, *part.deleted, *part.failed) for partition, part in parts}
    return CleanedFiles(metadata.start, metadata.earliest, _paths(names))


def _paths(names: Mapping[str, Iterable[str]]) -> frozenset[str]:
    return frozenset(join(partition, name) for partition, part in names.items() for name in part)
