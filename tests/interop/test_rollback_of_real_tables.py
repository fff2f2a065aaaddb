"""Tables that Hudi wrote: the last commit rolled back, restored to a savepoint; Hudi's own rollbacks done again."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie.commit.rollback_executor import roll_back, rollback_plan
from hoodie.commit.rollback_planner import plan_rollback
from hoodie.errors import UnsupportedTable
from hoodie.formats.log.blocks import read_blocks
from hoodie.formats.timeline.services import decode_rollback_metadata
from hoodie.model.instant import Action, Instant, State
from hoodie.recovery.restore import restore
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import join
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.timeline import LAYOUT_1
from hoodie.timeline.transition import create_requested, instant_path, to_inflight
from support.oracles import assert_same_rows, expected_rows, read_hudi_rs

TABLES = [
    "cow_archived", "cow_cdc", "cow_clustering", "cow_complex_key_hive_style", "cow_insert_overwrite", "cow_savepoint",
    "cow_soft_delete_flag", "cow_types", "cow_upserts_delete", "mor_bucket_index", "mor_compacted", "mor_deletes",
    "mor_event_time", "mor_logs", "mor_nonpartitioned", "mor_parquet_log_blocks", "mor_rolled_back", "mor_types",
    "v6_cow_nonpartitioned", "v6_cow_overwrite_table", "v6_cow_timestamp_keygen", "v6_mor_avro_8_inserts_3_deletes",
    "v6_mor_parquet_log_rollback", "v6_mor_parquet_log_simplekeygen", "v6_mor_payload_partial_update",
]  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_the_last_commit_of_a_real_table_is_rolled_back(name: str, fixture_table: Callable[[str], Path]):
    folder = fixture_table(name)
    table = ArrowTable(LocalStorage(folder))
    *_, before, last = load_state(table.storage).timeline.commits
    expected = read_hudi_rs(folder, as_of=before.requested)
    assert_same_rows(table.as_of(before.requested), expected)
    result = rollback(table.storage, Settings.of({}))
    assert result.target == last.requested
    assert_same_rows(table.snapshot(), expected)
    assert_same_rows(read_hudi_rs(folder), expected)
    assert not any(table.storage.exists(path) for path in result.deletes)
    assert not list(folder.glob(f"*/.*_{last.requested}.log*.cdc"))


@pytest.mark.parametrize("name", ["cow_upserts_delete", "cow_cdc", "cow_clustering", "mor_logs", "mor_compacted"])
def test_a_real_table_is_restored_to_a_savepoint_of_its_second_commit(name: str, fixture_table: Callable[[str], Path]):
    folder = fixture_table(name)
    table = ArrowTable(LocalStorage(folder))
    second = load_state(table.storage).timeline.commits[1].requested
    expected = read_hudi_rs(folder, as_of=second)
    make_savepoint(table.storage, Settings.of({}), second)
    restore(table.storage, Settings.of({}), second)
    assert load_state(table.storage).timeline.newest_commit == second
    assert_same_rows(table.snapshot(), expected)
    assert_same_rows(read_hudi_rs(folder), expected)


@pytest.mark.parametrize("name", ["v3_mor_stock_ticks"])
def test_a_table_that_is_not_written_is_not_rolled_back_either(name: str, fixture_table: Callable[[str], Path]):
    storage = LocalStorage(fixture_table(name))
    newest = load_state(storage).timeline.newest_commit
    for call in (
        lambda: rollback(storage, Settings.of({})), lambda: rollback(storage, Settings.of({}), dry_run=True),
        lambda: make_savepoint(storage, Settings.of({})),
        lambda: restore(storage, Settings.of({}), newest),
        lambda: restore(storage, Settings.of({}), newest, dry_run=True),
    ):  # fmt: skip
        with pytest.raises(UnsupportedTable):
            call()


def test_a_delta_commit_that_hudi_left_inflight_is_rolled_back(fixture_table: Callable[[str], Path]):
    folder = fixture_table("mor_inflight")
    storage = LocalStorage(folder)
    (pending,) = load_state(storage).timeline.pending()
    result = rollback(storage, Settings.of({}), pending.requested)
    assert result.plan.requests
    assert_same_rows(ArrowTable(storage).snapshot(), expected_rows("mor_inflight"))
    assert_same_rows(read_hudi_rs(folder), expected_rows("mor_inflight"))


def rolled_back(storage: LocalStorage) -> tuple[Instant, Instant]:
    """The rollback that Hudi did, and its target, put back on the timeline as pending."""
    (done,) = load_state(storage).timeline.completed({Action.ROLLBACK})
    plan = rollback_plan(storage, done, layout=LAYOUT_1)
    target = create_requested(storage, plan.instant.time, Action(plan.instant.action), layout=LAYOUT_1)
    return done, to_inflight(storage, target, layout=LAYOUT_1)


@pytest.mark.parametrize("name", ["mor_rolled_back", "v6_mor_parquet_log_rollback"])
def test_a_listing_finds_what_hudis_plan_named(name: str, fixture_table: Callable[[str], Path]):
    storage = LocalStorage(fixture_table(name))
    done, target = rolled_back(storage)
    theirs = rollback_plan(storage, done, layout=LAYOUT_1)
    ours = plan_rollback(storage, target, listing=True, layout=LAYOUT_1)
    assert ours.instant == theirs.instant
    logs = [request for request in theirs.requests if request.log_blocks]
    assert sorted(map(repr, ours.requests)) == sorted(map(repr, logs))  # the base files that it deleted are gone


def test_hudis_rollback_done_again_leaves_the_same_files(fixture_table: Callable[[str], Path]):
    storage = LocalStorage(fixture_table("v6_mor_parquet_log_rollback"))
    done, target = rolled_back(storage)
    theirs = decode_rollback_metadata(storage.read(instant_path(done, layout=LAYOUT_1)), "theirs")
    blocks = {}
    for partition, part in theirs.partitions.items():
        for name in part.command_logs:
            blocks[join(partition, name)] = read_blocks(storage.read(join(partition, name)), name)
            storage.delete(join(partition, name))
        for entry in storage.list(partition):  # what came after it takes the next version
            if ".log.3_" in entry.name:
                storage.delete(join(partition, entry.name))
    for state in State:
        storage.delete(instant_path(Instant(done.requested, Action.ROLLBACK, state), layout=LAYOUT_1))
    ours = roll_back(storage, target, done.requested, listing=True, layout=LAYOUT_1)
    outcome = decode_rollback_metadata(storage.read(instant_path(ours, layout=LAYOUT_1)), "ours")
    assert (outcome.commits, outcome.instants) == (theirs.commits, theirs.instants)
    for partition, part in theirs.partitions.items():
        assert outcome.partitions[partition].command_logs == part.command_logs
        assert outcome.partitions[partition].failed_logs == part.failed_logs
    for path, expected in blocks.items():
        assert [(b.kind, b.header) for b in read_blocks(storage.read(path), path)] == [
            (b.kind, b.header) for b in expected
        ]
