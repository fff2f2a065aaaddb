"""An overwrite puts a new table in place of the old one: another key, other columns, another type; all or nothing."""

import copy
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.config.options import Options
from hoodie.config.read import ReadSettings
from hoodie.config.table import TableType
from hoodie.config.write import WriteOperation
from hoodie.doctor.examine import examine
from hoodie.errors import InvalidInput, WriteConflict
from hoodie.reading.snapshot import read_table
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.clean import clean
from hoodie.services.savepoint import delete_savepoint
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.sync.after_commit import after_commit
from hoodie.table.properties import load_properties
from hoodie.table.replacement import WAITING
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import Crash, CrashAfter, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.writing.local import check_batch
from hoodie.writing.replacement import Replacement, replacement
from hoodie.writing.result import WriteResult
from hoodie.writing.run import _run
from hoodie.writing.write import start
from support.nightly import each_call
from support.oracles import assert_same_rows, read_hudi_rs
from support.trips import table_options

OLD = {
    **table_options("old", "id", partition="city", ordering="ts"),
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}
NEW = {
    **table_options("new", "name", partition="day"),
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
OLD_ROWS = pa.table({"id": [1, 2], "city": ["oslo", "rome"], "ts": [1, 1], "qty": [1, 2]})
LATER = pa.table({"id": [1, 3], "city": ["oslo", "rome"], "ts": [2, 2], "qty": [10, 30]})
NEW_ROWS = pa.table({"name": ["a", "b"], "day": ["mon", "tue"], "qty": ["many", "few"]})


def old_table(storage: Storage | None = None) -> ArrowTable:
    table = ArrowTable.create(storage or MemoryStorage(), OLD)
    table.upsert(OLD_ROWS)
    table.upsert(LATER)  # logs, whose merge needs the old ordering field
    return table


def rows(storage: Storage) -> list[dict[str, object]]:
    found = read_table(load_state(storage))
    user = [name for name in found.column_names if not name.startswith("_hoodie")]
    return sorted(found.select(user).to_pylist(), key=lambda row: str(row.get("id") or row.get("name")))


BEFORE = [
    {"id": 1, "city": "oslo", "ts": 2, "qty": 10},
    {"id": 2, "city": "rome", "ts": 1, "qty": 2},
    {"id": 3, "city": "rome", "ts": 2, "qty": 30},
]
AFTER = NEW_ROWS.to_pylist()


def test_the_new_table_has_its_own_key_columns_and_type() -> None:
    table = old_table()
    assert rows(table.storage) == BEFORE
    done = table.replace(NEW_ROWS, NEW)
    assert rows(table.storage) == AFTER
    config = load_state(table.storage).config
    assert (config.name, config.type, config.record_key, config.ordering) == (
        "new",
        TableType.COPY_ON_WRITE,
        ("name",),
        (),
    )
    stored = load_properties(table.storage)
    assert stored["hoodie.table.name"] == "new"
    assert stored["hoodie.table.replaced.at"] == done.instant
    assert "hoodie.table.precombine.field" not in stored
    assert not [key for key in stored if key.startswith("hoodie.table.replacing")]


def test_the_new_table_is_written_read_and_cleaned_like_any() -> None:
    table = old_table()
    replaced = table.replace(NEW_ROWS, NEW).instant
    new = ArrowTable(table.storage, NEW)
    more = pa.table({"name": ["b", "c"], "day": ["tue", "tue"], "qty": ["none", "two"]})
    first = new.upsert(more).instant
    then = [AFTER[0], {"name": "b", "day": "tue", "qty": "none"}, {"name": "c", "day": "tue", "qty": "two"}]
    assert rows(table.storage) == then
    assert new.changes(replaced).num_rows == 2
    assert new.changes("earliest").num_rows == 3  # of the old table nothing
    assert new.as_of(replaced).num_rows == 2
    for number in range(3):
        new.upsert(more.slice(0, 1).set_column(2, "qty", [[str(number)]]))
    clean(table.storage, Settings.of({**NEW, "hoodie.cleaner.commits.retained": "1"}))
    left = [entry.name for city in ("oslo", "rome") for entry in table.storage.list(city)]
    assert left == []
    assert new.as_of(new.upsert(more).instant).num_rows == 3
    assert not [found for found in examine(table.storage, ReadSettings.read(Options())) if found.severity == "ERROR"]
    assert first > replaced


def test_an_overwrite_that_dies_anywhere_leaves_the_old_table_or_the_new() -> None:
    seen = set()
    for calls in each_call():
        storage = old_table().storage
        try:
            ArrowTable(CrashAfter(storage, calls, Dying.AFTER)).replace(NEW_ROWS, NEW)
        except Crash:
            died = True
        else:
            died = False
        found = rows(storage)
        assert found in (BEFORE, AFTER), calls
        seen.add(found == AFTER)
        if found == AFTER:  # the next write puts the settings in place
            ArrowTable(storage, NEW).upsert(NEW_ROWS)
            assert rows(storage) == AFTER
            assert WAITING not in load_properties(storage)
            assert load_state(storage).config.name == "new"
        else:  # and here it rolls what is left back
            ArrowTable(storage, OLD).upsert(LATER)
            assert rows(storage) == BEFORE
        if not died:
            break
    assert seen == {True, False}


@pytest.mark.parametrize("again", [OLD, {**OLD, "hoodie.datasource.write.table.type": "COPY_ON_WRITE"}])
def test_a_table_is_replaced_again_and_again(again: dict[str, str]) -> None:
    table = old_table()
    table.replace(NEW_ROWS, NEW)
    table.replace(OLD_ROWS, again)
    assert rows(table.storage) == OLD_ROWS.to_pylist()
    ArrowTable(table.storage, again).upsert(LATER)
    assert rows(table.storage) == BEFORE


def test_what_was_before_cannot_be_gone_back_to() -> None:
    table = old_table()
    commits = load_state(table.storage).timeline.commits
    replaced = table.replace(NEW_ROWS, NEW).instant
    old = commits[-1].requested
    with pytest.raises(InvalidInput, match=f"read as of {old}: an overwrite replaced the whole table at {replaced}"):
        table.as_of(old)
    with pytest.raises(InvalidInput, match="replaced the whole table"):
        table.changes("earliest", old)
    with pytest.raises(InvalidInput, match="replaced the whole table"):
        rollback(table.storage, Settings.of(NEW))
    with pytest.raises(InvalidInput, match="replaced the whole table"):
        make_savepoint(table.storage, Settings.of(NEW), old)
    assert rows(table.storage) == AFTER


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_other_readers_see_the_new_table(tmp_path: Path, kind: str) -> None:
    storage = LocalStorage(tmp_path)
    old_table(storage).replace(NEW_ROWS, {**NEW, "hoodie.datasource.write.table.type": kind})
    assert rows(storage) == AFTER
    assert_same_rows(read_table(load_state(storage)), read_hudi_rs(tmp_path))


def test_partitions_within_those_of_the_other_table_are_refused() -> None:
    whole = {key: value for key, value in NEW.items() if "partition" not in key}
    table = old_table()
    with pytest.raises(InvalidInput, match="has partitions, and the table in its place would have none"):
        table.replace(NEW_ROWS, whole)
    assert rows(table.storage) == BEFORE
    table = ArrowTable.create(MemoryStorage(), whole)
    table.upsert(NEW_ROWS)
    with pytest.raises(InvalidInput, match="has no partitions, and the table in its place would have some"):
        table.replace(OLD_ROWS, OLD)
    nested = pa.table({"id": [1], "city": ["oslo/west"], "ts": [1], "qty": [1]})
    table = old_table()
    with pytest.raises(InvalidInput, match="oslo"):
        table.replace(nested, OLD)
    assert rows(table.storage) == BEFORE


def test_a_savepoint_forbids_it() -> None:
    table = old_table()
    kept = make_savepoint(table.storage, Settings.of(OLD)).instant
    before = copy.deepcopy(table.storage.list_tree(""))
    with pytest.raises(InvalidInput, match=rf"has savepoints \({kept}\).*delete_savepoint"):
        table.replace(NEW_ROWS, NEW)
    assert table.storage.list_tree("") == before
    delete_savepoint(table.storage, Settings.of(OLD), kept)
    table.replace(NEW_ROWS, NEW)
    assert rows(table.storage) == AFTER


def begun(storage: Storage, options: dict[str, str], new: Replacement | None = None) -> Callable[[], WriteResult]:
    """A write whose instant is taken, an upsert or an overwrite of the table; what carries it out."""
    operation = WriteOperation.INSERT_OVERWRITE_TABLE if new else WriteOperation.UPSERT
    source = (NEW_ROWS if new else LATER).to_reader()
    state = new.state if new else None
    batch = check_batch(storage, operation, source, Settings.read(Options(options)), after_commit, new=state)
    job = new.start(batch.write) if new else start(batch.write)
    return lambda: _run(batch, job, batch.acquire(batch.write, batch.phases), True)


LEFT_ALONE = {"hoodie.cleaner.policy.failed.writes": "NEVER"}


def test_a_write_that_began_before_does_not_get_into_the_new_table() -> None:
    storage = old_table().storage
    carry_out = begun(storage, {**OLD, **LEFT_ALONE})
    ArrowTable(storage).replace(NEW_ROWS, {**NEW, **LEFT_ALONE})
    with pytest.raises(WriteConflict, match="replaced the whole table meanwhile"):
        carry_out()
    assert rows(storage) == AFTER


def test_rows_that_come_during_an_overwrite_refuse_it() -> None:
    """They would be left in the new table, in files of the old one."""
    storage = old_table().storage
    options = {**NEW, **LEFT_ALONE}
    new = replacement(storage, Settings.read(Options(options)))
    carry_out = begun(storage, options, new)
    ArrowTable(storage, OLD).insert(pa.table({"id": [9], "city": ["bonn"], "ts": [1], "qty": [9]}), LEFT_ALONE)
    with pytest.raises(WriteConflict, match="contradicts"):
        carry_out()
    assert rows(storage) == [*BEFORE, {"id": 9, "city": "bonn", "ts": 1, "qty": 9}]


def test_of_two_overwrites_at_once_one_is_refused() -> None:
    storage = old_table().storage
    options = {**NEW, **LEFT_ALONE}
    new = replacement(storage, Settings.read(Options(options)))
    carry_out = begun(storage, options, new)
    ArrowTable(storage).replace(NEW_ROWS.slice(0, 1), {**options, "hoodie.table.name": "other"})
    with pytest.raises(WriteConflict, match="replaced the whole table meanwhile"):
        carry_out()
    assert rows(storage) == AFTER[:1]
    assert load_state(storage).config.name == "other"
