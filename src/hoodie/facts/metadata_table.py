"""What a table's metadata table holds and costs, and how far it is behind."""

from dataclasses import dataclass

from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.metadata.keeping.compact import waiting_commits
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.read import partition_slices, stored_counts
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.model.files import METAFILES
from hoodie.storage.protocol import Storage, in_threads
from hoodie.table.state import load_state


@dataclass(frozen=True, slots=True)
class PartitionStats:
    """A partition of the metadata table, such as "files". Files are those that readers take; sizes are in bytes.

    state         "ready": readers use it; "inflight": it is being built
    base_entries  in base files; a file list is one entry
    log_entries   in logs: compaction merges them. Newer versions and deletes of a key count
    older_files   that no reader takes: cleaning removes them
    problem       why readers do not use it; "" when they do. What was not counted is 0 then
    """

    name: str
    state: str
    base_entries: int = 0
    log_entries: int = 0
    file_groups: int = 0
    base_files: int = 0
    base_bytes: int = 0
    log_files: int = 0
    log_bytes: int = 0
    older_files: int = 0
    older_bytes: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class MetadataStats:
    """A metadata table, measured.

    exists         the table's settings name its file lists: readers use it
    newest         time of its newest completed instant
    compacted      time of its newest compaction; "": none yet, or archived
    delta_commits  since then, or since it was built
    behind         instants of the table that it lacks, oldest first: readers list the storage while there are any
    problem        why readers do not use it; "" when they do
    """

    exists: bool
    newest: str = ""
    compacted: str = ""
    delta_commits: int = 0
    behind: tuple[str, ...] = ()
    problem: str = ""
    partitions: tuple[PartitionStats, ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether readers use all of it."""
        return not (self.problem or any(partition.problem for partition in self.partitions))


def metadata_stats(storage: Storage) -> MetadataStats:
    """Measure the metadata table of a table, by listing its partitions and reading the ends of their files.

    Damage of a partition is said of it. Raises TableNotFound; CorruptFile where a timeline cannot be read
    """
    state = load_state(storage)
    table = open_metadata(storage, state.config, state.timeline)
    inflight = tuple(PartitionStats(name, "inflight") for name in sorted(state.config.metadata_inflight))
    if table is None:
        return MetadataStats(False, partitions=inflight)
    problem = table.problem()
    return MetadataStats(
        True,
        newest=table.newest,
        compacted=table.compacted[:17],
        delta_commits=waiting_commits(table),
        behind=table.behind() if table.newest else (),
        problem=problem,
        partitions=(*(_measured(table, partition) for partition in sorted(table.ready)), *inflight),
    )


def _measured(table: MetadataTable, partition: MetadataPartition) -> PartitionStats:
    name = str(partition)
    try:
        slices = partition_slices(table, partition)
        counts = in_threads(lambda slice_: stored_counts(table, slice_), slices)
    except (CorruptFile, UnsupportedTable) as damage:
        return PartitionStats(name, "ready", problem=str(damage))
    except FileNotFoundError as absent:
        return PartitionStats(name, "ready", problem=f"a file of it is gone: {absent}")
    bases = [slice_.base for slice_ in slices if slice_.base is not None]
    logs = [log for slice_ in slices for log in slice_.logs]
    taken = {*(base.name for base in bases), *(log.name for log in logs)}
    older = [
        entry.size
        for entry in table.storage.list(name)
        if not (entry.is_dir or entry.name in taken or entry.name in METAFILES or entry.name.endswith(".crc"))
    ]
    return PartitionStats(
        name,
        "ready",
        base_entries=sum(base for base, _ in counts),
        log_entries=sum(log for _, log in counts),
        file_groups=len(slices),
        base_files=len(bases),
        base_bytes=sum(base.size for base in bases),
        log_files=len(logs),
        log_bytes=sum(log.size for log in logs),
        older_files=len(older),
        older_bytes=sum(older),
    )
