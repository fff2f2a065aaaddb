"""What a folder holds that is no Hudi table (Parquet files, a Delta or Iceberg table), and which table it lies in."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator
from contextlib import suppress

from hoodie.config.table import PROPERTIES_FILE
from hoodie.storage import storage_beside
from hoodie.storage.protocol import Entry, Storage, join

#: How many folders are looked into for one file, level below level.
_DEEP = 3


def kind_of_table(entries: Collection[Entry]) -> str:
    """What the files of one folder say: "a Delta table", "an Iceberg table", "Parquet files"; "" for none of these."""
    if any(entry.is_dir and entry.name == "_delta_log" for entry in entries):
        return "a Delta table"
    if any(not entry.is_dir and entry.name.endswith(".metadata.json") for entry in entries):
        return "an Iceberg table"
    if any(not entry.is_dir and entry.name.endswith(".parquet") for entry in entries):
        return "Parquet files"
    return ""


def other_table(storage: Storage, folder: str = "") -> str:
    """What a folder that is no Hudi table holds, in it or in partitions below it; see `kind_of_table`.

    Of each level one folder is looked into, three levels deep: a partitioned folder has files in all of them, and
    Iceberg's metadata is in a folder of this name
    """
    for _ in range(_DEEP):
        entries = storage.list(folder)
        if kind := kind_of_table(entries):
            return kind
        names = sorted(entry.name for entry in entries if entry.is_dir and not entry.name.startswith((".", "_")))
        if not names:
            return ""
        folder = join(folder, "metadata" if "metadata" in names else names[0])
    return ""


def enclosing_table(storage: Storage) -> str:
    """The path of the Hudi table that a folder lies in; "": of none, as far as the folders above it may be read."""
    for folder in _above(storage.root):
        with suppress(OSError):
            if storage_beside(storage, folder).exists(PROPERTIES_FILE):
                return folder
    return ""


def _above(root: str) -> Iterator[str]:
    """The folders above a path, or above one in a bucket, the nearest first."""
    scheme, slashes, path = root.rpartition("://")
    while (parent := posixpath.dirname(path)) not in ("", path):
        yield f"{scheme}{slashes}{parent}"
        path = parent
