"""How rows of a large batch meet their tasks: bounds that hold whatever the batch."""

import pyarrow as pa
import pytest

from hoodie.model.files import BaseFile, FileGroupId, FileSlice
from hoodie.plan.exchange import expected_pairs, joins_keys, pair_partitions, runs_of_batches, shared_partitions
from hoodie.plan.write import TaskKind, WriteTask

MiB = 1 << 20


def task(number: int, rows: int, base: int = 0) -> WriteTask:
    group = FileGroupId("p", f"f{number}")
    slice_ = FileSlice(group, "1", BaseFile(group, "1", "0-0-0", base, "b")) if base else None
    return WriteTask(number, group, TaskKind.REWRITE, slice_, rows, 0)


@pytest.mark.parametrize(
    ("sizes", "runs"),
    [
        ([], []),
        ([1], [[1]]),
        ([4, 4, 4], [[4, 4], [4]]),
        ([50, 1, 1], [[50], [1, 1]]),
        ([1, 50, 1], [[1], [50], [1]]),
        ([10] * 3, [[10], [10], [10]]),
    ],
)
def test_a_staged_file_is_read_in_parts_of_bounded_bytes(sizes, runs):
    assert [sizes[run] for run in runs_of_batches(sizes, 10)] == runs


def test_tasks_have_a_partition_of_spark_each_while_they_are_few():
    assert shared_partitions([task(n, 10**9) for n in range(2000)], 1000.0) == list(range(2000))
    assert shared_partitions([], 1.0) == []


def test_many_small_tasks_share_partitions_of_spark_up_to_a_bound_of_bytes():
    places = shared_partitions([task(n, 1024) for n in range(100_000)], 1024.0)
    assert places == sorted(places)
    assert places[-1] + 1 == len(set(places)) == -(-100_000 // 256)
    assert max(places.count(place) for place in set(places)) * 1024 * 1024 <= 256 * MiB


def test_large_base_files_count_where_tasks_share_a_partition_of_spark():
    places = shared_partitions([task(n, 1, 96 * MiB) for n in range(4200)], 100.0)
    assert places[-1] + 1 == 4200 / 42 + (4200 % 42 > 0)


@pytest.mark.parametrize(
    ("lowest", "highest", "pairs"),
    [
        (["a", "c", "e"], ["b", "d", "f"], 1),  # by time: a key is in one range
        (["a", "a", "a"], ["z", "z", "z"], 3),  # random keys: it is in all
        ([None, "a"], ["b", "z"], 2),  # not known: any key
        (["b"], ["b"], 1),
        ([], [], 0),
    ],
)
def test_pairs_are_expected_by_how_key_ranges_overlap(lowest, highest, pairs):
    columns = [pa.array(bounds, pa.string()) for bounds in (lowest, highest)]
    assert expected_pairs(*columns, keys=10) == pytest.approx(10 * pairs)


def test_keys_are_joined_only_where_filters_would_be_asked_more_often_than_there_are_keys():
    assert not joins_keys(40_000_000, stored=0, keys=10)  # few pairs, whatever the rest
    assert not joins_keys(1e9, stored=250_000_000, keys=10)
    assert joins_keys(1e9, stored=200_000_000, keys=10)


def test_more_pairs_are_shuffled_into_more_partitions_of_spark():
    assert pair_partitions(10, 200) == 200
    assert pair_partitions(1e9, 200) == 500
