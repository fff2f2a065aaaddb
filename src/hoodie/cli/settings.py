"""What a table has beside rows: its properties, and its metadata table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hoodie.cli.output import Block, Grid
from hoodie.cli.secrets import masked_properties
from hoodie.display.summary import bytes_text
from hoodie.errors import TableNotFound
from hoodie.facts.opened import look, look_at_metadata_table
from hoodie.storage import storage_beside
from hoodie.storage.protocol import Storage

_FOLDER = ".hoodie/metadata"


@dataclass(frozen=True, slots=True)
class MetadataPartition:
    """A partition of the metadata table, such as "files".

    state  "ready": readers trust it; "inflight": it is being built; "unlisted": nothing names it
    """

    name: str
    state: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Metadata:
    """Properties, and the metadata table.

    properties  as stored; values of credentials are masked
    exists      there is a metadata table
    version     its table version; 0 without one
    newest      instant of its newest commit; ""
    behind      completed commits of the table that are newer
    """

    properties: Mapping[str, str]
    exists: bool
    version: int
    newest: str
    behind: int
    partitions: tuple[MetadataPartition, ...]


def metadata(storage: Storage) -> Metadata:
    """Look at a table's properties and its metadata table. Raises TableNotFound; CorruptFile"""
    config, timeline = look(storage)
    properties = dict(sorted(masked_properties(config.properties).items()))
    version, newest, exists = 0, "", False
    with suppress(TableNotFound):
        theirs, theirs_timeline = look_at_metadata_table(
            storage_beside(storage, f"{storage.root.rstrip('/')}/{_FOLDER}")
        )
        exists, version, newest = True, theirs.version, theirs_timeline.newest_commit
    states = dict.fromkeys(config.metadata_inflight, "inflight") | dict.fromkeys(config.metadata_partitions, "ready")
    folders: dict[str, tuple[int, int]] = {}
    for folder, entries in storage.list_tree(_FOLDER, skip=(".hoodie",)).items() if exists else ():
        name = folder[len(_FOLDER) + 1 :].split("/")[0]
        count, total = folders.get(name, (0, 0))
        folders[name] = count + len(entries), total + sum(entry.size for entry in entries)
    folders.pop("", None)
    return Metadata(
        properties=properties,
        exists=exists,
        version=version,
        newest=newest,
        behind=sum(instant.requested > newest for instant in timeline.commits) if exists else 0,
        partitions=tuple(
            MetadataPartition(name, states.get(name, "unlisted"), *folders.get(name, (0, 0)))
            for name in sorted({*states, *folders})
        ),
    )


def text(found: Metadata) -> Sequence[Block]:
    blocks: list[Block] = [f"{key}={value}" for key, value in found.properties.items()]
    if not found.exists:
        return [*blocks, "", "no metadata table"]
    behind = f", {found.behind} commits behind the table" if found.behind else ""
    blocks += ["", f"metadata table of version {found.version}, newest commit {found.newest or '-'}{behind}"]
    rows = [(part.name, part.state, part.files, bytes_text(part.bytes)) for part in found.partitions]
    return [*blocks, Grid(("partition", "state", "files", "size"), rows)] if rows else blocks
