import datetime as dt
from itertools import count

import pytest

from hoodie.errors import CorruptFile, InvalidInput, SettingsMissing, TableNotFound
from hoodie.formats.java.properties import table_checksum
from hoodie.storage import WrappedStorage
from hoodie.table.properties import BACKUP, PROPERTIES, create_properties, load_properties, update_properties
from hoodie.testing.storage import CountingStorage, Crash, CrashAfter, Dying, MemoryStorage
from support.meanwhile import Meanwhile, calls_of

NOW = dt.datetime(2024, 7, 7, 5, 13, 2, tzinfo=dt.UTC)
GIVEN = {"hoodie.table.name": "trips", "hoodie.table.version": "6", "hoodie.table.create.schema": '{"type":"record"}'}
STORED = GIVEN | {"hoodie.table.checksum": table_checksum("", "trips")}
CHANGE = {"hoodie.table.version": None, "hoodie.table.metadata.partitions": "", "hoodie.database.name": "db"}
CHANGED = {
    "hoodie.table.name": "trips",
    "hoodie.table.create.schema": '{"type":"record"}',
    "hoodie.table.metadata.partitions": "",
    "hoodie.database.name": "db",
    "hoodie.table.checksum": table_checksum("db", "trips"),
}


@pytest.fixture
def storage():
    made = MemoryStorage()
    create_properties(made, GIVEN, NOW)
    return made


def no_sleep(_):
    raise AssertionError("nothing to wait for")


def test_a_new_table_has_its_settings_and_their_checksum(storage):
    assert load_properties(storage, no_sleep) == STORED
    assert storage.snapshot().keys() == {PROPERTIES}


def test_a_second_creator_fails_and_changes_nothing(storage):
    before = storage.snapshot()
    with pytest.raises(FileExistsError):
        create_properties(storage, GIVEN | {"hoodie.table.name": "other"})
    assert storage.snapshot() == before


def test_a_table_needs_a_name(storage):
    with pytest.raises(InvalidInput, match=r"hoodie\.table\.name"):
        create_properties(MemoryStorage(), {})
    with pytest.raises(InvalidInput, match=r"hoodie\.table\.name"):
        update_properties(storage, {"hoodie.table.name": None})
    assert load_properties(storage) == STORED


def test_an_empty_path_holds_no_table_and_says_so_at_once():
    with pytest.raises(TableNotFound):
        load_properties(MemoryStorage({"other/file": b""}), no_sleep)


def test_a_table_folder_without_settings_is_looked_at_twice():
    storage, slept = CountingStorage(MemoryStorage({".hoodie/001.commit": b"{}"})), []
    with pytest.raises(TableNotFound):
        load_properties(storage, slept.append)
    assert slept == [1.0]
    assert storage.count("read") == 4


def test_settings_that_change_are_looked_at_five_times():
    storage, slept = MemoryStorage({".hoodie/001.commit": b"{}", PROPERTIES: b"#"}), []

    def write_more(seconds):
        slept.append(seconds)
        storage.write(PROPERTIES, b"#" * (1 + len(slept)))

    with pytest.raises(CorruptFile):
        load_properties(storage, write_more)
    assert slept == [1.0] * 4


@pytest.mark.parametrize(
    "commit", [".hoodie/20240101000000000.commit", ".hoodie/timeline/20240101000000000_20240101000000009.deltacommit"]
)
def test_a_timeline_that_lost_its_settings_is_no_empty_path(commit):
    storage = MemoryStorage({commit: b"{}", ".hoodie/20240101000000001.commit.requested": b""})
    with pytest.raises(SettingsMissing, match=r"the timeline has 1 commits.*Put the file back"):
        load_properties(storage, lambda _: None)
    create_properties(storage, {"hoodie.table.name": "again"})  # what the error says to do
    assert load_properties(storage, no_sleep)["hoodie.table.name"] == "again"


def test_the_backup_is_read_while_the_file_is_away(storage):
    data = storage.read(PROPERTIES)
    storage.create_new(BACKUP, data)
    storage.delete(PROPERTIES)
    assert load_properties(storage, no_sleep) == STORED


def test_settings_that_appear_later_are_found(storage):
    data = storage.read(PROPERTIES)
    away = MemoryStorage({".hoodie/001.commit": b"{}"})
    assert load_properties(away, lambda _: away.write(PROPERTIES, data)) == STORED


