"""Completed commits whose file is empty or cut short: rolled back by listing, as whole ones are."""

from contextlib import suppress
from pathlib import Path

import pytest

from hoodie.commit.markers import MarkerKind, create_marker
from hoodie.errors import CorruptFile, InstantNotFound, InvalidInput, InvalidPlan
from hoodie.model.instant import Action, Instant
from hoodie.recovery.restore import restore
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.archive import archive, history
from hoodie.services.clean import clean
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import Dying
from hoodie.timeline.timeline import LAYOUT_1
from hoodie.timeline.transition import instant_path
from support.nightly import WAYS_TO_DIE, covering, nightly, scaled
from support.undoing import (
    COW,
    LATER,
    MOR,
    NOW,
    SECOND,
    THIRD,
    Act,
    batch,
    cleaned,
    compacted,
    data_files,
    dying,
    dying_before_publishing,
    newest,
    opened,
    read,
    read_rs,
    refused,
    table,
    upsert,
)

ARCHIVE = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "false",
}
LAST: dict[str, tuple[dict[str, str], Act]] = {
    "cow upsert": (COW, lambda storage: upsert(storage, THIRD)),
    "cow overwrite": (COW, lambda storage: opened(storage).insert_overwrite(batch(LATER))),
    "cow delete partitions": (COW, lambda storage: opened(storage).delete_partitions(["oslo"])),
    "mor upsert": (MOR, lambda storage: upsert(storage, THIRD)),
    "mor delete": (MOR, lambda storage: opened(storage).delete(batch(SECOND))),
    "mor overwrite": (MOR, lambda storage: opened(storage).insert_overwrite(batch(LATER))),
    "mor compaction": (MOR, compacted),
}


def cut_short(storage: Storage, instant: Instant, part: float) -> None:
    """Leave a part of the file of an instant; 1: all but its last byte."""
    path = instant_path(instant, layout=LAYOUT_1)
    data = storage.read(path)
    storage.write(path, data[: min(int(len(data) * part), len(data) - 1)])


@pytest.mark.parametrize(("part", "kind"), covering([0, 0.01, 0.6, 1], list(LAST)))
def test_a_damaged_commit_is_rolled_back_and_its_rows_stay_away_once_it_is_archived(
    kind: str, part: float, tmp_path: Path
):
    options, act = LAST[kind]
    storage = table(options)
    before, files = read(storage), data_files(storage)
    act(storage)
    done, written = newest(storage), data_files(storage) - files
    cut_short(storage, done, part)
    planned = rollback(storage, Settings.of({}), done.requested, dry_run=True)
    result = rollback(storage, Settings.of({}), done.requested)
    assert (result.target, result.plan) == (done.requested, planned.plan)
    assert read(storage) == before
    assert read_rs(storage, tmp_path) == before
    assert {path for path in written if path.endswith(".parquet")} == set(result.deletes)
    assert {path for path in written if ".log." in path} == set(result.undoes)
    rows = before
    for number in range(6):
        batch_of_this = {"z": ("oslo", 20 + number, "late")}
        upsert(storage, batch_of_this)
        rows = {**rows, **batch_of_this}
    if kind == "mor compaction":  # the plan stays, and archiving waits for it
        return
    archive(storage, Settings.of(ARCHIVE))
    assert load_state(storage).timeline.first_commit > done.requested
    assert read(storage) == rows


@pytest.mark.parametrize("how", WAYS_TO_DIE)
@pytest.mark.parametrize("kind", [nightly("cow upsert"), "cow overwrite", "mor upsert", nightly("mor compaction")])
def test_a_rollback_of_a_damaged_commit_that_dies_anywhere_can_be_repeated(kind: str, how: Dying):
    options, act = LAST[kind]
    storage = table(options)
    before, files = read(storage), data_files(storage)
    act(storage)
    done = newest(storage)
    cut_short(storage, done, 0.6)
    left = dying(how, storage, lambda storage: rollback(storage, Settings.of({}), done.requested), step=scaled(2, 1))
    assert len(left) > 3
    for died in left:
        with suppress(InstantNotFound, InvalidInput):  # it is gone, or back to its plan
            rollback(died, Settings.of({}), done.requested)
        assert read(died) == before
        gone = data_files(storage) - files
        assert not {path for path in gone if path.endswith(".parquet")} & data_files(died)
        upsert(died, LATER)
        assert read(died) == {**before, **LATER}


