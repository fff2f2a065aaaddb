"""The list of all partitions that writes keep. Those of other writers that are not in it are removed by a write."""

from collections.abc import Iterable

from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.partitions.bloom_filters import BLOOM_FILTERS
from hoodie.metadata.partitions.column_stats import COLUMN_STATS
from hoodie.metadata.partitions.files import FILES
from hoodie.metadata.partitions.kind import PartitionKind
from hoodie.metadata.partitions.partition_stats import PARTITION_STATS
from hoodie.metadata.partitions.record_index import RECORD_INDEX

#: In the order in which they are built.
KINDS: tuple[PartitionKind, ...] = (FILES, BLOOM_FILTERS, COLUMN_STATS, PARTITION_STATS, RECORD_INDEX)


def kinds_of(partitions: Iterable[str]) -> tuple[PartitionKind, ...]:
    """Those of some partitions, in the order of `KINDS`; other partitions have none."""
    names = {str(partition) for partition in partitions}
    return tuple(kind for kind in KINDS if str(kind.partition) in names)


def partition_kind(partition: MetadataPartition) -> PartitionKind:
    """Raises KeyError on a partition that is not kept."""
    return {kind.partition: kind for kind in KINDS}[partition]
