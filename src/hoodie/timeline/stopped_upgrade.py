"""Tables of version 6 whose upgrade by Hudi 1.x stopped half-way.

Their instants lie in the timeline folder of version 8, while hoodie.properties, which an upgrade writes last, says
version 6: readers of both versions see a table without commits. Moving the instants back is the way out: their files
are those of version 6 but for names with a completion time, and commits in Avro.
"""

from __future__ import annotations

from hoodie.errors import UnsupportedTable
from hoodie.formats.timeline.commit_json import encode_commit
from hoodie.model.instant import COMMITS, Action, State
from hoodie.storage.protocol import Storage, join
from hoodie.timeline.layout import parse_name

#: In `.hoodie`, of tables of version 8 and 9.
UPGRADED_FOLDER = "timeline"

#: In that folder while instants are copied into it, until hoodie.properties says which folder holds.
COPIED = ".copied_for_upgrade"

_OLD, _NEW = ".hoodie", f".hoodie/{UPGRADED_FOLDER}"
_AVRO = b"Obj\x01"


def instants_moved(storage: Storage) -> list[str]:
    """The instant files in the folder of version 8, in the order in which they are moved back: an instant's completed
    file last. None where an upgrade by this library stopped: its instants are copies (`COPIED`)."""
    names = [entry.name for entry in storage.list(_NEW) if not entry.is_dir]
    if COPIED in names:
        return []
    moved = [(instant, name) for name in names if (instant := parse_name(name, 2, _NEW)) is not None]
    return [name for _, name in sorted(moved, key=lambda each: (each[0].requested, each[0].state, each[1]))]


def refuse_stopped_upgrade(storage: Storage) -> None:
    """Raises UnsupportedTable when instants of a table of version 6 lie in the folder of version 8."""
    if moved := instants_moved(storage):
        raise UnsupportedTable(stopped(len(moved)))


def stopped(count: int) -> str:
    return (
        f"{_NEW} holds {count} instant files, while hoodie.properties says version 6: an upgrade by Hudi 1.x stopped "
        "half-way, and no reader sees these commits. `hoodie check --repair` moves them back, `hoodie upgrade` finishes"
    )


def move_back(storage: Storage) -> None:
    """Move the instants back. A repetition after a crash goes on."""
    from hoodie.formats.timeline.services import decode_avro_commit  # with fastavro, which a look at a table is without

    for name in instants_moved(storage):
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
