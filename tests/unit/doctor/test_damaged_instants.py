"""Instant files that are empty or cut short: what the doctor says of each works, and changes no row."""

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli.main import main
from hoodie.doctor.examine import GRACE, Fault, examine
from hoodie.doctor.repair import repair
from hoodie.errors import CommitNotChecked, InvalidInput
from hoodie.recovery.restore import restore
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.archive import archive
from hoodie.services.clean import clean
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.savepoint import delete_savepoint
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage, Crash, CrashAfter, MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.nightly import by_day, covering, nightly
from support.undoing import COW, FIRST, LATER, MOR, NOW, THIRD, compacted, read, table, upsert

CLEAN = {"hoodie.clean.commits.retained": "1"}
ARCHIVE = {
    **CLEAN,
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.compact.inline.max.delta.commits": "1",
}
Parts = pytest.mark.parametrize("part", [nightly(0), 0.6])


def cut_short(storage: Storage, ending: str, part: float) -> str:
    """Leave a part of the newest instant file of an ending; its path."""
    path = max(f".hoodie/{entry.name}" for entry in storage.list(".hoodie") if entry.name[17:] == ending)
    data = storage.read(path)
    storage.write(path, data[: int(len(data) * part)])
    return path


def dead(storage: MemoryStorage, act: Callable[[Storage], object], ending: str) -> MemoryStorage:
    """The storage as a process leaves it that dies right after it created a file of the timeline."""
    for calls in range(200):
        died = storage.copy()
        try:
            act(CrashAfter(died, calls))
        except Crash:
            if any(entry.name.endswith(ending) for entry in died.list(".hoodie")):
                return died
    raise AssertionError(ending)


def cleaned(options: dict[str, str] = COW) -> MemoryStorage:
    storage = table(options)
    upsert(storage, THIRD)
    clean(storage, Settings.of(CLEAN))
    return storage


def rolled_back() -> MemoryStorage:
    storage = table(MOR)
    upsert(storage, THIRD)
    rollback(storage, Settings.of({}))
    return storage


def planned(storage: MemoryStorage) -> MemoryStorage:
    schedule_compaction(storage, Settings.of(NOW))
    return storage


def compaction_done() -> MemoryStorage:
    storage = table(MOR)
    compacted(storage)
    return storage


def dying_clean(ending: str) -> MemoryStorage:
    storage = table(COW)
    upsert(storage, THIRD)
    return dead(storage, lambda storage: clean(storage, Settings.of(CLEAN)), ending)


def dying_rollback(ending: str) -> MemoryStorage:
    storage = table(MOR)
    upsert(storage, THIRD)
    return dead(storage, lambda storage: rollback(storage, Settings.of({})), ending)


def dying_compaction(ending: str) -> MemoryStorage:
    storage = planned(table(MOR))
    return dead(storage, lambda storage: compact(storage, Settings.of({})), ending)


