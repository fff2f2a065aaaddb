"""`.hoodie/hoodie.properties` on storage: read it while someone else may be changing it, and change it so that a dead
writer leaves the old settings or the new.

Source: HoodieTableConfig of Hudi 0.15 (`modify`, `recover`, `fetchConfigs`).
"""

import datetime as dt
import re
import time
from collections.abc import Callable, Mapping
from functools import lru_cache

from hoodie.errors import CorruptFile, InvalidInput, SettingsMissing, TableNotFound
from hoodie.formats.java.properties import (
    CHECKSUM,
    parse_properties,
    render_properties,
    table_checksum,
    verify_checksum,
)
from hoodie.storage.driver_errors import no_bucket
from hoodie.storage.protocol import Entry, Storage, join, rewrite
from hoodie.table.other_tables import other_table

PROPERTIES = ".hoodie/hoodie.properties"
BACKUP = ".hoodie/hoodie.properties.backup"
_DATABASE, _TABLE = "hoodie.database.name", "hoodie.table.name"
_COMMIT = re.compile(r"\d{14,17}(_\d+)?\.(commit|deltacommit|replacecommit)")
_ROUNDS = 5
_PAUSE = 1.0  # seconds between rounds


def load_properties(storage: Storage, sleep: Callable[[float], None] = time.sleep) -> dict[str, str]:
    """The table's settings, from the file or, while another writer replaces it, from its backup.

    Both names can be missing or half written for a moment, so up to five rounds, a second apart, are made, as long as
    the files change; none where `.hoodie` holds no file at all. Damage that is the same after a second is no writer's.

    Raises TableNotFound, as for a missing bucket; SettingsMissing when there are commits; CorruptFile when neither file
    is whole: malformed, without a table name, or with a checksum that is not that of its names
    """
    damage: CorruptFile | None = None
    entries: list[Entry] = []
    for round in range(_ROUNDS):
        if round:
            sleep(_PAUSE)
        before, damage = entries, None
        for path in (PROPERTIES, BACKUP):
            try:
                return _read(storage, path)
            except NotADirectoryError:
                raise TableNotFound(_file_in_the_way(storage), is_file=True) from None
            except FileNotFoundError as error:
                if no_bucket(error):
                    raise TableNotFound(storage.root, str(error)) from error
                continue
            except CorruptFile as error:
                damage = damage or error  # the first one: it is nearer to the table
        entries = storage.list(".hoodie")
        if damage is None and not entries:
            break
        entries = [entry for entry in entries if entry.name.startswith("hoodie.properties")]
        if round and entries == before:
            break
    if damage is not None:
        raise damage
    if any(commits := completed_commits(storage)):
        raise SettingsMissing(storage.root, sum(commits), 2 if commits[1] else 1)
    raise TableNotFound(storage.root, holds=other_table(storage))


def _file_in_the_way(storage: Storage) -> str:
    try:
        storage.list()
    except NotADirectoryError:
        return storage.root
    return f"{storage.root}/.hoodie"


def completed_commits(storage: Storage, folder: str = "") -> tuple[int, int]:
    """How many completed commits lie on the active timeline of a folder, as layout 1 and as layout 2 have them, by the
    names of files alone."""
    meta = join(folder, ".hoodie")
    names = [entry.name for entry in storage.list(meta)]
    later = [entry.name for entry in storage.list(join(meta, "timeline"))] if "timeline" in names else []
    return sum(map(bool, map(_COMMIT.fullmatch, names))), sum(map(bool, map(_COMMIT.fullmatch, later)))


def create_properties(storage: Storage, values: Mapping[str, str], now: dt.datetime | None = None) -> dict[str, str]:
    """Publish the settings of a new table, with their checksum; what was written.

    Raises FileExistsError when a table is there already; InvalidInput without a table name
    """
    complete = _with_checksum(values)
    storage.create_new(PROPERTIES, _render(complete, "Properties saved on", now))
    return complete


