"""Keys are found where they are, whatever the order they are asked in."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.config.write import BloomOptions
from hoodie.formats.parquet.base_footer import footer_metadata
from hoodie.formats.parquet.bloom import BloomKind, add_keys, empty_filter
from hoodie.lookup.key_lookup import find_in_file, find_keys
from hoodie.model.files import BaseFile, FileGroupId
from hoodie.model.meta import RECORD_KEY
from hoodie.storage.protocol import Storage
from hoodie.testing.storage import MemoryStorage

ID = "5d5a3d5e-6f3c-4b9a-9f58-5f2a7f6c1d2e-0"
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


@pytest.mark.parametrize(("few", "tested"), [(10_000, True), (2, False)])
def test_a_filter_is_not_asked_about_more_keys_than_its_file_has(
    monkeypatch: pytest.MonkeyPatch, few: int, tested: bool
) -> None:
    monkeypatch.setattr("hoodie.lookup.key_lookup._FEW_KEYS", few)
    storage = MemoryStorage()
    sink = pa.BufferOutputStream()
    stored = pa.array(["a", "b", "d"])
    footer = footer_metadata("a", "d", add_keys(empty_filter(BloomKind.SIMPLE, 100, 1e-9), stored, 0))
    pq.write_table(pa.table({RECORD_KEY: stored}).replace_schema_metadata(footer), sink)
    storage.create_new(NAME, sink.getvalue().to_pybytes())
    file = BaseFile(FileGroupId("", ID), "20260101000000000", "0-0-0", 1, NAME)
    hits, cost = find_in_file(storage, file, pa.array(["a", "c", "b", "cc"]), True, BloomOptions())
    assert hits.tolist() == [0, 2]
    assert (cost.pruned_by_filter, cost.checked, cost.false_positives) == ((2, 2, 0) if tested else (0, 4, 2))