CASES: dict[str, tuple[Callable[[], MemoryStorage], str]] = {
    "a completed clean": (cleaned, ".clean"),
    "the plan of a completed clean": (cleaned, ".clean.requested"),
    "the inflight file of a completed clean": (cleaned, ".clean.inflight"),
    "the plan of a clean": (lambda: dying_clean(".clean.requested"), ".clean.requested"),
    "the plan of a clean that began": (lambda: dying_clean(".clean.inflight"), ".clean.requested"),
    "the inflight file of a clean": (lambda: dying_clean(".clean.inflight"), ".clean.inflight"),
    "a completed rollback": (rolled_back, ".rollback"),
    "the plan of a completed rollback": (rolled_back, ".rollback.requested"),
    "the plan of a rollback": (lambda: dying_rollback(".rollback.requested"), ".rollback.requested"),
    "the plan of a rollback that began": (lambda: dying_rollback(".rollback.inflight"), ".rollback.requested"),
    "the plan of a compaction": (lambda: planned(table(MOR)), ".compaction.requested"),
    "the plan of a compaction that began": (lambda: dying_compaction(".compaction.inflight"), ".compaction.requested"),
    "the plan of a completed compaction": (compaction_done, ".compaction.requested"),
    "the profile of a completed write": (lambda: table(COW), ".inflight"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("part", "case"), by_day(product((0, 0.6), CASES), lambda case: (case[0] == 0) == list(CASES).index(case[1]) % 2)
)
def test_a_repair_mends_a_damaged_file_and_no_row_changes(case: str, part: float):
    make, ending = CASES[case]
    storage = make()
    before = rows_now(storage)
    damaged = cut_short(storage, ending, part)
    if case in ("the profile of a completed write", "the inflight file of a completed clean") and part == 0:
        return  # which is what many have
    told = {finding.where: finding for finding in examine(storage, grace=0)}
    assert told[damaged].fault in (Fault.EMPTY, Fault.UNREADABLE)
    assert (told[damaged].remedy is None) == ((case, part) == ("a completed clean", 0))  # which the next clean mends
    assert [f.remedy for f in examine(storage, grace=GRACE) if f.where == damaged] == [None]
    while repair(storage, dry_run=False, grace=0):
        pass
    assert read(storage) == before
    upsert(storage, LATER)
    rows = {**before, **LATER}
    clean(storage, Settings.of(CLEAN))
    assert read(storage) == rows
    if load_state(storage).config.merge_on_read:
        compacted(storage)
    for number in range(5):
        upsert(storage, {"z": ("oslo", 20 + number, "late")})
    archive(storage, Settings.of(ARCHIVE))
    assert read(storage) == {**rows, "z": ("oslo", 24, "late")}
    assert examine(storage, grace=0) == ()


def rows_now(storage: MemoryStorage) -> dict[str, tuple[str, int, str]]:
    """The rows once what is pending is finished."""
    finished = storage.copy()
    while repair(finished, dry_run=False, grace=0):
        pass
    return dict(read(finished))


@Parts
def test_a_compaction_plan_stays_that_logs_belong_to(part: float):
    storage = planned(table(MOR))
    upsert(storage, THIRD)
    damaged = cut_short(storage, ".compaction.requested", part)
    (finding,) = (finding for finding in examine(storage, grace=0) if finding.where == damaged)
    assert "were written for the base files that it makes" in finding.advice
    assert finding.remedy is None


@Parts
def test_a_restore_takes_a_damaged_compaction_plan_back_with_what_belongs_to_it(part: float):
    storage = table(MOR)
    before = read(storage)
    saved = make_savepoint(storage, Settings.of({}))
    upsert(storage, THIRD)
    upsert(planned(storage), LATER)
    cut_short(storage, ".compaction.requested", part)
    restore(storage, Settings.of({}), saved.instant)
    assert read(storage) == before
    assert examine(storage, grace=0) == ()


@Parts
@pytest.mark.parametrize("action", ["clean", "rollback", "compaction", "replacecommit"])
def test_a_plan_of_which_only_a_part_was_written_is_deleted(action: str, part: float):
    storage = table(MOR)
    before = read(storage)
    path = f".hoodie/99980101000000000.{action}.requested"
    storage.write(path, b"Obj\x01half a plan"[: int(14 * part)])
    if (action, part) == ("replacecommit", 0):
        return  # an overwrite that begins
    assert [remedy.target for remedy in repair(storage, dry_run=False, grace=0)] == [path]
    assert examine(storage, grace=0) == ()
    upsert(storage, LATER)
    assert read(storage) == {**before, **LATER}


@Parts
def test_a_damaged_savepoint_is_deleted_and_made_again(part: float):
    storage = table(COW)
    saved = make_savepoint(storage, Settings.of({}))
    damaged = cut_short(storage, ".savepoint", part)
    (finding,) = (finding for finding in examine(storage, grace=0) if finding.where == damaged)
    assert f"hoodie savepoint delete TABLE {saved.instant}" in finding.advice
    delete_savepoint(storage, Settings.of({}), saved.instant)
    assert make_savepoint(storage, Settings.of({})).files == saved.files
    assert examine(storage, grace=0) == ()


@Parts
@pytest.mark.parametrize("options", [COW, MOR])
def test_the_command_rolls_a_damaged_commit_back_as_the_doctor_says(options, part: float, tmp_path, capsys):
    storage = LocalStorage(str(tmp_path))
    ArrowTable.create(storage, options)
    upsert(storage, FIRST)
    time = upsert(storage, THIRD)
    cut_short(storage, ".deltacommit" if options is MOR else ".commit", part)
    assert main(["doctor", str(tmp_path), "--grace", "0"]) != 0
    assert f"hoodie rollback TABLE {time}" in " ".join(capsys.readouterr().out.split())
    assert main(["rollback", str(tmp_path), time, "--yes"]) == 0
    assert main(["doctor", str(tmp_path), "--grace", "0"]) == 0
    assert read(storage) == FIRST


# --- as a user has it, in each table version ---

EachVersion = pytest.mark.parametrize("version", ["6", "8", "9"])
EachType = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def new_table(path: Path, version: str, table_type: str) -> hoodie.HoodieTable:
    options = {"hoodie.write.table.version": version, "hoodie.compact.inline": "false"}
    table = hoodie.create_table(path, record_key="id", ordering="ts", table_type=table_type, options=options)
    for number in range(3):
        table.upsert(pa.table({"id": ["a", f"b{number}"], "ts": [number, number]}))
    return table


def stored(table: hoodie.HoodieTable) -> list[tuple[str, int]]:
    return sorted((row["id"], row["ts"]) for row in table.to_arrow().select(["id", "ts"]).to_pylist())


def damage(table: hoodie.HoodieTable, instant: str, action: str, part: float | bytes) -> None:
    """Leave a part of a completed instant's file, or another content."""
    (path,) = (
        path
        for path in Path(table.path, ".hoodie").rglob(f"{instant}*.{action}")
        if "metadata" not in path.parts and path.stat().st_size
    )
    path.write_bytes(part if isinstance(part, bytes) else path.read_bytes()[: int(path.stat().st_size * part)])


def advice(table: hoodie.HoodieTable) -> str:
    return " ".join(finding.advice for finding in table.check(grace=0))


@pytest.mark.parametrize(
    ("part", "version", "table_type", "newer"),
    covering([0, 0.6, b"{}"], "689", ["COPY_ON_WRITE", "MERGE_ON_READ"], range(3), pairs=True),
)
def test_commits_are_rolled_back_as_the_doctor_says_down_to_a_damaged_one(
    newer: int, table_type: str, version: str, part: float | bytes, tmp_path: Path
) -> None:
    table = new_table(tmp_path / "t", version, table_type)
    before = stored(table)
    damaged = table.upsert(pa.table({"id": ["a", "c"], "ts": [7, 7]})).instant
    for number in range(newer):
        table.upsert(pa.table({"id": ["a", "d"], "ts": [8 + number, 8]}))
    damage(table, damaged, "commit" if table_type == "COPY_ON_WRITE" else "deltacommit", part)
    if part in (0, b"{}"):
        for cdc in (False, True):
            with pytest.warns(CommitNotChecked, match=f"{damaged}.*its changes are left out"):
                table.changes("000", cdc=cdc, options={"hoodie.read.cdc.infer": "true"}).to_arrow()
    if newer:
        assert f"{newer + 1} times `hoodie rollback TABLE`" in advice(table)
        with pytest.raises(InvalidInput, match="newer commit"):
            table.rollback(damaged)
    else:
        assert f"`hoodie rollback TABLE {damaged}`" in advice(table)
    for _ in range(newer + 1):
        table.rollback()
    assert stored(table) == before
    assert table.check(grace=0) == ()


@EachVersion
@EachType
def test_the_empty_file_that_the_doctor_lets_a_person_create_brings_the_rows_back_and_may_stay(
    table_type: str, version: str, tmp_path: Path
) -> None:
    table = new_table(tmp_path / "t", version, table_type)
    before = stored(table)
    first = table.history()[-1][0].requested
    (path,) = (p for p in tmp_path.glob(f"t/.hoodie/**/{first}*") if p.suffix in (".commit", ".deltacommit"))
    path.unlink()
    (created,) = re.findall(r"create (\S+) empty", advice(table))
    (tmp_path / "t" / created).touch()
    assert stored(table) == before
    assert "leave it: its rows are read" in advice(table)
    table.upsert(pa.table({"id": ["z"], "ts": [9]}))
    assert stored(table) == [*before, ("z", 9)]


@EachVersion
@EachType
def test_an_empty_overwrite_that_is_the_first_commit_may_stay_and_is_archived(
    table_type: str, version: str, tmp_path: Path
) -> None:
    options = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
    options |= {"hoodie.write.table.version": version, "hoodie.archive.automatic": "false"}
    table = hoodie.create_table(tmp_path / "t", record_key="id", table_type=table_type, options=options)
    first = table.insert_overwrite(pa.table({"id": ["a"], "ts": [1]})).instant
    for number in range(6):
        table.upsert(pa.table({"id": ["a", "b"], "ts": [number, number]}))
    rows = stored(table)
    damage(table, first, "replacecommit", 0)
    assert stored(table) == rows
    assert "leave it: its rows are read, and it is archived in its time" in advice(table)
    assert table.archive().instants[0].requested == first
    assert stored(table) == rows


def test_archiving_lists_no_more_than_it_must_beside_an_empty_overwrite() -> None:
    """Each archiving looks whether the overwrite can leave, for as long as a file is older."""
    trips = ArrowTable.create(MemoryStorage(), {**COW, **ARCHIVE, "hoodie.archive.automatic": "false"})
    cities = [f"c{number:02}" for number in range(40)]

    def write_on() -> None:
        for number in range(6):
            trips.upsert(pa.table({"id": ["new"], "city": ["new"], "ts": [number + 2]}))

    trips.upsert(pa.table({"id": cities, "city": cities, "ts": [1] * 40}))
    write_on()
    trips.archive()
    replaced = trips.insert_overwrite(pa.table({"id": ["new"], "city": ["new"], "ts": [1]})).instant
    write_on()
    trips.storage.write(f".hoodie/{replaced}.replacecommit", b"")
    storage = CountingStorage(trips.storage)
    assert replaced not in {i.requested for i in ArrowTable(storage, trips.options).archive().instants}
    assert storage.count("list_tree") == 0
    assert storage.count("list") < 15


@Parts
@EachVersion
@EachType
def test_a_restore_to_the_savepoint_that_the_doctor_names_takes_a_damaged_commit_back(
    table_type: str, version: str, part: float, tmp_path: Path
) -> None:
    table = new_table(tmp_path / "t", version, table_type)
    before = stored(table)
    savepoint = table.savepoint()
    damaged = table.upsert(pa.table({"id": ["a", "c"], "ts": [7, 7]})).instant
    table.upsert(pa.table({"id": ["a", "d"], "ts": [8, 8]}))
    damage(table, damaged, "commit" if table_type == "COPY_ON_WRITE" else "deltacommit", part)
    assert f"`hoodie restore TABLE {savepoint.instant}`" in advice(table)
    table.restore(savepoint.instant)
    assert stored(table) == before
    assert table.check(grace=0) == ()


@pytest.mark.parametrize(
    ("action", "version", "part"),
    covering(["clean", "rollback"], "689", [0, 0.6], pairs=True, always=lambda case: case == ("clean", "8", 0)),
)
def test_the_record_of_a_clean_or_rollback_is_deleted_or_written_again_in_each_version(
    action: str, version: str, part: float, tmp_path: Path
) -> None:
    table = new_table(tmp_path / "t", version, "COPY_ON_WRITE")
    if action == "clean":
        instant = table.clean(options={"hoodie.clean.commits.retained": "1"}).instant
    else:
        instant = table.rollback().instant
    before = stored(table)
    damage(table, instant, action, part)
    by_the_plan = (action, part) == ("clean", 0)
    assert ("writes it again, by its plan" if by_the_plan else "can be deleted") in advice(table)
    assert "Restore it" not in advice(table)  # what the clean removed is not lost
    assert bool(table.repair(grace=0)) is not by_the_plan
    table.upsert(pa.table({"id": ["z"], "ts": [9]}))
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    assert stored(table) == [*before, ("z", 9)]
    assert table.check(grace=0) == ()
