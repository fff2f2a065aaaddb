"""The metafile that makes a folder a partition."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from hoodie.formats.properties import render_properties
from hoodie.storage.protocol import Storage, join

METAFILE = ".hoodie_partition_metadata"


def ensure_partition(storage: Storage, partition: str, instant: str) -> None:
    """Write the partition's metafile unless it is there. Readers do not see a partition without it.

    partition  path relative to the table; "" for a table without partitions
    instant    the one that creates the partition
    """
    path = join(partition, METAFILE)
    if storage.exists(path):
        return
    depth = partition.count("/") + 1 if partition else 0
    content = {"commitTime": instant, "partitionDepth": str(depth)}
    with suppress(FileExistsError):  # another task made it meanwhile: the content is as good
        storage.create_new(path, render_properties(content, "partition metadata", datetime.now(UTC)))
