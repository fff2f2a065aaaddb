"""What a folder holds that is no Hudi table: plain Parquet files, a Delta or Iceberg table, partitions of a table."""

from collections.abc import Collection

from hoodie.formats.java.properties import parse_properties
from hoodie.model.files import METAFILE
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


def other_table(storage: Storage) -> str:
    """What a folder that is no Hudi table holds, in it or in partitions below it; see `kind_of_table`. A metafile of a
    partition says how far above it the table is.

    One folder of each level is looked into, three levels deep: a partitioned folder has files in all of them, and
    Iceberg's metadata is in a folder of this name
    """
    folder = ""
    for level in range(_DEEP):
        entries = storage.list(folder)
        if METAFILE in {entry.name for entry in entries}:
            path = join(folder, METAFILE)
            depth = parse_properties(storage.read(path), path).get("partitionDepth", "")
            if depth.isdecimal() and int(depth) > level:
                table = storage.root.rsplit("/", int(depth) - level)[0] or "/"
                return f"a part of the Hudi table that should be at {table}"
        if kind := kind_of_table(entries):
            return kind
        names = sorted(entry.name for entry in entries if entry.is_dir and not entry.name.startswith((".", "_")))
        if not names:
            return ""
        folder = join(folder, "metadata" if "metadata" in names else names[0])
    return ""
