"""What a table records about its HBase index: rolled back instants whose keys the index may lack.

A commit that deletes or moves keys removes their entries. A rollback of it brings the rows back; their entries must be
put again. So before the rollback a small file in `.hoodie/.hbase_index` names the commit, with the file groups that
lost keys by it; it is removed once the index has the entries. Readers and writers of Hudi's ignore it.

Each file is written once and whole, and removed by the process that restored the entries, which is idempotent. A file
counts once its instant is no longer completed: until then its writer may have died, or is still working.
"""

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
class MissedRollback:
    """An instant that is rolled back, and the file groups whose rows that restores."""

    instant: str
    groups: frozenset[FileGroupId]


def record_missed(storage: Storage, missed: MissedRollback) -> None:
    """Record the instant, before it is rolled back."""
    groups = sorted((group.partition, group.file_id) for group in missed.groups)
    content = json.dumps({"instant": missed.instant, "groups": groups}, indent=1)
    with suppress(FileExistsError):  # of an earlier attempt: the same instant lost the same keys
        storage.create_new(_path(missed.instant), content.encode())


def forget_missed(storage: Storage, instant: str) -> None:
    """Remove the record: the index has the entries, or the instant was not rolled back."""
    storage.delete(_path(instant))


def recorded_instants(storage: Storage) -> list[MissedRollback]:
    """All recorded instants, oldest first. One listing. Raises CorruptFile."""
    missed = []
    for entry in storage.list(FOLDER):
        if entry.name.endswith(_END) and not is_temporary(entry.name):
            path = join(FOLDER, entry.name)
            with suppress(FileNotFoundError):  # done by another writer meanwhile
                missed.append(_parse(storage.read(path), path))
    return missed


def uncompleted(missed: Collection[MissedRollback], timeline: Timeline) -> Sequence[MissedRollback]:
    """Those whose instant is not completed."""
    completed = {instant.requested for instant in timeline.commits}
    return [entry for entry in missed if entry.instant not in completed]


def _path(instant: str) -> str:
    return join(FOLDER, instant + _END)


def _parse(data: bytes, path: str) -> MissedRollback:
    try:
        content = json.loads(data)
        groups = frozenset(FileGroupId(partition, file_id) for partition, file_id in content["groups"])
        return MissedRollback(str(content["instant"]), groups)
    except (ValueError, KeyError, TypeError) as problem:
        raise CorruptFile(
            path, f"the record of missed entries cannot be read: {problem}", advice="Run `hoodie index rebuild`."
        ) from problem
