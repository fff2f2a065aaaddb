"""The metadata table that other writers keep: a table of files from which their readers list."""

from __future__ import annotations

from hoodie.storage.protocol import Storage
from hoodie.table.properties import update_properties

METADATA = ".hoodie/metadata"
_KEYS = ("hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight")


def remove_metadata_table(storage: Storage) -> None:
    """Remove it, as Hudi does with `hoodie.metadata.enable=false`: readers list folders then, and the next write of
    Hudi's builds it again. Settings first: without its folder nobody must be sent there.
    """
    update_properties(storage, dict.fromkeys(_KEYS, None))
    storage.delete_tree(METADATA)
