"""Column statistics of data files, as the metadata table has them.

Source: docs/format/metadata-table.md 4.3 and 6.
"""

from collections.abc import Collection

import pyarrow as pa

from hoodie.metadata.keys import MetadataPartition, hashed, partition_id
from hoodie.metadata.read import RecordSelection, read_records
from hoodie.metadata.table import MetadataTable

#: Up to so many partitions are looked up one by one; of more, the statistics of all are read.
_SINGLE = 16


def column_statistics(table: MetadataTable, columns: Collection[str], partitions: Collection[str]) -> pa.Table | None:
    """Statistics of some columns, in the form of `records.COLUMN_STATS`, perhaps of more files than those of the
    partitions; None: the table keeps none.

    columns  names of top-level columns
    Raises   as `read_records`
    """
    if MetadataPartition.COLUMN_STATS not in table.ready:
        return None
    prefixes = [hashed(column) for column in sorted(columns)]
    if len(partitions) <= _SINGLE:
        ids = [hashed(partition_id(partition)) for partition in sorted(partitions)]
        prefixes = [prefix + partition for prefix in prefixes for partition in ids]
    return read_records(table, MetadataPartition.COLUMN_STATS, RecordSelection(prefixes=tuple(prefixes)))