@pytest.mark.parametrize("options", [COW, MOR])
def test_a_damaged_commit_below_newer_ones_is_rolled_back_after_them(options):
    storage = table(options)
    before = read(storage)
    upsert(storage, THIRD)
    damaged = newest(storage)
    upsert(storage, LATER)
    cut_short(storage, damaged, 0.6)
    with pytest.raises(InvalidInput, match="roll that back first"):
        rollback(storage, Settings.of({}), damaged.requested)
    rollback(storage, Settings.of({}))
    rollback(storage, Settings.of({}))
    assert read(storage) == before


@pytest.mark.parametrize("options", [COW, MOR])
def test_a_restore_takes_damaged_commits_back_wherever_it_dies(options):
    storage = table(options)
    before = read(storage)
    saved = make_savepoint(storage, Settings.of({})).instant
    upsert(storage, THIRD)
    cut_short(storage, newest(storage), 0.6)
    for died in dying(Dying.AFTER, storage, lambda storage: restore(storage, Settings.of({}), saved)):
        restore(died, Settings.of({}), saved)
        assert read(died) == before


def test_logs_whose_blocks_cannot_be_read_are_found_by_their_markers():
    storage = table(MOR)
    before, files = read(storage), data_files(storage)
    upsert(storage, THIRD)
    done = newest(storage)
    logs = [path for path in data_files(storage) - files if ".log." in path]
    for path in logs:
        create_marker(storage, done.requested, path, MarkerKind.APPEND)
        storage.write(path, storage.read(path)[:20])
    cut_short(storage, done, 0)
    assert set(rollback(storage, Settings.of({})).undoes) == set(logs)
    assert read(storage) == before


@pytest.mark.parametrize("kind", ["cow upsert", "cow overwrite"])
def test_a_damaged_commit_stays_once_what_it_replaced_is_cleaned(kind: str):
    options, act = LAST[kind]
    storage = table(options)
    current = {s.base.path for s in opened(storage).slices() if s.base and s.group.partition == "oslo"}
    act(storage)
    cut_short(storage, newest(storage), 0.6)
    cleaned(storage, current, done=True)
    refused(
        storage,
        InvalidPlan,
        "were removed by cleaning, or will be",
        lambda dry_run: rollback(storage, Settings.of({}), dry_run=dry_run),
    )


@pytest.mark.parametrize("options", [COW, MOR])
def test_archiving_waits_for_an_overwrite_that_says_nothing_until_it_is_rolled_back(options):
    storage = table(options)
    before = read(storage)
    opened(storage).insert_overwrite(batch(LATER))
    damaged = newest(storage)
    for number in range(2):
        upsert(storage, {"z": ("bern", 20 + number, "late")})
    rows = read(storage)
    cut_short(storage, damaged, 0)
    how = Settings.of({**ARCHIVE, **NOW})
    for act in (read, lambda storage: upsert(storage, LATER), lambda storage: archive(storage, how)):
        with pytest.raises(CorruptFile, match=f"{damaged.requested}.*roll it back"):
            act(storage)
    assert damaged in load_state(storage).timeline.commits
    while load_state(storage).timeline.newest_commit >= damaged.requested:
        rollback(storage, Settings.of({}))
    assert read(storage) == before
    opened(storage).insert_overwrite(batch(LATER))
    for number in range(2):
        upsert(storage, {"z": ("bern", 20 + number, "late")})
    assert read(storage) == rows
    clean(storage, Settings.of(ARCHIVE))
    assert archive(storage, how).instants
    assert read(storage) == rows


@pytest.mark.parametrize("options", [COW, MOR])
def test_a_commit_that_says_nothing_and_replaces_nothing_is_archived(options):
    storage = table(options)
    upsert(storage, THIRD)
    damaged = newest(storage)
    for number in range(6):
        upsert(storage, {"z": ("bern", 20 + number, "late")})
    rows = read(storage)
    cut_short(storage, damaged, 0)
    assert archive(storage, Settings.of({**ARCHIVE, **NOW})).instants[-1] > damaged
    assert damaged not in load_state(storage).timeline.commits
    assert read(storage) == rows
    assert damaged.requested in [instant.requested for instant, _ in history(load_state(storage), archived=True)]


def test_a_write_whose_profile_is_cut_short_is_rolled_back_by_the_next():
    storage = table(MOR)
    before = read(storage)
    dying_before_publishing(storage, lambda storage: upsert(storage, THIRD))
    (pending,) = load_state(storage).timeline.pending({Action.DELTA_COMMIT})
    storage.delete_tree(f".hoodie/.temp/{pending.requested}")
    cut_short(storage, pending, 0.5)
    upsert(storage, LATER)
    assert read(storage) == {**before, **LATER}
    assert not load_state(storage).timeline.pending()
