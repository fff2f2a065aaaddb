"""Files that are rewritten in place lose the checksum that Hadoop keeps beside them, on whatever storage."""

from collections.abc import Callable

import pytest

from hoodie.commit.rollback_executor import unpublish
from hoodie.model.instant import Action
from hoodie.services.compaction.schedule import repair_compaction, schedule_compaction
from hoodie.storage.protocol import Storage, hadoop_checksum, rewrite
from hoodie.table.properties import BACKUP, PROPERTIES, recover, rewrite_checksum, update_properties
from hoodie.table.settings import Settings
from hoodie.testing.storage import Crash, CrashAfter, Dying, MemoryStorage
from hoodie.timeline.timeline import LAYOUT_1
from support.undoing import COW, LATER, MOR, NOW, batch, newest, opened, table


def with_checksums(storage: MemoryStorage) -> MemoryStorage:
    """Every file has one, as on a table that Hudi wrote to a local disk."""
    for path in storage.snapshot():
        storage.write(hadoop_checksum(path), b"crc\0of " + storage.read(path)[:20])
    return storage


def stale(before: MemoryStorage, after: MemoryStorage) -> list[str]:
    """Files that hold something else than when their checksum was written."""
    then, now = before.snapshot(), after.snapshot()
    return sorted(path for path in now if hadoop_checksum(path) in now and path in then and then[path] != now[path])


def settings(storage: Storage) -> None:
    update_properties(storage, {"hoodie.table.cdc.enabled": "true"})


def recovered(storage: Storage) -> None:
    storage.write(BACKUP, storage.read(PROPERTIES))
    storage.write(PROPERTIES, b"hood")
    recover(storage)


def overwrite_made_pending(storage: Storage) -> None:
    unpublish(storage, newest(storage), Action.REPLACE_COMMIT, keep_stats=True, layout=LAYOUT_1)


def plan_repaired(storage: Storage) -> None:
    (path,) = (p for p in storage.list(".hoodie") if p.name.endswith(".compaction.requested"))
    (log,) = [f for f in storage.list("oslo") if ".log." in f.name][-1:]
    storage.delete(f"oslo/{log.name}")
    assert repair_compaction(storage, Settings.of({}), path.name[:17])


WAYS: dict[str, tuple[dict[str, str], Callable[[Storage], object]]] = {
    "settings": (COW, settings),
    "settings from their backup": (COW, recovered),
    "checksum of the settings": (COW, rewrite_checksum),
    "pending files of an overwrite": (COW, overwrite_made_pending),
    "plan of a compaction": (MOR, plan_repaired),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_file_keeps_the_checksum_of_its_old_bytes(way: str) -> None:
    options, act = WAYS[way]
    storage = table(options)
    if way == "plan of a compaction":
        schedule_compaction(storage, Settings.of(NOW))
    if way == "pending files of an overwrite":
        opened(storage).insert_overwrite(batch(LATER))
    storage = with_checksums(storage)
    after = storage.copy()
    act(after)
    assert after.snapshot() != storage.snapshot()
    assert stale(storage, after) == []


def test_a_writer_that_dies_while_it_rewrites_a_file_leaves_no_stale_checksum() -> None:
    for how in Dying:
        for calls in range(3):
            storage = MemoryStorage({"a/f": b"old", "a/.f.crc": b"crc of old"})
            try:
                rewrite(CrashAfter(storage, calls, how), "a/f", b"new")
            except Crash:
                assert storage.read("a/f") == b"old" or not storage.exists("a/.f.crc")
                continue
            assert storage.snapshot() == {"a/f": b"new"}