@pytest.mark.parametrize(
    "bad", [b"", b"#comment\n", b"\0\0", b"hoodie.table.name=x\nhoodie.table.checksum=1\n", b"hoodie.table.name=\n"]
)
def test_a_broken_file_gives_way_to_its_backup_and_is_corrupt_without(storage, bad):
    data = storage.read(PROPERTIES)
    storage.write(PROPERTIES, bad)
    slept = []
    with pytest.raises(CorruptFile) as raised:
        load_properties(storage, slept.append)
    assert raised.value.path == PROPERTIES
    assert slept == [1.0]
    storage.write(BACKUP, data)
    assert load_properties(storage, no_sleep) == STORED
    storage.delete(PROPERTIES)
    storage.write(BACKUP, bad)
    with pytest.raises(CorruptFile) as raised:
        load_properties(storage, slept.append)
    assert raised.value.path == BACKUP


def test_a_change_sets_adds_removes_and_renews_the_checksum(storage):
    storage.write(".hoodie/.hoodie.properties.crc", b"old")
    assert update_properties(storage, CHANGE, no_sleep, NOW) == CHANGED
    assert load_properties(storage, no_sleep) == CHANGED
    assert storage.snapshot().keys() == {PROPERTIES}


def test_no_change_writes_nothing(storage):
    counted = CountingStorage(storage)
    assert update_properties(counted, {"hoodie.table.version": "6", "hoodie.absent": None}) == STORED
    assert not counted.count("write")
    assert not counted.count("create_new")


@pytest.mark.parametrize("dying", Dying)
def test_a_writer_that_dies_anywhere_leaves_old_or_new_settings_and_the_next_one_succeeds(storage, dying):
    for writes in count():
        inner = storage.copy()
        try:
            update_properties(CrashAfter(inner, writes, dying), CHANGE)
        except Crash:
            assert load_properties(inner, no_sleep) in (STORED, CHANGED)
        else:
            assert writes >= 3
            return
        assert update_properties(inner, CHANGE, no_sleep) == CHANGED
        assert load_properties(inner, no_sleep) == CHANGED
        assert not inner.exists(BACKUP)


@pytest.mark.parametrize("left", [None, b"", b"hoodie.table.name=tr", b"hoodie.table.name=trips\nhoodie.ta"])
@pytest.mark.parametrize("dying", Dying)
def test_what_another_dead_writer_left_is_recovered(storage, left, dying):
    """Hudi deletes the file before it writes the new one in place, so that one may be missing or cut short."""
    storage.write(BACKUP, storage.read(PROPERTIES))
    storage.delete(PROPERTIES)
    if left is not None:
        storage.write(PROPERTIES, left)
    assert load_properties(storage, no_sleep) == STORED
    for writes in count():
        inner = storage.copy()
        try:
            assert update_properties(CrashAfter(inner, writes, dying), CHANGE, no_sleep) == CHANGED
        except Crash:
            assert load_properties(inner, no_sleep) in (STORED, CHANGED)
        else:
            return


def test_two_broken_files_stay_for_a_person_to_look_at(storage):
    storage.write(PROPERTIES, b"")
    storage.write(BACKUP, b"")
    before = storage.snapshot()
    with pytest.raises(CorruptFile):
        update_properties(storage, CHANGE, lambda _: None)
    assert storage.snapshot() == before


def test_settings_that_do_not_read_back_are_an_error_and_the_backup_stays(storage):
    class Other(WrappedStorage):
        def write(self, path, data):
            self.inner.write(path, data.replace(b"=db", b"=dx"))

    with pytest.raises(CorruptFile):
        update_properties(Other(storage), CHANGE)
    assert storage.exists(BACKUP)


def test_a_writer_in_the_middle_of_a_change_is_not_overrun(storage):
    between = Meanwhile(storage, calls_of("create_new", ""), lambda: storage.write(BACKUP, b"of another writer"))
    with pytest.raises(FileExistsError):
        update_properties(between, CHANGE)
    assert load_properties(storage) == STORED


def test_settings_without_a_checksum_are_taken_unless_the_backup_had_one(storage):
    old = MemoryStorage({PROPERTIES: b"hoodie.table.name=old\n"})
    assert load_properties(old, no_sleep) == {"hoodie.table.name": "old"}
    old.write(BACKUP, b"hoodie.table.name=older\n")
    assert load_properties(old, no_sleep) == {"hoodie.table.name": "old"}
    old.write(BACKUP, b"")
    assert load_properties(old, no_sleep) == {"hoodie.table.name": "old"}
