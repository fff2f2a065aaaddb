"""Procedures about the metadata table: build it, remove it, show it, compare it with the storage."""

import time
from collections.abc import Iterable, Mapping

from hoodie.metadata.display_rows import metadata_rows
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.listing import listed_folders
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.model.files import METAFILES
from hoodie.services.metadata_table import create_metadata_table, drop_metadata_table
from hoodie.statements.procedures.procedure import Called, Rows
from hoodie.storage.protocol import Entry
from hoodie.view.load import list_folders


def create_metadata(called: Called) -> Rows:
    started = time.monotonic()
    if not create_metadata_table(called.state.storage, called.write_settings, run=called.table.engine.run):
        raise called.problem("the table has a metadata table: CALL delete_metadata_table removes it")
    return [
        (f"Created Metadata Table in {called.path}/.hoodie/metadata (duration={time.monotonic() - started:.1f}secs)",)
    ]


def init(called: Called) -> Rows:
    """Open the metadata table, or build one that is missing. `read_only` opens alone."""
    started = time.monotonic()
    if called.get("read_only"):
        _opened(called)
    else:
        create_metadata_table(called.state.storage, called.write_settings, run=called.table.engine.run)
    word = "Opened" if called.get("read_only") else "Initialized"
    return [
        (f"{word} Metadata Table in {called.path}/.hoodie/metadata (duration={time.monotonic() - started:.1f}sec)",)
    ]


def delete_metadata(called: Called) -> Rows:
    if not drop_metadata_table(called.state.storage, called.write_settings):
        raise called.problem("the table has no metadata table")
    return [(f"Removed Metadata Table from {called.path}/.hoodie/metadata",)]


def show_files(called: Called) -> Rows:
    """Names of files in a partition; without one of a table that has no partitions."""
    partition = called.get("partition", "")
    entries = listed_folders(_opened(called), [partition]).marked.get(partition)
    if entries is None:
        raise called.problem(f"partition => {partition!r}: the metadata table lists no such partition")
    return sorted((entry.name,) for entry in entries)


def show_metadata_partitions(called: Called) -> Rows:
    return sorted((partition,) for partition in listed_folders(_opened(called)).marked)


def show_stats(called: Called) -> Rows:
    """How many base and log files each partition of the metadata table has, and their bytes."""
    state = called.state
    _opened(called)
    for partition in sorted(state.config.metadata_partitions):
        entries = state.storage.list(f".hoodie/metadata/{partition}")
        files = [entry for entry in entries if entry.name not in METAFILES and not entry.name.endswith(".crc")]
        logs = [entry for entry in files if entry.name.startswith(".")]
        bases = [entry for entry in files if not entry.name.startswith(".")]
        yield f"{partition}.baseFileCount", str(len(bases))
        yield f"{partition}.logFileCount", str(len(logs))
        yield f"{partition}.totalBaseFileSizeInBytes", str(sum(entry.size for entry in bases))
        yield f"{partition}.totalLogFileSizeInBytes", str(sum(entry.size for entry in logs))


def validate_files(called: Called) -> Rows:
    """Files that the storage and the metadata table say differently; all of them with `verbose`."""
    listed, stored = listed_folders(_opened(called)).marked, list_folders(called.state.storage).marked
    for partition in sorted({*listed, *stored}):
        listed_sizes, stored_sizes = _sizes(listed.get(partition, ())), _sizes(stored.get(partition, ()))
        for name in sorted({*listed_sizes, *stored_sizes}):
            ours, theirs = stored_sizes.get(name), listed_sizes.get(name)
            if called.get("verbose") or ours != theirs:
                yield partition, name, ours is not None, theirs is not None, ours or 0, theirs or 0


def _sizes(entries: Iterable[Entry]) -> Mapping[str, int]:
    """The sizes of data files: metafiles and checksums are in no file list."""
    names = {entry.name: entry.size for entry in entries if entry.name not in METAFILES}
    return {name: size for name, size in names.items() if not name.endswith(".crc")}


def show_column_stats(called: Called) -> Rows:
    state = called.state
    rows = metadata_rows(state.storage, state.config, state.timeline, MetadataPartition.COLUMN_STATS.value)
    columns = {name.strip() for name in str(called.get("targetColumns", "")).split(",") if name.strip()}
    for row in rows.to_pylist():
        if not columns or row["column"] in columns:
            yield row["file"], row["column"], row["min"], row["max"], row["nulls"]


def _opened(called: Called) -> MetadataTable:
    state = called.state
    table = open_metadata(state.storage, state.config, state.timeline)
    if table is None:
        raise called.problem("the table has no metadata table: CALL create_metadata_table builds one")
    return table
