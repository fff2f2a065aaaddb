"""Warns of a write that made very many small files: what a table's partitions or buckets ask of each read."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from hoodie.errors import SmallFiles
from hoodie.index import bucket
from hoodie.keygen.time_units import partition_names
from hoodie.model.commit import WriteStat
from hoodie.writing.write import Write

#: New partitions of one write that are many, and rows of each that are enough to warrant them.
_PARTITIONS, _ROWS = 200, 100_000
#: New files of one write that are many for a BUCKET index, and rows of each that are enough.
_BUCKETS, _BUCKET_ROWS = 32, 100


def warn_of_small_files(write: Write, stats: Sequence[WriteStat]) -> None:
    """Warns SmallFiles

    stats  of a write that is not published yet
    """
    opened = [stat for stat in stats if stat.prev_commit == "null" and stat.num_inserts]
    if len(opened) < min(_BUCKETS, _PARTITIONS):
        return
    config, rows = write.state.config, sum(stat.num_inserts for stat in opened)
    older = {stat.partition for stat in stats if stat.prev_commit != "null"}
    partitions = {stat.partition for stat in opened} - older
    if len(partitions) > _PARTITIONS and rows < _ROWS * len(partitions):
        columns = ", ".join(partition_names(config.partition_by, config.properties))
        problem = (
            f"{len(partitions)} partitions of {rows // len(partitions)} rows each, and reads open a file of each. "
            f'Partition by something coarser than {columns}, such as partition_by="month(at)" for a time, or not at '
            "all: filters leave out files by the least and greatest value of any column, too"
        )
        warnings.warn(SmallFiles(config.name, problem), stacklevel=3)
    elif write.index.name == bucket.NAME and len(opened) >= _BUCKETS and rows < _BUCKET_ROWS * len(opened):
        problem = (
            f"{len(opened)} files of {rows // len(opened)} rows each, one for each bucket. Make the table with fewer "
            f"buckets ({bucket.BUCKETS}, for each partition), or with another index, hoodie.index.type=BLOOM"
        )
        warnings.warn(SmallFiles(config.name, problem), stacklevel=3)
