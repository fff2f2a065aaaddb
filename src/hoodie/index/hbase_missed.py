"""What a table remembers of its HBase index: instants that were taken back, whose keys the index may lack since.

A commit that deletes or moves keys takes their entries away. When it is rolled back its rows come back; their entries
must be put again. So before it goes a small file in `.hoodie/.hbase_index` names it, with the file groups that lost
keys by it, and that file goes once the index has the entries. Readers and writers of Hudi's do not look there.

Each file is written once and whole, and removed by whoever has done what it asks for, which may be done twice. One
counts once its instant is completed no more: whoever wrote it may have died before, or is still at work.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hoodie.errors import CorruptFile
from hoodie.model.files import FileGroupId
from hoodie.storage.protocol import Storage, is_temporary, join
from hoodie.timeline.timeline import Timeline

FOLDER = ".hoodie/.hbase_index"
_END = ".missed"


@dataclass(frozen=True, slots=True)
class Missed:
    """An instant that is taken back, and the file groups to which rows come back by that."""

    instant: str
    groups: frozenset[FileGroupId]


def remember(storage: Storage, missed: Missed) -> None:
    """Before the instant is taken back."""
    groups = sorted((group.partition, group.file_id) for group in missed.groups)
    content = json.dumps({"instant": missed.instant, "groups": groups}, indent=1)
    with suppress(FileExistsError):  # of an attempt before: the same instant lost the same keys
        storage.create_new(_path(missed.instant), content.encode())


def forget(storage: Storage, instant: str) -> None:
    """Once the index has what it missed, or the instant was not taken back after all."""
    storage.delete(_path(instant))


def remembered(storage: Storage) -> list[Missed]:
    """All that is remembered, oldest first. One listing. Raises CorruptFile."""
    found = []
    for entry in storage.list(FOLDER):
        if entry.name.endswith(_END) and not is_temporary(entry.name):
            path = join(FOLDER, entry.name)
            with suppress(FileNotFoundError):  # done by another writer, just now
                found.append(_parse(storage.read(path), path))
    return found


def due(missed: Collection[Missed], timeline: Timeline) -> Sequence[Missed]:
    """Those whose instant is not completed."""
    completed = {instant.requested for instant in timeline.commits}
    return [each for each in missed if each.instant not in completed]


def _path(instant: str) -> str:
    return join(FOLDER, instant + _END)


def _parse(data: bytes, path: str) -> Missed:
    try:
        content = json.loads(data)
        groups = frozenset(FileGroupId(partition, file_id) for partition, file_id in content["groups"])
        return Missed(str(content["instant"]), groups)
    except (ValueError, KeyError, TypeError) as problem:
        raise CorruptFile(
            path, f"what the HBase index missed cannot be read: {problem}", advice="Run `hoodie index rebuild`."
        ) from problem
