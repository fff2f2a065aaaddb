"""Replacing a table by another at the same path: when which settings hold.

The new rows are published by one replace commit; the new settings wait for it in `hoodie.properties`, beside the old
ones, and hold from the moment that it is completed. Design: docs/design/overwrite.md.
"""

from collections.abc import Mapping

from hoodie.config.table import REPLACED, TableConfig
from hoodie.errors import InvalidInput, WriteConflict
from hoodie.model.instant import Action
from hoodie.storage.protocol import Storage
from hoodie.table.properties import load_properties, update_properties
from hoodie.timeline.timeline import Timeline

#: The instant of the replace commit that the waiting settings are for.
WAITING = "hoodie.table.replacing.instant"
_PROPERTY = "hoodie.table.replacing.property."
#: A moment after every commit there is: the table as it will be.
NOT_YET = "9" * 17
#: In a commit's metadata: it replaced the table.
REPLACES = "hoodie.table.replaced"

#: What the new table takes over: these say where and how the timeline is kept, which goes on.
_KEPT = (
    "hoodie.table.version",
    "hoodie.table.initial.version",
    "hoodie.timeline.layout.version",
    "hoodie.timeline.path",
    "hoodie.timeline.history.path",
    "hoodie.table.timeline.timezone",
    "hoodie.archivelog.folder",
)


def taking_over(settings: Mapping[str, str], old_settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a new table in place of an old one.

    settings      of the new table, as if nothing were there
    old_settings  of the old one
    """
    return {**settings, **{key: old_settings[key] for key in _KEPT if key in old_settings}}


def settings_in_force(properties: Mapping[str, str], timeline: Timeline) -> dict[str, str] | None:
    """The settings that waited for a replace commit which is completed; None when those in place hold.

    properties  as stored
    """
    instant = properties.get(WAITING, "")
    completed = timeline.completed({Action.REPLACE_COMMIT})
    if not instant or all(commit.requested != instant for commit in completed):
        return None
    waiting = {key.removeprefix(_PROPERTY): properties[key] for key in properties if key.startswith(_PROPERTY)}
    return {**waiting, REPLACED: instant, WAITING: instant}


def let_wait(storage: Storage, instant: str, settings: Mapping[str, str]) -> None:
    """Put new settings beside those in place, for when the replace commit of that instant is completed. Those that wait
    for another one go. The caller holds the table's lock, where there is one.

    Raises WriteConflict when another writer is changing the settings
    """
    properties = load_properties(storage)
    change: dict[str, str | None] = {key: None for key in properties if key.startswith(_PROPERTY)}
    change |= {WAITING: instant} | {_PROPERTY + key: value for key, value in settings.items()}
    _update(storage, change)


def settle(storage: Storage, config: TableConfig) -> bool:
    """Put settings that hold in place, if they are still beside the old ones; whether they were.

    config  of the table as it was loaded
    Raises  WriteConflict when another writer is changing the settings
    """
    instant = config.properties.get(WAITING, "")
    if not instant or config.replaced_at != instant:
        return False
    properties = load_properties(storage)
    if properties.get(WAITING) == instant:
        held = {key: value for key, value in config.properties.items() if key != WAITING}
        _update(storage, {**dict.fromkeys(properties, None), **held})
    return True


def _update(storage: Storage, change: Mapping[str, str | None]) -> None:
    try:
        update_properties(storage, change)
    except FileExistsError as error:
        raise WriteConflict("another writer is changing the table's settings; write again") from error


def refuse_before(config: TableConfig, instant: str, what: str) -> None:
    """Raise InvalidInput when an instant is of the table that the one at hand replaced.

    what  could not be done, for the error: "read as of"
    """
    if instant < config.replaced_at < NOT_YET:
        raise InvalidInput(
            f"{config.name} cannot be {what} {instant}: an overwrite replaced the whole table at {config.replaced_at}, "
            "with its settings and columns. Take that instant or a later one."
        )
