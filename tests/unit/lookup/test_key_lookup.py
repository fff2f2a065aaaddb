"""Keys are found where they are, whatever the order they are asked in."""

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.config.write import BloomOptions
from hoodie.formats.parquet.base_footer import BLOOM, BLOOM_TYPE, footer_metadata
from hoodie.formats.parquet.bloom import BloomKind, add_keys, empty_filter
from hoodie.formats.parquet.hashed_keys import HashedKeys
from hoodie.formats.parquet.murmur import Indices
from hoodie.index.pruning import ABSENT, SEVERAL, IndexStats, lookup_rows
from hoodie.lookup.batch import KeyLocations
from hoodie.lookup.key_lookup import find_in_file, find_keys, positions_in_base
from hoodie.model.files import BaseFile, FileGroupId
from hoodie.model.meta import RECORD_KEY
from hoodie.storage.protocol import Storage
from hoodie.testing.storage import MemoryStorage

ID = "5d5a3d5e-6f3c-4b9a-9f58-5f2a7f6c1d2e-0"
OF = HashedKeys.of
NAME = f"{ID}_0-0-0_20260101000000000.parquet"


@pytest.fixture
def storage() -> Storage:
    """One base file of keys b and d, with a key range and no bloom filter: every key in range is looked up."""
    sink = pa.BufferOutputStream()
    footer = {"hoodie_min_record_key": "b", "hoodie_max_record_key": "d"}
    pq.write_table(pa.table({RECORD_KEY: ["b", "d"]}).replace_schema_metadata(footer), sink)
    storage = MemoryStorage()
    storage.create_new(NAME, sink.getvalue().to_pybytes())
    return storage


@pytest.mark.parametrize("pruned", [False, True])
@pytest.mark.parametrize("asked", list(permutations("bcd")), ids="".join)
def test_each_key_is_found_at_its_own_place(storage: Storage, pruned: bool, asked: tuple[str, ...]) -> None:
    file = BaseFile(FileGroupId("", ID), "20260101000000000", "0-0-0", 1, NAME)
    keys = pa.array(asked)
    expected = [place for place, key in enumerate(asked) if key in "bd"]
    with ThreadPoolExecutor(1) as pool:
        [call] = find_keys(storage, [file], keys, pruned, BloomOptions(), pool)
        assert call.result()[0].tolist() == expected
    assert find_in_file(storage, file, keys, pruned, BloomOptions())[0].tolist() == expected


@pytest.mark.parametrize(
    ("asked", "opened"),
    [
        (["a", "e"], False),  # on both sides of the range
        (["a"] * 500 + ["c"], True),
        (["e", "ee"], False),
        (["d"], True),
        (["e", "\ue000"], True),  # Java's order is another one
    ],
)
def test_keys_of_a_file_whose_range_holds_none_are_not_read_without_filters_either(
    storage: Storage, asked: list[str], opened: bool
) -> None:
    file = BaseFile(FileGroupId("", ID), "20260101000000000", "0-0-0", 1, NAME)
    hits, positions, cost = find_in_file(storage, file, pa.array(asked), False, BloomOptions())
    assert (cost.files_read, cost.files_pruned_by_range) == ((1, 0) if opened else (0, 1))
    assert cost.candidates == cost.pruned_by_range + cost.checked == len(asked)
    assert (hits.tolist(), positions.tolist()) == (([0], [1]) if asked == ["d"] else ([], []))


class FarStorage(MemoryStorage):
    """As if each call went over a network."""

    remote = True


def with_filter(stored: list[str], also: dict[str, str], storage: Storage) -> Storage:
    """One base file of these keys, with their range and bloom filter, and further entries of the footer."""
    keys, sink = pa.array(stored), pa.BufferOutputStream()
    footer = footer_metadata(min(stored), max(stored), add_keys(empty_filter(BloomKind.SIMPLE, 1000, 1e-9), keys, 0))
    pq.write_table(pa.table({RECORD_KEY: keys}).replace_schema_metadata({**footer, **also}), sink)
    storage.create_new(NAME, sink.getvalue().to_pybytes())
    return storage


@pytest.mark.parametrize("also", [{}, {BLOOM: "rubbish"}, {BLOOM_TYPE: "OF_LATER_TIMES"}], ids=str)
@pytest.mark.parametrize(
    ("asked", "read"),
    [
        (["k1x", "k2x"], False),
        (["k1x", "k200", "k2x"], True),
        ([f"k{number}x" for number in range(100)], True),  # to test so many takes longer than to read the file's keys
    ],
)
def test_keys_of_a_file_whose_filter_rules_a_few_out_are_not_read_by_simple_either(
    asked: list[str], read: bool, also: dict[str, str]
) -> None:
    storage = with_filter([f"k{number:03}" for number in range(500)], also, FarStorage())
    file = BaseFile(FileGroupId("", ID), "20260101000000000", "0-0-0", 1, NAME)
    hits, positions, cost = find_in_file(storage, file, pa.array(asked), False, BloomOptions())
    assert (cost.files_read, cost.files_pruned_by_filter) == ((1, 0) if read or also else (0, 1))
    assert cost.candidates == cost.pruned_by_range + cost.pruned_by_filter + cost.checked == len(asked)
    assert (hits.tolist(), positions.tolist()) == (([1], [200]) if "k200" in asked else ([], []))


@pytest.mark.parametrize("length", [4, 400])
@pytest.mark.parametrize("kind", [MemoryStorage, FarStorage])
def test_a_filter_is_asked_first_where_reading_the_keys_takes_longer(kind: type[MemoryStorage], length: int) -> None:
    storage = with_filter([f"k{number:03}".ljust(length, "x") for number in range(1000)], {}, kind())
    file = BaseFile(FileGroupId("", ID), "20260101000000000", "0-0-0", 1, NAME)
    cost = find_in_file(storage, file, pa.array(["k1", "k2"]), False, BloomOptions())[2]
    assert cost.files_read == (kind is MemoryStorage and length == 4)


