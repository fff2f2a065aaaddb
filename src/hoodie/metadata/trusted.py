"""What a metadata table says, if it may be believed; if not, a warning says why, and the storage is listed.

It is checked at each read, by what is read anyway: both timelines, the blocks of its logs, and whether what it lists
has the files that recent commits name (`hoodie.reading.complete_view`).
"""

import warnings
from collections.abc import Callable, Collection
from typing import TypeVar

from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile, MetadataTableIgnored, UnsupportedTable
from hoodie.metadata.keys import FOLDER
from hoodie.metadata.listing import listed_folders
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.storage.protocol import Storage
from hoodie.timeline.timeline import Timeline
from hoodie.view.load import Folders

T = TypeVar("T")

#: Times that it is opened when its cleaning takes a file away that is about to be read.
_TRIES = 2


def trusted_listing(
    storage: Storage, config: TableConfig, timeline: Timeline, partitions: Collection[str] | None
) -> tuple[MetadataTable, Folders] | None:
    """The metadata table of a data table, and the files that it lists; None: there is none, or it is of no use.

    timeline    of the data table
    partitions  as of `listed_folders`
    Warns       MetadataTableIgnored when it is out of date or damaged
    """

    def read() -> tuple[MetadataTable, Folders] | str | None:
        table = open_metadata(storage, config, timeline)
        if table is None:
            return None
        return table.problem() or (table, listed_folders(table, partitions))

    listing = _result_or_problem(read)
    if isinstance(listing, str):
        ignore(storage, listing)
        return None
    return listing


def read_or_warn(table: MetadataTable, read: Callable[[MetadataTable], T]) -> T | None:
    """What is read of a metadata table that has told the files. None, with a warning: it is damaged"""
    records = _result_or_problem(lambda: (read(table),))
    if isinstance(records, str):
        ignore(table.storage, records, root=table.storage.root)
        return None
    return records[0]


def ignore(storage: Storage, problem: str, root: str = "") -> None:
    """Warn that a metadata table is not used."""
    path = root or f"{storage.root.rstrip('/')}/{FOLDER}"
    warnings.warn(MetadataTableIgnored(path, problem), stacklevel=5)


def _result_or_problem(read: Callable[[], T]) -> T | str:
    for attempt in range(_TRIES):
        try:
            return read()
        except FileNotFoundError as error:
            if attempt == _TRIES - 1:
                return f"a file of it is gone: {error}"
        except (CorruptFile, UnsupportedTable) as damage:
            return str(damage)
    raise AssertionError("unreachable")
