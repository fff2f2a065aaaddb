"""The plan of a write: small files first, then new file groups of the right size."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from hoodie.config.write import FileSizing
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import BaseFile, FileGroupId, FileSlice
from hoodie.plan.write import PartitionProfile, TaskKind, TaskKinds, measure_record_size, new_group_sizes, plan_write

SIZING = FileSizing(max_size=1000, small_limit=500)
KINDS = TaskKinds(insert=TaskKind.CREATE, fill=TaskKind.REWRITE, update=TaskKind.APPEND)


def base(file_id, size, partition="p"):
    group = FileGroupId(partition, file_id)
    return FileSlice(group, "1", BaseFile(group, "1", "0-0-0", size, f"{file_id}_0-0-0_1.parquet"))


def plan(profile, small=(), slices=(), sizing=SIZING, record_size=10):
    ids = (f"new{n}" for n in itertools.count())
    return plan_write(
        profile,
        {slice_.group: slice_ for slice_ in slices},
        {partition: [(s, s.base.size) for s in small if s.group.partition == partition] for partition in profile},
        sizing,
        record_size,
        lambda: next(ids),
        KINDS,
    )


def test_inserts_fill_small_files_before_new_file_groups():
    made = plan({"p": PartitionProfile(inserts=250)}, small=[base("a", 400), base("b", 300)])
    assert [(t.group.file_id, t.inserts) for t in made.tasks] == [("a", 60), ("b", 70), ("new0", 100), ("new1", 20)]
    assert made.shares["p"] == ((0, 60), (1, 70), (2, 100), (3, 20))


def test_a_small_file_that_is_updated_too_gets_one_task():
    made = plan({"p": PartitionProfile(inserts=5, updates={"a": 3})}, small=[base("a", 400)], slices=[base("a", 400)])
    assert [(t.updates, t.inserts, t.kind) for t in made.tasks] == [(3, 5, TaskKind.REWRITE)]


def test_an_update_without_inserts_leaves_small_files_alone():
    made = plan({"p": PartitionProfile(0, {"b": 7})}, small=[base("a", 10)], slices=[base("b", 900)])
    assert [t.group.file_id for t in made.tasks] == ["b"]


def test_a_partition_that_may_have_inserts_after_all_has_a_spare_task_for_them():
    profile = {"p": PartitionProfile(0, {"b": 7}, unsure=True), "q": PartitionProfile(1, {"c": 2}, unsure=True)}
    made = plan(profile, small=[base("a", 10)], slices=[base("b", 900), base("c", 900, "q")])
    assert [t.group.file_id for t in made.tasks] == ["b", "c", "new0"]
    [spare] = made.spare
    assert (spare.number, spare.group.partition, spare.kind, spare.inserts) == (3, "p", TaskKind.CREATE, 0)
    assert made.insert_shares() == {2: (0.0, 1.0), 3: (0.0, 1.0)}


def test_a_full_small_file_takes_nothing():
    made = plan({"p": PartitionProfile(inserts=5)}, small=[base("a", 995)])
    assert [t.slice for t in made.tasks] == [None]


def test_a_fixed_split_size_rules_when_auto_split_is_off():
    assert new_group_sizes(1200, FileSizing(auto_split=False, split_size=500), 1024) == [500, 500, 200]


@given(st.integers(0, 10_000), st.integers(1, 2_000), st.lists(st.integers(0, 1_200), max_size=5))
def test_every_insert_is_dealt_out_once_and_no_group_outgrows_its_maximum(inserts, record_size, sizes):
    made = plan(
        {"p": PartitionProfile(inserts)},
        small=[base(f"s{n}", size) for n, size in enumerate(sizes)],
        record_size=record_size,
    )
    assert sum(count for _, count in made.shares["p"]) == inserts == sum(t.inserts for t in made.tasks)
    for task in made.tasks:
        room = SIZING.max_size - (task.slice.base.size if task.slice else 0)
        assert task.inserts * record_size < room + record_size


def stat(written, rows, **more):
    return WriteStat(file_id="f", path="f", partition="", total_write_bytes=written, num_writes=rows, **more)


def test_the_record_size_is_learnt_from_the_newest_commit_that_is_large_enough():
    commits = [
        CommitMetadata(operation=Operation.UPSERT, stats={"": (stat(400, 10),)}),
        CommitMetadata(operation=Operation.UPSERT, stats={"": (stat(601, 10), stat(0, 0))}),
        CommitMetadata(operation=Operation.UPSERT, stats={"": (stat(9000, 10),)}),
    ]
    assert measure_record_size(commits, SIZING) == 61
    assert measure_record_size(commits[:1], SIZING) == SIZING.record_size


def test_bytes_of_log_files_teach_nothing():
    commits = [CommitMetadata(operation=Operation.UPSERT, stats={"": (stat(4000, 10, log_version=1),)})]
    assert measure_record_size(commits, SIZING) == SIZING.record_size
