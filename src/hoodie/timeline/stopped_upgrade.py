"""Instants of a table of version 6 that lie in the timeline folder of version 8: its upgrade by Hudi 1.x stopped
half-way, or a write that began before a downgrade, without a lock, has put them there.

hoodie.properties, which an upgrade writes last, says version 6: where it stopped, readers of both versions see a table
without commits. Moving the instants back is the way out: their files are those of version 6 but for names with a
completion time, and commits in Avro. A write of before a downgrade has published nothing, so that readers do without
it; the next write moves its instant back, and rolls it back where its writer is dead.
"""

import re
from collections.abc import Collection, Sequence

from hoodie.errors import UnsupportedTable
from hoodie.formats.timeline.commit_json import encode_commit
from hoodie.model.instant import COMMITS, Action, State
from hoodie.storage.protocol import Storage, join
from hoodie.timeline.timeline import parse_name

#: In `.hoodie`, of tables of version 8 and 9.
UPGRADED_FOLDER = "timeline"

#: In that folder while instants are copied into it, until hoodie.properties says which folder holds.
COPIED = ".copied_for_upgrade"

_OLD, _NEW = ".hoodie", f".hoodie/{UPGRADED_FOLDER}"
_AVRO = b"Obj\x01"
#: A completed instant of version 6, of any action.
_COMPLETED = re.compile(r"(\d+)\.(?!inflight$)[^.]+", re.ASCII)


def instants_moved(storage: Storage, *, copied: bool = False) -> list[str]:
    """The instant files in the folder of version 8, in the order in which they are moved back: an instant's completed
    file last. None where an upgrade by this library stopped: its instants are copies (`COPIED`).

    copied  also where they are copies, or were copied
    """
    names = [entry.name for entry in storage.list(_NEW) if not entry.is_dir]
    if COPIED in names and not copied:
        return []
    moved = [(instant, name) for name in names if (instant := parse_name(name, 2, _NEW)) is not None]
    return [name for _, name in sorted(moved, key=lambda pair: (pair[0].requested, pair[0].state, pair[1]))]


def late_writes(storage: Storage, files: Collection[str], *, copied: bool = False) -> list[str]:
    """The files of writes in the folder of version 8 that are completed in neither timeline, as `instants_moved` orders
    them. The upgrade of Hudi leaves none: it rolls failed writes back before.

    files   names of the files in the timeline of version 6. A write that is older than all that is completed there may
            have been archived, and is not among the late ones
    copied  the other instants there have just been copied by a downgrade
    """
    completed = {match[1] for name in files if (match := _COMPLETED.fullmatch(name))}
    first = min(completed, default="")
    moved = instants_moved(storage, copied=copied)
    names = {name: instant for name in moved if (instant := parse_name(name, 2, _NEW))}
    others = {i.requested for i in names.values() if i.state is State.COMPLETED or i.action not in COMMITS}
    return [name for name, i in names.items() if i.requested > first and i.requested not in completed | others]


def stopped_upgrade(storage: Storage, files: Collection[str]) -> list[str]:
    """The instant files that an upgrade has moved before it stopped; none where all are of late writes.

    files  as for `late_writes`
    """
    moved = instants_moved(storage)
    return moved if moved and len(late_writes(storage, files)) < len(moved) else []


def refuse_stopped_upgrade(storage: Storage, files: Collection[str]) -> None:
    """Raises UnsupportedTable when instants of a table of version 6 lie in the folder of version 8.

    files  as for `late_writes`
    """
    if moved := stopped_upgrade(storage, files):
        raise UnsupportedTable(stopped(len(moved)))


def stopped(count: int) -> str:
    return (
        f"{_NEW} holds {count} instant files, while hoodie.properties says version 6: an upgrade by Hudi 1.x stopped "
        "half-way, and no reader sees these commits. `hoodie check --repair` moves them back, `hoodie upgrade` finishes"
    )


def move_back(storage: Storage, names: Sequence[str] | None = None) -> None:
    """Move instants back. A repetition after a crash goes on.

    names  their files, in order; None: all of an upgrade that stopped
    """
    from hoodie.formats.timeline.commit_avro import (
        decode_avro_commit,  # with fastavro, which a look at a table is without
    )

    for name in instants_moved(storage) if names is None else names:
        path = join(_NEW, name)
        instant = parse_name(name, 2, _NEW)
        assert instant is not None  # it was found so
        data = storage.read(path)
        if instant.action in COMMITS and instant.state is not State.REQUESTED and data.startswith(_AVRO):
            replacing = instant.state is State.COMPLETED and instant.action is Action.REPLACE_COMMIT
            data = encode_commit(decode_avro_commit(data, path, replacing))
        old = join(_OLD, name.replace(f"_{instant.completed}", "") if instant.completed else name)
        if not storage.exists(old):
            storage.create_new(old, data)
        storage.delete(path)
