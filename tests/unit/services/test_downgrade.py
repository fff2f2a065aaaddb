"""Tables of versions 8 and 9 get an earlier one: rows, history and earlier states stay, wherever the process dies."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from hoodie.config.options import Options
from hoodie.doctor.examine import examine
from hoodie.doctor.findings import Fault, Mend, Severity
from hoodie.doctor.repair import repair
from hoodie.errors import InvalidOption, UnsupportedTable
from hoodie.formats.log.blocks import HeaderKey, read_blocks
from hoodie.model.files import LogFile, parse_data_file
from hoodie.model.instant import Action
from hoodie.model.table_version import VERSIONS
from hoodie.recovery.restore import restore
from hoodie.recovery.savepoint import make_savepoint
from hoodie.schema.by_id import Rename
from hoodie.services.alter_columns import alter_columns
from hoodie.services.archive import archive, history
from hoodie.services.clean import clean
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.downgrade import downgrade
from hoodie.services.upgrade import upgrade
from hoodie.table.properties import update_properties
from hoodie.table.settings import Settings
from hoodie.table.version_properties import downgraded
from hoodie.testing.storage import Crash, CrashAfter, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.load import read_commit
from support.nightly import nightly, scaled
from torture.crash import TABLE, an_hour_later, batch, rows_of_now

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
KEEP = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
VECTORS = Path(__file__).parents[2] / "vectors" / "v8-v9"
pytestmark = pytest.mark.filterwarnings("ignore::hoodie.errors.HoodieWarning")


def table(kind: str, version: int = 9, **more: str) -> ArrowTable:
    """Some commits, an overwrite, a savepoint; on Merge-on-Read logs, a plan and logs behind it."""
    options = {**TABLE, "hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": str(version), **more}
    made = ArrowTable.create(MemoryStorage(), options)
    made.options = Options({key: value for key, value in made.options.items() if key != "hoodie.write.table.version"})
    made.upsert(batch({"a": ("oslo", 1, "one"), "b": ("oslo", 1, "one"), "c": ("rome", 1, "one")}))
    made.upsert(batch({"a": ("oslo", 2, "two"), "d": ("rome", 2, "two")}))
    made.upsert(batch({"a": ("oslo", 3, "three")}))
    make_savepoint(made.storage, Settings.read(made.options))
    made.insert_overwrite(batch({"e": ("bern", 3, "three")}))
    if kind == MOR:
        made.upsert(batch({"b": ("oslo", 4, "logged")}))
        due = Options({**made.options, "hoodie.compact.inline.max.delta.commits": "1"})
        assert schedule_compaction(made.storage, Settings.read(due))
        made.upsert(batch({"b": ("oslo", 5, "behind"), "c": ("rome", 5, "behind")}))
        made.delete(batch({"d": ("rome", 2, "two")}).select(["id", "city"]))
    return made


def states(made: ArrowTable) -> dict[str, Any]:
    """The rows as of each commit that brought some."""
    return {time: _plain(made.as_of(time)) for time in _writes(made)}


def changes(made: ArrowTable) -> dict[str, Any]:
    """The changes of each commit, and from each on."""
    times = ["000", *_writes(made)]
    told = {f"{begin}-": _plain(made.changes(begin)) for begin in times}
    return told | {f"{a}-{b}": _plain(made.changes(a, b)) for a, b in itertools.pairwise(times)}


def _plain(rows: Any) -> list[str]:
    return sorted(map(str, rows.select(["_hoodie_commit_time", "id", "ts", "note"]).to_pylist()))


def _writes(made: ArrowTable) -> list[str]:
    state = made.state()
    commits = [c for c in state.timeline.commits if c.action is not Action.COMMIT or not state.config.merge_on_read]
    return [commit.requested for commit in commits]


def paths(made: ArrowTable) -> list[str]:
    tree = made.storage.list_tree("")
    return [f"{folder}/{e.name}".lstrip("/") for folder, entries in tree.items() for e in entries if not e.is_dir]


@pytest.mark.parametrize(
    ("kind", "before", "to"),
    [nightly(COW, 8, 6), (COW, 9, 6), nightly(COW, 9, 8), nightly(MOR, 8, 6), nightly(MOR, 9, 6), (MOR, 9, 8)],
)
def test_rows_changes_and_earlier_states_are_as_before_and_writes_go_on(kind: str, before: int, to: int) -> None:
    made = table(kind, before)
    rows, earlier, told = rows_of_now(made), states(made), changes(made)
    result = downgrade(made.storage, Settings.read(made.options), to)
    assert (result.before, result.version) == (before, to)
    assert rows_of_now(made) == rows
    assert {time: now for time, now in states(made).items() if time in earlier} == earlier
    assert {part: now for part, now in changes(made).items() if part in told} == told
    assert made.state().config.version == to
    made.upsert(batch({"a": ("oslo", 9, "nine"), "z": ("kiel", 9, "nine")}))
    assert rows_of_now(made) == rows | {"a": ("oslo", 9, "nine"), "z": ("kiel", 9, "nine")}
    savepoint = made.state().timeline.completed({Action.SAVEPOINT})[0].requested
    restore(made.storage, Settings.read(made.options), savepoint)
    assert _plain(made.snapshot()) == earlier[savepoint]


def test_what_version_6_has_is_there_and_nothing_else() -> None:
    made = table(MOR)
    downgrade(made.storage, Settings.read(made.options), 6)
    assert not made.storage.list(".hoodie/timeline")
    logs = [log for path in paths(made) if isinstance(log := parse_data_file(*path.rpartition("/")[::2], 0), LogFile)]
    assert logs
    state = made.state()
    bases = {base for path in paths(made) if path.endswith(".parquet") for base in [path.rpartition("_")[2][:-8]]}
    assert {log.base_instant for log in logs} <= bases
    stats = {}
    for commit in state.timeline.commits:
        for of_part in read_commit(made.storage, state.timeline, commit).stats.values():
            stats |= {stat.path: (commit.requested, stat) for stat in of_part if stat.log_version is not None}
    assert stats.keys() == {log.path for log in logs}
    for log in logs:
        instant, stat = stats[log.path]
        data = made.storage.read(log.path)
        assert (stat.file_size, stat.prev_commit, stat.log_version) == (len(data), log.base_instant, log.version)
        assert stat.log_files[-1] == log.name
        assert len(stat.log_files) == log.version
        for block in read_blocks(data, log.path):
            assert block.header.instant == instant
            assert all(key < HeaderKey.IS_PARTIAL for key, _ in block.header.entries)
    for commit in state.timeline.commits:
        assert json.loads(made.storage.read(state.timeline.path(commit)))
    properties = state.config.properties
    assert properties["hoodie.compaction.payload.class"].endswith("DefaultHoodieRecordPayload")
    assert properties["hoodie.table.precombine.field"] == "ts"
    assert properties["hoodie.table.keygenerator.class"] == "org.apache.hudi.keygen.SimpleKeyGenerator"
    assert not {"hoodie.record.merge.mode", "hoodie.table.ordering.fields", "hoodie.table.format"} & properties.keys()


def test_a_dry_run_says_what_would_be_done_and_changes_nothing() -> None:
    made = table(MOR)
    before = {path: made.storage.read(path) for path in paths(made)}
    result = downgrade(made.storage, Settings.read(made.options), 6, dry_run=True)
    assert str(result).startswith("would be downgraded from version 9 to 6, read by Hudi 0.14")
    for step in ("run planned compactions", "compact 2 file groups", "logs the names of version 6"):
        assert step in str(result)
    assert result.settings is not None
    assert result.settings["hoodie.table.version"] == "6"
    assert result.settings["hoodie.table.ordering.fields"] is None
    assert {path: made.storage.read(path) for path in paths(made)} == before


@pytest.mark.parametrize(("kind", "dying"), [(COW, Dying.AFTER), (MOR, Dying.BEFORE), nightly(MOR, Dying.TORN)])
def test_a_process_that_dies_anywhere_leaves_the_rows_and_the_next_finishes(kind: str, dying: Dying) -> None:
    original = table(kind)
    rows, earlier, told = rows_of_now(original), states(original), changes(original)
    calls, versions = 0, set()
    while True:
        storage = original.storage.copy()  # type: ignore[attr-defined]
        made = ArrowTable(storage, original.options)
        try:
            downgrade(CrashAfter(storage, calls, dying), Settings.read(made.options), 6)
        except Crash:
            assert rows_of_now(made) == rows, calls
            storage.clock = an_hour_later  # claims of the dead have ended
            versions.add(made.state().config.version)
            downgrade(storage, Settings.read(made.options), 6)
            assert (rows_of_now(made), made.state().config.version) == (rows, 6), calls
            assert {time: now for time, now in states(made).items() if time in earlier} == earlier, calls
            assert {part: now for part, now in changes(made).items() if part in told} == told, calls
            assert not storage.list(".hoodie/timeline"), calls
            made.upsert(batch({"q": ("oslo", 9, "since")}))
        else:
            break
        calls += scaled(11, 5) if kind == COW else scaled(41, 19) if dying is Dying.BEFORE else 2 if calls > 55 else 8
    assert versions == {6, 9}


def test_a_table_whose_downgrade_stopped_is_not_written_before_it_is_finished() -> None:
    original = table(MOR)
    rows = rows_of_now(original)
    for calls in range(1, 1000, 9):
        storage = original.storage.copy()  # type: ignore[attr-defined]
        made = ArrowTable(storage, original.options)
        with pytest.raises(Crash):
            downgrade(CrashAfter(storage, calls), Settings.read(made.options), 6)
        if "hoodie.table.downgraded.from" in made.state().config.properties:
            break
    for act in (
        lambda: made.upsert(batch({"q": ("oslo", 9, "since")})),
        lambda: clean(storage, Settings.read(made.options)),
    ):
        with pytest.raises(UnsupportedTable, match=r"downgrade from version 9 stopped.*--to 6` finishes it"):
            act()
    with pytest.raises(UnsupportedTable, match="stopped half-way"):
        downgrade(storage, Settings.read(made.options), 8)
    (remedy,) = [finding.remedy for finding in examine(storage) if finding.fault is Fault.DOWNGRADE]
    assert remedy is not None
    assert remedy.mend is Mend.FINISH
    repaired = ArrowTable(storage.copy(), made.options)
    assert repair(repaired.storage, dry_run=False)
    assert [finding for finding in examine(repaired.storage) if finding.severity > Severity.NOTE] == []
    assert rows_of_now(repaired) == rows
    assert downgrade(storage, Settings.read(made.options), 6, dry_run=True).steps
    storage.clock = an_hour_later
    downgrade(storage, Settings.read(made.options), 6)
    made.upsert(batch({"q": ("oslo", 9, "since")}))
    assert rows_of_now(made) == rows | {"q": ("oslo", 9, "since")}


def test_a_downgrade_that_died_early_can_be_forgotten() -> None:
    made = table(COW)
    before = {path: made.storage.read(path) for path in paths(made)}
    with pytest.raises(Crash):
        downgrade(CrashAfter(made.storage, 8), Settings.read(made.options), 6)
    made.storage.clock = an_hour_later  # type: ignore[attr-defined]
    assert {path: made.storage.read(path) for path in paths(made)} != before
    downgrade(made.storage, Settings.read(made.options), 9)
    assert {path: made.storage.read(path) for path in paths(made)} == before


def test_the_history_is_in_the_archive() -> None:
    made = table(COW, 8, **KEEP)
    for number in range(10, 18):
        made.upsert(batch({"a": ("oslo", number, f"v{number}")}))
    clean(made.storage, Settings.read(made.options))
    beyond = Options({**made.options, "hoodie.archive.beyond.savepoint": "true"})
    assert archive(made.storage, Settings.read(beyond)).instants
    before = [(i.requested, i.action, m.operation, m.stats) for i, m in history(made.state(), archived=True)]
    downgrade(made.storage, Settings.read(made.options), 6)
    after = [(i.requested, i.action, m.operation, m.stats) for i, m in history(made.state(), archived=True)]
    assert [line[:3] for line in after] == [line[:3] for line in before]
    assert [[s.path for p in line[3].values() for s in p] for line in after] == [
        [s.path for p in line[3].values() for s in p] for line in before
    ]
    rows = rows_of_now(made)
    upgrade(made.storage, Settings.read(made.options), 9)
    again = [(i.requested, i.action, m.operation) for i, m in history(made.state(), archived=True)]
    assert again == [line[:3] for line in before]
    assert rows_of_now(made) == rows


@pytest.mark.parametrize("kind", [COW, MOR])
def test_up_and_down_again_leaves_the_table_as_it_was(kind: str) -> None:
    made = table(kind, 6)
    rows, earlier = rows_of_now(made), states(made)
    for ts, to in enumerate((9, 6, 8, 6), 10):
        change = upgrade if to > made.state().config.version else downgrade
        change(made.storage, Settings.read(made.options), to)
        rows["n"] = ("oslo", ts, f"version {to}")
        made.upsert(batch({"n": rows["n"]}))
        assert rows_of_now(made) == rows
        assert {time: now for time, now in states(made).items() if time in earlier} == earlier


@pytest.mark.parametrize("kind", [COW, MOR])
def test_change_data_is_as_before(kind: str) -> None:
    made = table(kind, **{"hoodie.table.cdc.enabled": "true"})
    from hoodie.reading.changes.data import change_data_batches
    from hoodie.reading.changes.data_plan import plan_change_data

    def told() -> list[str]:
        plan = plan_change_data(made.state(), "earliest")
        return sorted(str(row) for rows in change_data_batches(plan) for row in rows.to_pylist())

    before = told()
    assert before
    downgrade(made.storage, Settings.read(made.options), 6)
    assert told() == before


def test_the_history_of_altered_columns_gets_the_name_that_hudi_0_15_knows() -> None:
    """Without it Hudi 0.15 fails on the files of before the ALTER."""
    made = table(COW)
    instant = alter_columns(made.storage, [Rename(("note",), "remark")], Settings.read(made.options), on_read=True)
    name = f".hoodie/.schema/{instant}.schemacommit"
    content = made.storage.read(name)
    made.storage.write(f".hoodie/.schema/{instant}_{int(str(instant)) + 5}.schemacommit", content)  # as Hudi 1.x
    made.storage.delete(name)
    downgrade(made.storage, Settings.read(made.options), 6)
    assert made.storage.read(name) == content


def test_a_plain_version_is_asked_for() -> None:
    made = table(COW, 8)
    with pytest.raises(InvalidOption, match="expected one of 6, 8, 9"):
        downgrade(made.storage, Settings.read(made.options), 7)
    with pytest.raises(InvalidOption, match="a later one"):
        downgrade(made.storage, Settings.read(made.options), 9)
    assert "has version 8 already" in str(downgrade(made.storage, Settings.read(made.options), 8))


@pytest.mark.parametrize(
    ("change", "to", "says"),
    [
        ({"hoodie.table.ordering.fields": "ts,note"}, 8, "one ordering column"),
        ({"hoodie.table.metadata.partitions": "files,secondary_index_note"}, 8, r"secondary_index_note.*Drop them"),
        ({"hoodie.record.merge.property.hoodie.payload.delete.field": "note"}, 6, "merges by a payload class"),
    ],
)
def test_what_would_be_lost_is_refused(change: dict[str, str], to: int, says: str) -> None:
    made = table(COW)
    update_properties(made.storage, change)
    before = {path: made.storage.read(path) for path in paths(made)}
    with pytest.raises(UnsupportedTable, match=says):
        downgrade(made.storage, Settings.read(made.options), to)
    assert {path: made.storage.read(path) for path in paths(made)} == before


def _changes_of_settings() -> list[Any]:
    cases = json.loads((VECTORS / "version_change_properties.json").read_text())["cases"]
    return [case for case in cases if "changed" in case]


@pytest.mark.parametrize("case", _changes_of_settings())
def test_settings_become_those_of_hudi(case: dict[str, Any]) -> None:
    """Of tables that Hudi upgraded from 6 those that they had, of its downgrades to 8 what it makes of them. A payload
    class that says another rule than the merge mode goes: the table merges as it did."""
    later = {key: value for key, value in {**case["before"], **case["changed"]}.items() if key not in case["removed"]}
    if case["from"] == "6":
        made, expected = downgraded(later, VERSIONS[6]), dict(case["before"])
        spared = {"hoodie.table.initial.version", "hoodie.timeline.path", "hoodie.table.keygenerator.type"}
    else:
        made, expected = downgraded(case["before"], VERSIONS[8]), later
        spared = {"hoodie.table.format", "hoodie.compaction.record.merger.strategy"}
    spared |= {"hoodie.compaction.payload.class", "hoodie.table.checksum"}
    assert {k: v for k, v in made.items() if k not in spared} == {k: v for k, v in expected.items() if k not in spared}
    assert made["hoodie.compaction.payload.class"]
