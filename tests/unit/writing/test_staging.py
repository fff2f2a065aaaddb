"""A staged batch: each row reaches exactly the tasks that it is for, whatever the pieces and the plan."""

import itertools
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.index.pruning import SEVERAL
from hoodie.merge.rows import ROW_POSITION
from hoodie.model.meta import RECORD_KEY
from hoodie.spark.tasks import bin_pack
from hoodie.testing.storage import MemoryStorage
from hoodie.writing.batch.stage import FEW_BYTES, LARGEST_PARTITION, reads_stay_few
from hoodie.writing.batch.staging import (
    STAGING,
    Piece,
    StagedTask,
    by_partition,
    new_stage,
    read_hits,
    read_pieces,
    remove_stale,
    rows_of,
    stage_rows,
    write_hits,
)


def batch(keys, partitions, values=None):
    return pa.record_batch(
        {
            "v": pa.array(values if values is not None else list(range(len(keys))), pa.int64()),
            "_hoodie_record_key": pa.array(keys, pa.string()),
            "_hoodie_partition_path": pa.array(partitions, pa.string()),
        }
    )


def test_a_piece_holds_rows_of_one_partition():
    storage = MemoryStorage()
    pieces = stage_rows(storage, "s/a.arrow", iter([batch(["a", "b", "c"], ["p", "q", "p"])]), ())
    assert [(piece.partition, piece.rows) for piece in pieces] == [("p", 2), ("q", 1)]
    found = {piece.partition: rows.column("v").to_pylist() for piece, rows in read_pieces(storage, pieces)}
    assert found == {"p": [0, 2], "q": [1]}


def test_rows_without_key_or_ordering_value_are_counted():
    storage = MemoryStorage()
    pieces = stage_rows(storage, "s/a.arrow", iter([batch(["a", None], ["p", "p"], [None, None])]), ("v",))
    assert [(piece.bad_keys, piece.bad_ordering) for piece in pieces] == [(1, 2)]


def test_an_empty_task_stages_no_file():
    storage = MemoryStorage()
    assert stage_rows(storage, "s/a.arrow", iter([]), ()) == []
    assert storage.list_tree("") == {}


@given(
    st.lists(st.tuples(st.text("abcdef", min_size=1, max_size=3), st.sampled_from("pq")), min_size=1, max_size=60),
    st.lists(st.floats(0.01, 1.0), min_size=1, max_size=4),
    st.data(),
)
def test_every_row_reaches_the_group_that_holds_it_or_one_of_the_insert_tasks(rows, weights, data):
    storage = MemoryStorage()
    half = len(rows) // 2
    pieces = [
        piece
        for number, part in enumerate((rows[:half], rows[half:]))
        for piece in stage_rows(
            storage, f"s/{number}.arrow", iter([batch(*zip(*part, strict=True))] if part else []), ()
        )
    ]
    bounds = [0.0]
    for weight in weights:
        bounds.append(bounds[-1] + weight / sum(weights))
    bounds[-1] = 1.0
    for partition, part in by_partition(pieces).items():
        laid = [key for _, found in read_pieces(storage, part) for key in found.column(1).to_pylist()]
        held = set(data.draw(st.lists(st.sampled_from(laid), max_size=5)))
        hits = [number for number, key in enumerate(laid) if key in held]
        write_hits(storage, f"s/hits-{partition}", hits)
        assert read_hits(storage, f"s/hits-{partition}")[0].tolist() == hits
        path = f"s/hits-{partition}"
        tasks = [StagedTask(part, path, (path,))]
        tasks += [StagedTask(part, "", (path,), low, high) for low, high in itertools.pairwise(bounds)]
        taken = [rows_of(storage, task).column("_hoodie_record_key").to_pylist() for task in tasks]
        assert taken[0] == [key for key in laid if key in held]
        assert Counter(key for found in taken[1:] for key in found) == Counter(key for key in laid if key not in held)
        for key in set(laid) - held:  # all rows of a key go one way: its duplicates are combined there
            assert sum(key in found for found in taken[1:]) == 1


def test_rows_take_the_positions_of_their_hits_along():
    storage = MemoryStorage()
    pieces = stage_rows(storage, "s/a.arrow", iter([batch(list("abc"), ["p"] * 3)]), ())
    pieces += stage_rows(storage, "s/b.arrow", iter([batch(list("def"), ["p"] * 3)]), ())
    write_hits(storage, "s/hits", [1, 3, 4], np.array([70, SEVERAL, 5]))
    assert [part.tolist() for part in read_hits(storage, "s/hits")] == [[1, 3, 4], [70, SEVERAL, 5]]
    task = StagedTask(tuple(pieces), "s/hits", ("s/hits",), 0.0, 1.0)
    rows = rows_of(storage, task)
    found = dict(zip(*(rows.column(name).to_pylist() for name in (RECORD_KEY, ROW_POSITION)), strict=True))
    assert found == {"a": -1, "b": 70, "c": -1, "d": SEVERAL, "e": 5, "f": -1}
    assert ROW_POSITION not in rows_of(storage, StagedTask(tuple(pieces), "", ("s/hits",), 0.0, 1.0)).column_names


def test_a_stage_is_removed_once_nobody_has_touched_it_for_a_day():
    storage = MemoryStorage(clock=lambda: 1)
    storage.write(f"{new_stage()}/a.arrow", b"x")
    remove_stale(storage, 1000)
    assert storage.list_tree(STAGING)
    remove_stale(storage, 25 * 3600 * 1000)
    assert not storage.list_tree(STAGING)


def test_a_stage_stays_on_a_storage_that_keeps_no_times():
    storage = MemoryStorage(clock=lambda: 0)
    storage.write(f"{new_stage()}/a.arrow", b"x")
    remove_stale(storage, 25 * 3600 * 1000)
    assert storage.list_tree(STAGING)


def piece(partition, size):
    return Piece(partition, "f", 0, 1, size)


def test_tasks_read_staged_rows_themselves_while_that_stays_few_bytes():
    assert reads_stay_few([piece("p", 1000)], {"p": 50})
    assert reads_stay_few([piece("p", FEW_BYTES // 4), piece("q", FEW_BYTES // 4)], {"p": 4, "q": 4})
    assert not reads_stay_few([piece("p", FEW_BYTES // 4)], {"p": 5})
    assert not reads_stay_few([piece("p", LARGEST_PARTITION + 1)], {"p": 1})


@pytest.mark.parametrize(("sizes", "enough", "count"), [([1] * 3, 1, 3), ([100] * 8, 800, 4), ([10] * 100, 100, 10)])
def test_work_is_packed_into_as_few_tasks_as_have_enough(sizes, enough, count):
    packs = bin_pack(sizes, lambda size: size, enough)
    assert len(packs) == count
    assert sorted(size for found in packs for size in found) == sorted(sizes)
    assert max(map(sum, packs)) - min(map(sum, packs)) <= max(sizes)
