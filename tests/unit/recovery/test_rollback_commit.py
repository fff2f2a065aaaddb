"""Rolling back by call: the latest commit of each kind, what is pending, what is refused, and dying anywhere."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from hoodie.api.arrow_keys import ArrowKeys
from hoodie.commit.conflict_check import pending_rollbacks
from hoodie.commit.transaction import clean_up
from hoodie.config.options import Options
from hoodie.errors import HoodieError, InstantNotFound, InvalidInput, InvalidPlan, SchemaMismatch, WriteConflict
from hoodie.formats.log.blocks import BlockKind, read_blocks
from hoodie.formats.timeline.commit_json import encode_commit
from hoodie.formats.timeline.plans import encode_replace_plan
from hoodie.formats.timeline.services import (
    decode_rollback_plan,
)
from hoodie.model.commit import CommitMetadata, Operation
from hoodie.model.files import parse_data_file
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    ReplacePlan,
)
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.savepoint import delete_savepoint
from hoodie.storage.protocol import Storage, join, split
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.load import read_commit
from hoodie.timeline.timeline import LAYOUT_1
from hoodie.timeline.transition import create_requested, instant_path, to_inflight
from support import undoing
from support.nightly import WAYS_TO_DIE, covering, nightly, scaled
from support.undoing import (
    COW,
    FIRST,
    LATER,
    MOR,
    NOW,
    SECOND,
    THIRD,
    Act,
    Meanwhile,
    as_clustering,
    batch,
    cleaned,
    compacted,
    data_files,
    dying,
    newest,
    opened,
    read,
    read_rs,
    table,
    upsert,
)  # fmt: skip

WHOLE = encode_commit(CommitMetadata(operation=Operation.UPSERT))
SEARCH = {"hoodie.rollback.using.markers": "false"}

LAST: dict[str, tuple[Mapping[str, str], Act]] = {
    "cow upsert": (COW, lambda storage: upsert(storage, THIRD)),
    "cow delete": (COW, lambda storage: opened(storage).delete(batch(SECOND))),
    "cow overwrite": (COW, lambda storage: opened(storage).insert_overwrite(batch(LATER))),
    "cow overwrite table": (COW, lambda storage: opened(storage).insert_overwrite_table(batch(LATER))),
    "cow delete partitions": (COW, lambda storage: opened(storage).delete_partitions(["oslo"])),
    "mor upsert": (MOR, lambda storage: upsert(storage, THIRD)),
    "mor delete": (MOR, lambda storage: opened(storage).delete(batch(SECOND))),
    "mor overwrite": (MOR, lambda storage: opened(storage).insert_overwrite(batch(LATER))),
    "mor compaction": (MOR, compacted),
}


@pytest.mark.parametrize("kind", LAST)
def test_a_rolled_back_commit_leaves_the_table_as_it_was_before(kind: str, tmp_path: Path):
    options, act = LAST[kind]
    storage = table(options)
    before, files = read(storage), data_files(storage)
    act(storage)
    done = newest(storage)
    written = data_files(storage) - files
    planned = rollback(storage, Settings.of({}), dry_run=True)
    result = rollback(storage, Settings.of({}))
    assert (result.target, result.plan) == (done.requested, planned.plan)
    assert read(storage) == before
    assert read_rs(storage, tmp_path) == before
    left = data_files(storage)
    assert files <= left
    assert {path for path in written if path.endswith(".parquet")} == set(result.deletes)
    assert set(result.deletes).isdisjoint(left)
    assert {path for path in written if ".log." in path} == set(result.undoes)
    assert {split(path)[1].rpartition("_")[2] for path in left - files - written} <= {"1-0-1"}
    state = load_state(storage)
    assert [i for i in state.timeline.instants if i.requested == done.requested] == (
        [Instant(done.requested, Action.COMPACTION, State.REQUESTED)] if kind == "mor compaction" else []
    )
    assert not storage.list_tree(".hoodie/.temp")
    upsert(storage, LATER)
    assert read(storage) == {**before, **LATER}


@pytest.mark.parametrize("how", WAYS_TO_DIE)
@pytest.mark.parametrize("kind", [nightly("cow upsert"), "cow overwrite", "mor upsert", nightly("mor compaction")])
def test_a_rollback_that_dies_anywhere_leaves_before_or_after_and_is_finished_by_the_next(kind: str, how: Dying):
    options, act = LAST[kind]
    storage = table(options)
    before = read(storage)
    act(storage)
    with_it, done = read(storage), newest(storage).requested
    left = dying(how, storage, lambda storage: rollback(storage, Settings.of({}), done), step=scaled(2, 1))
    assert len(left) > 3
    seen = []
    for number, died in enumerate(left):
        found = read(died)
        assert found in (before, with_it)
        seen.append(done not in {each.requested for each in load_state(died).timeline.commits})
        assert found == (before if seen[-1] else with_it)
        other = died.copy()
        clean_up(load_state(other))  # what another writer does first
        assert read(other) == found
        assert not pending_rollbacks(load_state(other).timeline)
        if number % 2:
            upsert(other, LATER)
            assert read(other) == {**found, **LATER}
        if number < len(left) - 1:
            again(died, done)
        assert read(died) == before
    assert seen == sorted(seen)


def again(storage: Storage, instant: str) -> None:
    """Roll back until it is gone, as a person would."""
    with suppress(InstantNotFound, InvalidInput):  # it is gone, or back to its plan
        rollback(storage, Settings.of({}), instant)


def test_calling_again_after_a_crash_does_not_roll_back_one_commit_more():
    storage = table()
    upsert(storage, THIRD)
    for died in dying(Dying.AFTER, storage, lambda storage: rollback(storage, Settings.of({})))[2:-2]:
        begun = pending_rollbacks(load_state(died).timeline)
        if begun and newest(died).requested != newest(storage).requested:
            assert rollback(died, Settings.of({})).target == newest(storage).requested
            assert len(load_state(died).timeline.commits) == 2


def test_commits_are_rolled_back_one_after_the_other():
    storage = table(MOR)
    upsert(storage, THIRD)
    rollback(storage, Settings.of({}))
    rollback(storage, Settings.of({}))
    assert read(storage) == FIRST
    rollback(storage, Settings.of({}))
    assert read(storage) == {}
    with pytest.raises(InstantNotFound, match="no completed commit"):
        rollback(storage, Settings.of({}))
    upsert(storage, LATER)
    assert read(storage) == LATER


def test_a_dry_run_changes_nothing():
    storage = table(MOR)
    upsert(storage, THIRD)
    before = storage.snapshot()
    result = rollback(storage, Settings.of({}), dry_run=True)
    assert storage.snapshot() == before
    assert (result.instant, result.metadata) == ("", None)
    assert len(result.deletes) == 1  # of bern
    assert len(result.undoes) == 2


def test_the_plan_of_appended_logs_gives_their_sizes_as_hudi_has_them():
    storage = table(MOR)
    upsert(storage, SECOND)
    result = rollback(storage, Settings.of({}))
    data = storage.read(f".hoodie/{result.instant}.rollback.requested")
    assert decode_rollback_plan(data, "plan") == result.plan
    assert result.metadata is not None
    for request in result.plan.requests:
        done = result.metadata.partitions[request.partition]
        assert request.log_blocks == done.failed_logs
        assert all(storage.size(join(request.partition, name)) == size for name, size in request.log_blocks.items())
        for name, size in done.command_logs.items():
            (block,) = read_blocks(storage.read(join(request.partition, name)), name)
            assert (size, block.kind, block.header.target) == (105, BlockKind.COMMAND, result.target)


def test_a_rollback_looks_only_where_the_commit_wrote():
    storage = MemoryStorage()
    ArrowTable.create(storage, COW)
    upsert(storage, {f"k{n}": (f"city{n}", 1, "x") for n in range(12)})
    upsert(storage, {"k3": ("city3", 2, "y")})
    counting = CountingStorage(storage)
    rollback(counting, Settings.of({}))
    assert counting.count("list_tree", "") == 0
    assert not any(counting.count("list", f"city{n}") for n in range(12) if n != 3)


# --- what is refused, with nothing changed ---


def refused(storage: MemoryStorage, kind: type[HoodieError], match: str, instant: str | None = None) -> None:
    undoing.refused(storage, kind, match, lambda dry_run: rollback(storage, Settings.of({}), instant, dry_run=dry_run))


def test_a_commit_that_is_not_the_latest_is_refused():
    storage = table()
    first = load_state(storage).timeline.commits[0].requested
    refused(storage, InvalidInput, "a newer commit is completed", first)


def test_a_savepoint_is_refused():
    storage = table()
    make_savepoint(storage, Settings.of({}))
    refused(storage, InvalidInput, "it is a savepoint")


def test_an_instant_that_is_not_there_is_refused():
    refused(table(), InstantNotFound, "never began, or is rolled back already", "20200101000000000")


def test_a_commit_is_refused_while_a_write_is_pending():
    storage = table()
    create_requested(storage, "20990101000000000", Action.COMMIT, layout=LAYOUT_1)
    refused(storage, InvalidInput, "20990101000000000 is pending and may build on it")


def test_a_commit_is_refused_while_a_pending_compaction_builds_on_it():
    storage = table(MOR)
    planned = schedule_compaction(storage, Settings.of(NOW))
    refused(storage, InvalidInput, f"pending compaction {planned} builds on its files")


def test_a_compaction_is_refused_once_logs_were_written_for_its_files():
    storage = table(MOR)
    instant = compacted(storage)
    upsert(storage, SECOND)
    refused(storage, InvalidInput, "newer commit", instant)
    rollback(storage, Settings.of({}))
    rollback(storage, Settings.of({}), instant)
    assert read(storage) == {**FIRST, **SECOND}
    compact(storage, Settings.of({}), instant)
    assert read(storage) == {**FIRST, **SECOND}


def test_a_compaction_that_is_only_planned_is_refused():
    storage = table(MOR)
    refused(storage, InvalidInput, "only planned", schedule_compaction(storage, Settings.of(NOW)))


def clustering(storage: Storage) -> bytes:
    """The plan of a clustering of all base files."""
    groups = [parse_data_file(*split(path), 0) for path in sorted(data_files(storage)) if path.endswith(".parquet")]
    slices = tuple(ClusteringSlice(group=file.group, base_file=file.name) for file in groups if file)
    plan = ReplacePlan(operation="CLUSTER", clustering=ClusteringPlan(groups=(ClusteringGroup(slices=slices),)))
    return encode_replace_plan(plan, storage.root)


def cluster(storage: Storage, time: str) -> Instant:
    return create_requested(storage, time, Action.REPLACE_COMMIT, clustering(storage), layout=LAYOUT_1)


def test_a_commit_is_refused_while_a_pending_clustering_builds_on_it():
    storage = table()
    cluster(storage, "20990101000000000")
    refused(storage, InvalidInput, "pending replacecommit 20990101000000000 builds on its files")


def test_a_pending_clustering_keeps_its_plan_and_loses_its_files():
    storage = table()
    begun = to_inflight(storage, cluster(storage, "20990101000000000"), layout=LAYOUT_1)
    storage.write("oslo/f-0_1-1-1_20990101000000000.parquet", b"half")
    result = rollback(storage, Settings.of(SEARCH), begun.requested)
    assert result.deletes == ("oslo/f-0_1-1-1_20990101000000000.parquet",)
    found = load_state(storage).timeline.find(begun.requested, Action.REPLACE_COMMIT)
    assert found == Instant(begun.requested, Action.REPLACE_COMMIT, State.REQUESTED)


@pytest.mark.parametrize("how", WAYS_TO_DIE)
@pytest.mark.parametrize("version", ["6", "9"])
def test_a_completed_clustering_goes_with_its_plan(version: str, how: Dying):
    storage = table({**COW, "hoodie.write.table.version": version})
    before = read(storage)
    instant = opened(storage).insert_overwrite_table(batch(LATER)).instant
    as_clustering(storage, instant, clustering(table()))
    for died in dying(how, storage, lambda storage: rollback(storage, Settings.of({}))):
        clean_up(load_state(died))
        if newest(died).requested == instant:
            rollback(died, Settings.of({}))
        assert read(died) == before
        assert not [i for i in load_state(died).timeline.instants if i.requested == instant]


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("kind", ["cow upsert", "cow overwrite", "mor compaction"])
def test_a_commit_is_refused_once_what_it_replaced_is_cleaned_or_is_about_to_be(kind: str, done: bool):
    options, act = LAST[kind]
    storage = table(options)
    old = {path for path in data_files(storage) if path.startswith("oslo/") and path.endswith("parquet")}
    current = {s.base.path for s in opened(storage).slices() if s.base} & old
    act(storage)
    cleaned(storage, current, done=done)
    refused(storage, InvalidPlan, "were removed by cleaning, or will be")


def test_files_that_were_cleaned_for_being_old_do_not_matter():
    storage = table()
    upsert(storage, THIRD)
    before = {path for path in data_files(storage) if path.startswith("rome/")}
    current = {s.base.path for s in ArrowTable(storage).slices() if s.base}
    oldest = min(before, key=lambda path: path[-25:])
    assert oldest not in current
    cleaned(storage, {oldest}, done=True)
    rollback(storage, Settings.of({}))
    assert read(storage) == {**FIRST, **SECOND}


def test_the_last_commit_of_an_archived_timeline_is_refused(monkeypatch: pytest.MonkeyPatch):
    storage = table()
    first, last = load_state(storage).timeline.commits
    for suffix in ("commit.requested", "inflight", "commit"):
        storage.delete(f".hoodie/{first.requested}.{suffix}")
    monkeypatch.setattr("hoodie.recovery.rollback.newest_archived", lambda *_: first.requested)
    refused(storage, InvalidPlan, "all commits before it are archived", last.requested)
    refused(storage, InstantNotFound, "is archived", first.requested)


def test_a_table_is_not_touched_while_a_restore_is_pending():
    storage = table()
    create_requested(storage, "20990101000000000", Action.RESTORE, b"", layout=LAYOUT_1)
    refused(storage, WriteConflict, "is being restored")
    with pytest.raises(WriteConflict, match="is being restored"):
        upsert(storage, LATER)


def test_what_comes_while_the_rollback_is_planned_stops_it():
    saved = table()
    make_savepoint(saved, Settings.of({}))
    savepoint = next(path for path in saved.snapshot() if path.endswith(".savepoint"))
    for act in (
        lambda storage: storage.create_new(savepoint, saved.read(savepoint)),
        lambda storage: create_requested(storage, "20990101000000000", Action.COMMIT, layout=LAYOUT_1),
        lambda storage: cluster(storage, "20990101000000000"),
    ):
        storage = saved.copy()
        delete_savepoint(storage, Settings.of({}), newest(storage).requested)
        before = read(storage)
        with pytest.raises(WriteConflict, match="That happened meanwhile"):
            rollback(Meanwhile(storage, ".rollback.requested", act), Settings.of({}))
        assert read(storage) == before
        assert not pending_rollbacks(load_state(storage).timeline)


def test_a_savepoint_that_is_made_while_its_commit_is_rolled_back_is_refused():
    storage = table()
    refusals = []

    def act(inner: Storage) -> None:
        with pytest.raises(WriteConflict) as refusal:
            make_savepoint(inner, Settings.of({}))
        refusals.append(refusal)

    rollback(Meanwhile(storage, ".rollback.requested", act), Settings.of({}))
    assert refusals
    assert read(storage) == FIRST
    assert not [path for path in storage.snapshot() if "savepoint" in path]


# --- pending instants ---


def dead_write(options: Mapping[str, str] = MOR) -> tuple[MemoryStorage, Instant]:
    """A table in which a writer died right before it published; its instant."""
    for storage in reversed(dying(Dying.BEFORE, table(options), lambda storage: upsert(storage, THIRD))):
        pending = load_state(storage).timeline.pending()
        if pending and pending[0].state is State.INFLIGHT:
            return storage, pending[0]
    raise AssertionError


def of_dead(storage: MemoryStorage, dead: Instant) -> tuple[set[str], set[str]]:
    """Base files and log files that it left."""
    files = data_files(storage)
    bases = {path for path in files if path.endswith(f"_{dead.requested}.parquet")}
    return bases, {path for path in files if ".log." in path and dead.requested.encode() in storage.read(path)}


def lose_markers(storage: MemoryStorage, dead: Instant) -> None:
    storage.delete_tree(f".hoodie/.temp/{dead.requested}")


def unreadable_markers(storage: MemoryStorage, dead: Instant) -> None:
    lose_markers(storage, dead)
    storage.write(f".hoodie/.temp/{dead.requested}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    storage.write(f".hoodie/.temp/{dead.requested}/MARKERS0", b"oslo/what.marker.MOVE\n")


def unknown_markers(storage: MemoryStorage, dead: Instant) -> None:
    lose_markers(storage, dead)
    storage.write(f".hoodie/.temp/{dead.requested}/MARKERS.type", b"CLOUD")


def no_profile(storage: MemoryStorage, dead: Instant) -> None:
    lose_markers(storage, dead)
    storage.write(instant_path(dead, layout=LAYOUT_1), b"")


@pytest.mark.parametrize(
    ("options", "harm"),
    covering({"cow": COW, "mor": MOR}, [None, lose_markers, unreadable_markers, unknown_markers, no_profile]),
)
def test_a_pending_write_is_taken_back_whatever_became_of_its_markers(
    options: Mapping[str, str], harm: Callable[[MemoryStorage, Instant], None] | None, tmp_path: Path
):
    storage, dead = dead_write(options)
    bases, logs = of_dead(storage, dead)
    assert bases
    assert bool(logs) == (options is MOR)
    if harm:
        harm(storage, dead)
    result = rollback(storage, Settings.of({}), dead.requested)
    assert (set(result.deletes), set(result.undoes)) == (bases, logs)
    assert data_files(storage).isdisjoint(bases)
    assert not load_state(storage).timeline.pending()
    assert not storage.list_tree(".hoodie/.temp")
    assert read(storage) == {**FIRST, **SECOND}
    assert read_rs(storage, tmp_path) == {**FIRST, **SECOND}


def test_without_markers_by_option_all_partitions_are_searched():
    storage, dead = dead_write()
    expected = of_dead(storage, dead)
    stray = f"oslo/stray-0_0-0-0_{dead.requested}.parquet"
    storage.write(stray, b"of a task whose marker got lost")
    storage.write(instant_path(dead, layout=LAYOUT_1), b"{ no profile")
    result = rollback(storage, Settings.of(SEARCH), dead.requested)
    assert (set(result.deletes), set(result.undoes)) == (expected[0] | {stray}, expected[1])
    assert read(storage) == {**FIRST, **SECOND}


def test_the_next_writer_searches_without_markers_by_option_too():
    storage, dead = dead_write()
    stray = f"oslo/stray-0_0-0-0_{dead.requested}.parquet"
    storage.write(stray, b"of a task whose marker got lost")
    opened(storage).upsert(batch(LATER), options=SEARCH)
    assert not storage.exists(stray)
    assert read(storage) == {**FIRST, **SECOND, **LATER}


def test_a_pending_write_is_rolled_back_though_later_ones_are_completed():
    storage, dead = dead_write()
    opened(storage).upsert(batch(LATER), options={"hoodie.cleaner.policy.failed.writes": "NEVER"})
    assert newest(storage).requested > dead.requested
    result = rollback(storage, Settings.of({}), dead.requested)
    assert result.metadata is not None
    assert result.metadata.commits == (dead.requested,)
    assert read(storage) == {**FIRST, **SECOND, **LATER}


def test_a_write_that_is_published_while_it_is_rolled_back_stays():
    storage, dead = dead_write()
    with_it = {path: data for path, data in storage.snapshot().items() if not path.startswith(".hoodie")}
    for moment in (".rollback.requested", ".rollback.inflight"):
        died = storage.copy()

        def publish(inner: Storage) -> None:
            inner.create_new(
                instant_path(Instant(dead.requested, dead.action, State.COMPLETED), layout=LAYOUT_1), WHOLE
            )

        with pytest.raises(WriteConflict, match="published it meanwhile"):
            rollback(Meanwhile(died, moment, publish), Settings.of({}), dead.requested)
        assert dead.requested in {each.requested for each in load_state(died).timeline.commits}
        assert with_it.items() <= died.snapshot().items()
        assert not pending_rollbacks(load_state(died).timeline)
        assert died.exists(instant_path(dead, layout=LAYOUT_1))


def test_the_inflight_file_goes_before_any_data_so_that_a_sleeping_writer_cannot_publish():
    storage, dead = dead_write(COW)
    for died in dying(Dying.BEFORE, storage, lambda storage: rollback(storage, Settings.of({}), dead.requested)):
        if of_dead(storage, dead)[0] - data_files(died):
            assert not died.exists(instant_path(dead, layout=LAYOUT_1))


def test_a_pending_compaction_is_back_to_its_plan_and_later_logs_stay():
    storage = table(MOR)
    left = dying(Dying.BEFORE, storage, compacted)
    (died, pending) = next(
        (each, found[0])
        for each in reversed(left)
        if (found := load_state(each).timeline.pending_compactions) and found[0].state is State.INFLIGHT
    )
    upsert(died, THIRD)
    expected = {**FIRST, **SECOND, **THIRD}
    assert read(died) == expected
    died.delete_tree(".hoodie/.locks")  # the dead process's claim has ended
    result = rollback(died, Settings.of({}), pending.requested)
    assert all(path.endswith(".parquet") for path in result.deletes)
    assert read(died) == expected
    assert load_state(died).timeline.pending_compactions[0].state is State.REQUESTED
    compact(died, Settings.of({}), pending.requested)
    assert read(died) == expected


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_the_columns_stay_when_only_a_compaction_is_left_to_tell_them(version: str) -> None:
    storage = table({**MOR, "hoodie.write.table.version": version})
    compacted(storage)
    upsert(storage, THIRD)
    keep = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
    opened(storage).archive(keep)
    rollback(storage, Settings.of({}))
    (left,) = (read_commit(storage, load_state(storage).timeline, i) for i in load_state(storage).timeline.commits)
    assert left.operation is Operation.COMPACT
    assert read(storage) == {**FIRST, **SECOND}
    with pytest.raises(SchemaMismatch, match="column 'note' is missing"):
        opened(storage).upsert(batch(THIRD).drop_columns(["note"]))
    keys = ArrowKeys(storage, Options()).read(batch(SECOND), meta=False)
    assert keys.rows.to_arrow().column("note").to_pylist() == ["second", "second"]
