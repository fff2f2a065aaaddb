"""The newest commit that left the active timeline: by it a query of changes knows whether its commits are all there."""

from __future__ import annotations

from hoodie.config.table import TableConfig
from hoodie.model.instant import COMMITS, State
from hoodie.storage.protocol import Storage
from hoodie.timeline.archive import archived_entries
from hoodie.timeline.load import history_files


def newest_archived(storage: Storage, config: TableConfig, before: str) -> str:
    """Time of the newest completed commit that is in the archive only; "" when none is.

    before   the oldest commit of the active timeline: an archiver may have died between the two
    Raises   CorruptFile
    Archive files are read from the newest on, until one tells: cleans and rollbacks are archived apart.
    """
    if config.layout == 2:
        # A name tells the times of all instants in the file: at least as new as its newest commit.
        times = (name.split("_")[1] for name in history_files(storage, config.history_folder))
        return max((time for time in times if time < before), default="")
    newest = file = ""
    for entry in archived_entries(storage, config):
        if newest and entry.path != file:
            break
        file, instant = entry.path, entry.instant
        if instant.state is State.COMPLETED and instant.action in COMMITS and newest < instant.requested < before:
            newest = instant.requested
    return newest
