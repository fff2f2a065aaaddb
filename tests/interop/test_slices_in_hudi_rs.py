"""The file slices of real tables are those that hudi-rs finds, now and at every commit."""

import pytest
from hudi import HudiReadOptions, HudiTableBuilder

from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from hoodie.view.load import discover_partitions, load_view
from hoodie.view.slices import latest_slices, merged_slices
from support.oracles import fixture_names

NOT_READ = {"v3_mor_stock_ticks", "v5_cow_nonpartitioned"}  # versions that hudi-rs refuses
# hudi-rs does not join the slice that a pending compaction opened to the one before it, as Hudi does: it misses rows.
NOT_JOINED = {"mor_pending_compaction"}


def theirs(path, as_of):
    options = HudiReadOptions() if as_of is None else HudiReadOptions().with_as_of_timestamp(as_of)
    found = HudiTableBuilder.from_base_uri(str(path)).build().get_file_slices(options)
    return {
        (s.partition_path, s.file_id): (s.creation_instant_time, s.base_file_name, tuple(s.log_file_names))
        for s in found
    }


def ours(slices):
    return {
        (group.partition, group.file_id): (
            s.base_instant,
            s.base.name if s.base else "",
            tuple(log.name for log in s.logs),
        )
        for group, s in slices.items()
    }


@pytest.mark.parametrize("name", [name for name in fixture_names() if name not in NOT_READ | NOT_JOINED])
def test_slices_equal_those_of_hudi_rs(name, fixture_table):
    path = fixture_table(name)
    state = load_state(LocalStorage(path))
    view = load_view(state.storage, state.timeline, state.config)
    assert ours(merged_slices(view)) == theirs(path, None) != {}
    for instant in state.timeline.commits:
        expected = theirs(path, instant.requested)
        if (
            state.timeline.layout == 2
        ):  # there a name tells that a log is of a later commit; hudi-rs opens it all the same
            expected = {
                key: (*slice_[:2], tuple(n for n in slice_[2] if log_instant(n) <= instant.requested))
                for key, slice_ in expected.items()
            }
        assert ours(merged_slices(view, instant.requested)) == expected


def log_instant(name):
    return name.rpartition("_")[0].rpartition(".log.")[0].rpartition("_")[2]


@pytest.mark.parametrize("name", fixture_names())
def test_a_view_of_some_partitions_is_part_of_the_whole(name, fixture_table):
    state = load_state(LocalStorage(fixture_table(name)))
    whole = latest_slices(load_view(state.storage, state.timeline, state.config))
    partitions = discover_partitions(state.storage)
    assert {group.partition for group in whole} <= set(partitions)
    for partition in partitions:
        part = latest_slices(load_view(state.storage, state.timeline, state.config, [partition]))
        assert part == {group: slice_ for group, slice_ in whole.items() if group.partition == partition}


def test_a_pending_compaction_joins_two_slices(fixture_table):
    path = fixture_table("mor_pending_compaction")
    state = load_state(LocalStorage(path))
    view = load_view(state.storage, state.timeline, state.config)
    opened = state.timeline.pending_compactions[0].requested
    merged, written = merged_slices(view), latest_slices(view)
    assert merged.keys() == written.keys()
    joined = {group for group, slice_ in written.items() if slice_.base_instant == opened}
    assert joined == view.compacting.keys() != set()
    for group in joined:
        assert written[group].base is None
        assert merged[group].base_instant < opened
        assert written[group].logs == tuple(log for log in merged[group].logs if log.base_instant == opened) != ()
        assert merged[group].logs[-len(written[group].logs) :] == written[group].logs
    before = {key: (s[0], s[1], tuple(n for n in s[2] if f"_{opened}.log" not in n)) for key, s in ours(merged).items()}
    assert before == theirs(path, None)
