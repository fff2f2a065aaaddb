"""Which folders can be partitions, and the metafile that makes them one."""

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime

from hoodie.errors import InvalidInput
from hoodie.formats.java.properties import render_properties
from hoodie.model.files import METAFILE, parent_folders
from hoodie.storage.protocol import Storage, join
from hoodie.view.load import may_be_own

#: No reader looks for rows in folders of these names, at any depth.
_NO_FOLDERS = frozenset({"", ".", "..", ".hoodie"})


def require_partition_paths(paths: Iterable[str]) -> None:
    """Refuse partition paths of a batch in which readers would not find the rows.

    paths   of all rows; "" in a table without partitions
    Raises  InvalidInput naming one that is no path of a folder in the table, or that lies in another one
    """
    partitions = set(paths)
    bad = sorted(path for path in partitions if path and ("\0" in path or not _NO_FOLDERS.isdisjoint(path.split("/"))))
    if bad:
        raise InvalidInput(
            f"{len(bad)} partition values make no folder of the table, such as {bad[0]!r}: '.', '..', '.hoodie' and "
            "nothing are no names. A table made with hoodie.datasource.write.partitionpath.urlencode=true and "
            "hoodie.datasource.write.hive_style_partitioning=true holds such values."
        )
    for path in sorted(partitions):
        for above in parent_folders(path):
            if above in partitions:
                raise _nested(path, above)


def _nested(path: str, above: str) -> InvalidInput:
    return InvalidInput(
        f"partition {path!r} would lie inside partition {above!r}, where readers do not look for partitions. A table "
        "made with hoodie.datasource.write.partitionpath.urlencode=true keeps such values apart."
    )


def restore_metafiles(storage: Storage, partitions: Iterable[str], instant: str) -> None:
    """Write the metafiles that partitions have lost, so that all readers see what a write adds to. Raises as
    `ensure_partition`."""
    for partition in sorted(partitions):
        ensure_partition(storage, partition, instant)


def ensure_partition(storage: Storage, partition: str, instant: str) -> None:
    """Write the partition's metafile unless it is there. Readers do not see a partition without it.

    partition  path relative to the table; "" for a table without partitions
    instant    the one that creates the partition
    Raises     InvalidInput when it would lie in another partition, or another in it
    """
    path = join(partition, METAFILE)
    if storage.exists(path):
        return
    if partition:
        require_partition_paths([partition])
        for above in parent_folders(partition):
            if storage.exists(join(above, METAFILE)):
                raise _nested(partition, above)
        for folder, entries in storage.list_tree(partition).items():
            # In the folder itself: another task made the same partition since we looked. In another table: that one's.
            if folder != partition and any(entry.name == METAFILE for entry in entries) and may_be_own(storage, folder):
                raise _nested(folder, partition)
    depth = partition.count("/") + 1 if partition else 0
    content = {"commitTime": instant, "partitionDepth": str(depth)}
    with suppress(FileExistsError):  # another task made it meanwhile: the content is as good
        storage.create_new(path, render_properties(content, "partition metadata", datetime.now(UTC)))