@pytest.mark.parametrize(("few", "tested"), [(10_000, True), (2, False)])
def test_a_filter_is_not_asked_about_more_keys_than_its_file_has(
    monkeypatch: pytest.MonkeyPatch, few: int, tested: bool
) -> None:
    monkeypatch.setattr("hoodie.lookup.key_lookup._FEW_KEYS", few)
    storage = with_filter(["a", "b", "d"], {}, MemoryStorage())
    file = BaseFile(FileGroupId("", ID), "20260101000000000", "0-0-0", 1, NAME)
    hits, _, cost = find_in_file(storage, file, pa.array(["a", "c", "b", "cc"]), True, BloomOptions())
    assert hits.tolist() == [0, 2]
    assert (cost.pruned_by_filter, cost.checked, cost.false_positives) == ((2, 2, 0) if tested else (0, 4, 2))


@pytest.mark.parametrize("many", [0, 100])
@pytest.mark.parametrize("row_group", [1, 2, 3, 10])
@pytest.mark.parametrize("asked", ["a", "dcba", "xax", "adxdbab", "abcdefghij", "e"])
def test_the_positions_of_keys_are_those_of_their_only_rows(
    asked: str, row_group: int, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hoodie.lookup.key_lookup.MANY_KEYS", many)
    storage = MemoryStorage()
    sink = pa.BufferOutputStream()
    stored = list("cabedbf")  # b twice
    pq.write_table(pa.table({RECORD_KEY: stored}), sink, row_group_size=row_group)
    storage.create_new(NAME, sink.getvalue().to_pybytes())
    expected = [
        ABSENT if stored.count(key) == 0 else SEVERAL if stored.count(key) > 1 else stored.index(key) for key in asked
    ]
    assert positions_in_base(storage, NAME, pa.array(list(asked))).tolist() == expected
    file = BaseFile(FileGroupId("", ID), "20260101000000000", "0-0-0", 1, NAME)
    hits, positions, _ = find_in_file(storage, file, pa.array(list(asked)), False, BloomOptions())
    assert dict(zip(hits.tolist(), positions.tolist(), strict=True)) == {
        number: place for number, place in enumerate(expected) if place != ABSENT
    }


def test_of_many_keys_only_those_near_a_row_group_are_compared_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoodie.lookup.key_lookup.MANY_KEYS", 10)
    looks: list[int] = []

    def look(stored: pa.ChunkedArray, keys: pa.Array) -> tuple[Indices, Indices]:
        looks.append(len(keys))
        return lookup_rows(stored, keys)

    monkeypatch.setattr("hoodie.lookup.key_lookup.lookup_rows", look)
    storage, sink = MemoryStorage(), pa.BufferOutputStream()
    pq.write_table(pa.table({RECORD_KEY: [f"k{number}" for number in range(40)]}), sink, row_group_size=10)
    storage.create_new(NAME, sink.getvalue().to_pybytes())
    positions = positions_in_base(storage, NAME, pa.array([f"k{number}" for number in range(60)]))
    assert positions.tolist() == [*range(40), *[ABSENT] * 20]
    assert looks == [10] * 4


@pytest.mark.parametrize("pruned", [False, True])
def test_many_keys_are_hashed_once_for_all_files(pruned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoodie.lookup.key_lookup.MANY_KEYS", 10)
    hash_calls: list[int] = []
    monkeypatch.setattr(HashedKeys, "of", classmethod(lambda cls, keys: hash_calls.append(len(keys)) or OF(keys)))
    storage, files = MemoryStorage(), []
    for number, stored in enumerate((range(0, 40, 2), range(1, 40, 3), range(5))):
        file_id = f"{ID[:-1]}{number}"
        name = f"{file_id}_0-0-0_20260101000000000.parquet"
        sink = pa.BufferOutputStream()
        footer = {"hoodie_min_record_key": "k00", "hoodie_max_record_key": f"k{max(stored):02}"}
        column = pa.table({RECORD_KEY: [f"k{key:02}" for key in stored]})
        pq.write_table(column.replace_schema_metadata(footer), sink, row_group_size=7)
        storage.create_new(name, sink.getvalue().to_pybytes())
        files.append(BaseFile(FileGroupId("", file_id), "20260101000000000", "0-0-0", 1, name))
    keys = pa.array([f"k{key:02}" for key in range(60)])
    with ThreadPoolExecutor(1) as pool:
        calls = find_keys(storage, files, keys, pruned, BloomOptions(), pool)
        hits = [call.result()[:2] for call in calls]
    assert [indices.tolist() for indices, _ in hits] == [[*range(0, 40, 2)], [*range(1, 40, 3)], [*range(5)]]
    assert [positions.tolist() for _, positions in hits] == [[*range(len(indices))] for indices, _ in hits]
    assert hash_calls == [60]


def test_a_row_whose_key_two_file_groups_hold_may_have_several_positions() -> None:
    groups = (FileGroupId("", "a"), FileGroupId("", "b"))
    rows, stored = np.array([0, 2, 2]), np.array([5, 6, 7])
    located = KeyLocations(rows, np.array([0, 0, 1]), groups, IndexStats(), stored)
    assert located.stored_positions(4).tolist() == [5, -1, SEVERAL, -1]
    assert KeyLocations(rows, np.array([0, 0, 1]), groups, IndexStats()).stored_positions(1 + 2).tolist() == [-1] * 3