def update_properties(
    storage: Storage,
    change: Mapping[str, str | None],
    sleep: Callable[[float], None] = time.sleep,
    now: dt.datetime | None = None,
) -> dict[str, str]:
    """Change settings of a table; all of them as they are afterwards. None removes a key.

    The old file is kept as `hoodie.properties.backup` until the new one is there and reads back well. Hudi deletes the
    file before it writes the new one; `Storage.write` replaces it whole, so readers never miss it. What a dead writer
    left behind is recovered first. The backup keeps out nobody: with more than one writer the caller holds the lock.

    Raises TableNotFound; CorruptFile when neither file is whole, or when what was written does not read back;
           FileExistsError when another writer is changing the file right now
    """
    recover(storage)
    old = load_properties(storage, sleep)
    new = {key: value for key, value in {**old, **change}.items() if value is not None}
    new = _with_checksum(new)
    if new == old:
        return old
    storage.create_new(BACKUP, storage.read(PROPERTIES))
    rewrite(storage, PROPERTIES, _render(new, "Updated at", now))
    if _parse(storage.read(PROPERTIES), PROPERTIES) != new:
        advice = f"{BACKUP} holds the settings as they were; do not let two writers change them without a lock."
        raise CorruptFile(PROPERTIES, "the settings that were just written do not read back", advice=advice)
    storage.delete(BACKUP)
    return new


def recover(storage: Storage) -> None:
    """Finish what a dead writer began: its backup replaces a file that is missing or not whole. Idempotent.

    Raises CorruptFile when neither file is whole: both stay as they are
    """
    if not storage.exists(BACKUP):
        return
    backup = storage.read(BACKUP)
    try:
        _read(storage, PROPERTIES)
    except (FileNotFoundError, CorruptFile):
        _parse(backup, BACKUP)  # raises, and both files stay for a person to look at
        rewrite(storage, PROPERTIES, backup)
    storage.delete(BACKUP)


def rewrite_checksum(storage: Storage, now: dt.datetime | None = None) -> None:
    """Give the settings the checksum of the names in them, whatever it was.

    Raises TableNotFound; CorruptFile when the file is malformed or names no table
    """
    try:
        properties = parse_properties(storage.read(PROPERTIES), PROPERTIES)
    except FileNotFoundError:
        raise TableNotFound(storage.root) from None
    if not properties.get(_TABLE):
        raise CorruptFile(PROPERTIES, f"{_TABLE} is missing", advice="Restore the file from a copy of the table.")
    rewrite(storage, PROPERTIES, _render(_with_checksum(properties), "Checksum written anew at", now))


def _read(storage: Storage, path: str) -> dict[str, str]:
    """The settings in a file. Raises FileNotFoundError; CorruptFile."""
    data = storage.read(path)
    properties = _parse(data, path)
    if path == PROPERTIES and (CHECKSUM not in properties or not data.endswith(b"\n")) and storage.exists(BACKUP):
        # Well-formed as far as it goes. Hudi writes the file in place: while the settings of before are kept, one
        # without its last line's end, or without the checksum that they had, is not whole.
        try:
            before = _parse(storage.read(BACKUP), BACKUP)
        except (CorruptFile, FileNotFoundError):
            return properties
        if CHECKSUM in before and CHECKSUM not in properties:
            raise CorruptFile(path, f"{CHECKSUM} is missing, and {BACKUP} has it")
        if not data.endswith(b"\n"):
            raise CorruptFile(path, "the last line has no end: a writer is at it, or died", len(data))
    return properties


def _parse(data: bytes, path: str) -> dict[str, str]:
    return dict(_entries(data, path))


@lru_cache(maxsize=64)  # each call on a table reads the same bytes
def _entries(data: bytes, path: str) -> Mapping[str, str]:
    properties = parse_properties(data, path)
    if not properties.get(_TABLE):  # a file cut short, down to no bytes at all, is well-formed
        advice = "A writer likely died within it; restore the file from a backup."
        raise CorruptFile(path, f"{_TABLE} is missing", advice=advice)
    verify_checksum(properties, path)
    return properties


def _with_checksum(values: Mapping[str, str]) -> dict[str, str]:
    if not values.get(_TABLE):
        raise InvalidInput(f"{_TABLE} is missing: a table needs a name")
    return {**values, CHECKSUM: table_checksum(values.get(_DATABASE, ""), values[_TABLE])}


def _render(values: Mapping[str, str], comment: str, now: dt.datetime | None) -> bytes:
    moment = now or dt.datetime.now(dt.UTC)
    return render_properties(values, f"{comment} {moment.isoformat(timespec='milliseconds')}", moment)
