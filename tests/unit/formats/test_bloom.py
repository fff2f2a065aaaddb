"""Bloom filters, pinned by the output of Hudi's classes and by filters of real files."""

import base64
import hashlib
import json
import pickle
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import CorruptFile, InvalidInput, InvalidOption
from hoodie.formats.parquet.bloom import (
    BloomFilter,
    BloomKind,
    add_keys,
    decode,
    empty_filter,
    encode,
    might_contain,
    size_for,
    survivors,
)
from hoodie.formats.parquet.murmur import BLOCK, KeyHashes
from support.bloom_bits import positions

VECTORS = Path(__file__).parents[2] / "vectors"
HASHES = json.loads((VECTORS / "bloom_hash.json").read_text())["vectors"]
FILTERS = json.loads((VECTORS / "bloom_filters.json").read_text())
SMALL_REAL = [real for real in FILTERS["from_real_files"] if "base64" in real]
LARGE_REAL = [real for real in FILTERS["from_real_files"] if "base64_sha256" in real]


def built(vector: dict[str, Any]) -> BloomFilter:
    empty = empty_filter(BloomKind(vector["type"]), vector["num_entries"], vector["fpp"])
    return add_keys(empty, pa.array(vector["keys"]), vector.get("max_entries", 0))


@pytest.mark.parametrize(("m", "k"), [(2587966, 30), (144, 10)])
def test_positions_are_those_of_hudi_for_keys_of_all_lengths_at_once(m: int, k: int) -> None:
    found = positions(pa.array([vector["key"] for vector in HASHES]), m, k)
    for column, vector in enumerate(HASHES):
        assert found[:, column].tolist() == vector[f"positions_m{m}_k{k}"], vector["key"]


@pytest.mark.parametrize("vector", HASHES, ids=lambda vector: ascii(vector["key"]))
def test_positions_of_one_key_alone_are_the_same(vector: dict[str, Any]) -> None:
    assert positions(pa.array([vector["key"]]), 144, 10)[:, 0].tolist() == vector["positions_m144_k10"]


def test_positions_of_a_slice_and_of_chunks_and_other_text_types_are_the_same() -> None:
    keys = pa.array([vector["key"] for vector in HASHES])
    whole = positions(keys, 144, 10)
    assert np.array_equal(positions(keys[3:8], 144, 10), whole[:, 3:8])
    assert np.array_equal(positions(pa.chunked_array([keys[:5], keys[:0], keys[5:]]), 144, 10), whole)
    for same in (keys.cast(pa.large_string()), keys.dictionary_encode(), keys.cast(pa.string_view())):
        assert np.array_equal(positions(same, 144, 10), whole)


def test_hashing_leaves_the_keys_as_they_were() -> None:
    for texts in (["abcd"], ["abcdefgh"], ["abcd", "efgh"], ["abcdefgh", "ijklmnop"], ["abcd", "efghi"]):
        keys = pa.array(texts)
        positions(keys, 144, 10)
        assert keys.to_pylist() == texts


@pytest.mark.parametrize("vector", FILTERS["sizes"], ids=lambda vector: f"{vector['num_entries']}-{vector['fpp']}")
def test_sizes_are_those_of_hudi(vector: dict[str, Any]) -> None:
    assert size_for(vector["num_entries"], vector["fpp"]) == (vector["m"], vector["k"])


@pytest.mark.parametrize(("entries", "fpp"), [(0, 0.1), (-1, 0.1), (1, 0.0), (1, 1.0), (1, float("nan"))])
def test_a_size_out_of_range_is_refused(entries: int, fpp: float) -> None:
    with pytest.raises(InvalidOption):
        size_for(entries, fpp)


@pytest.mark.parametrize("vector", FILTERS["built_with_java"], ids=lambda v: f"{v['type']}-{len(v['keys'])}")
def test_a_filter_built_by_java_is_built_to_the_same_bytes(vector: dict[str, Any]) -> None:
    filter = built(vector)
    assert encode(filter) == vector["base64"]
    assert len(filter.rows) == vector.get("rows", 1)
    assert filter.count == vector.get("current_nb_record", 0)
    assert decode(vector["base64"], vector["type"], "p") == filter
    assert might_contain(filter, pa.array(vector["keys"])).all()


@pytest.mark.parametrize("real", SMALL_REAL, ids=lambda real: real["min_key"])
def test_a_filter_of_a_real_file_decodes_and_is_built_again_to_the_same_text(real: dict[str, Any]) -> None:
    filter = decode(real["base64"], real["footer_type_code"], "p")
    assert (filter.bits, filter.hashes, filter.entries) == (real["m"], real["k"], real["nr"])
    assert (filter.count, len(filter.rows)) == (real["current_nb_record"], real["rows"])
    assert encode(filter) == real["base64"]
    empty = empty_filter(BloomKind.DYNAMIC_V0, 20, 1e-9)
    assert encode(add_keys(empty, pa.array(real["record_keys"]), 100000)) == real["base64"]


@pytest.mark.parametrize("real", LARGE_REAL, ids=lambda real: real["file"])
def test_a_filter_of_default_size_is_built_to_the_text_of_a_real_file(real: dict[str, Any]) -> None:
    filter = add_keys(empty_filter(BloomKind.DYNAMIC_V0, 60000, 1e-9), pa.array(real["record_keys"]), 100000)
    set_bits = np.flatnonzero(np.unpackbits(filter.rows[0], bitorder="little"))
    assert set_bits.tolist() == real["set_bits_row0"]
    text = encode(filter)
    assert len(text) == real["base64_length"]
    assert hashlib.sha256(text.encode()).hexdigest() == real["base64_sha256"]


@pytest.mark.parametrize("entries", [10, 60000])
def test_a_key_added_later_changes_a_copy(entries: int) -> None:
    before = add_keys(empty_filter(BloomKind.SIMPLE, entries, 1e-9), pa.array(["a", "b"]), 0)
    text = encode(before)
    after = add_keys(before, pa.array(["one more"]), 0)
    assert encode(before) == text
    assert after != before
    assert might_contain(after, pa.array(["one more"])).all()


@pytest.mark.parametrize(
    ("max_entries", "rows"), [(0, 1), (60000, 1), (60001, 2), (100000, 2), (120000, 2), (120001, 3)]
)
def test_rows_are_appended_while_they_hold_fewer_than_the_bound(max_entries: int, rows: int) -> None:
    scale = 10000  # entries of 6, so that few keys fill it
    keys = pa.array([f"key-{number}" for number in range(50)])
    filter = add_keys(empty_filter(BloomKind.DYNAMIC_V0, 60000 // scale, 1e-9), keys, -(-max_entries // scale))
    assert len(filter.rows) == rows


@pytest.mark.parametrize("count", [1, 40, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_few_and_many_keys_are_all_found(count: int) -> None:
    keys = pa.array([f"key-{number}" for number in range(count)])
    filter = add_keys(empty_filter(BloomKind.DYNAMIC_V0, 5000, 1e-9), keys, 20000)
    assert might_contain(filter, keys).all()
    others = pa.array([f"other-{number}" for number in range(1000)])
    if count <= 5000:
        assert not might_contain(filter, others).any()


def test_few_keys_set_bit_by_bit_and_many_set_at_once_give_the_same_filter() -> None:
    keys = pa.array([f"key-{number}" for number in range(3000)])
    empty = empty_filter(BloomKind.DYNAMIC_V0, 60000, 1e-9)  # 3000 keys: the whole row is opened; 100: bits are set
    grown = empty
    for start in range(0, len(keys), 100):
        grown = add_keys(grown, keys[start : start + 100], 100000)
    assert encode(grown) == encode(add_keys(empty, keys, 100000))


def test_candidates_keep_their_order_and_may_repeat() -> None:
    inside = pa.array([f"in-{'x' * (number % 7)}{number}" for number in range(50)])
    filter = add_keys(empty_filter(BloomKind.SIMPLE, 100, 1e-9), inside, 0)
    keys = pa.concat_arrays([inside, pa.array([f"out-{number}" for number in range(50)])])
    candidates = np.array([99, 7, 3, 60, 3, 49, 0, 50])
    assert survivors(filter, KeyHashes.of(keys), candidates).tolist() == [7, 3, 3, 49, 0]


def test_filters_with_fewer_hashes_than_are_shared_answer_too() -> None:
    filter = add_keys(empty_filter(BloomKind.SIMPLE, 1, 0.3), pa.array(["a"]), 0)
    assert filter.hashes < 4
    assert might_contain(filter, pa.array(["a"])).tolist() == [True]


def test_no_keys_are_no_trouble() -> None:
    empty = empty_filter(BloomKind.DYNAMIC_V0, 10, 0.01)
    none = pa.array([], pa.string())
    assert add_keys(empty, none, 100) == empty
    assert add_keys(empty, pa.chunked_array([], pa.string()), 100) == empty
    assert might_contain(empty, none).tolist() == []
    assert might_contain(empty, pa.array(["a"])).tolist() == [False]


@pytest.mark.parametrize("keys", [pa.array(["a", None]), pa.array(["a", ""]), pa.array([b"\xff"])])
def test_a_key_that_is_null_or_empty_or_no_text_is_refused(keys: pa.Array) -> None:
    empty = empty_filter(BloomKind.SIMPLE, 10, 0.01)
    with pytest.raises(InvalidInput):
        add_keys(empty, keys, 0)
    with pytest.raises(InvalidInput):
        might_contain(empty, keys)


def test_a_count_at_the_end_of_its_range_stays_there() -> None:
    full = replace(empty_filter(BloomKind.DYNAMIC_V0, 5, 0.01), count=2**31 - 1)
    filter = add_keys(full, pa.array(["a"]), 5)
    assert decode(encode(filter), "DYNAMIC_V0", "p").count == 2**31 - 1


def test_a_filter_pickles_and_compares_by_value() -> None:
    filter = built(FILTERS["built_with_java"][1])
    again = pickle.loads(pickle.dumps(filter))
    assert again == filter
    assert hash(again) == hash(filter)
    assert filter != built(FILTERS["built_with_java"][2])


def b64(*parts: bytes) -> str:
    return base64.b64encode(b"".join(parts)).decode()


HEAD = struct.pack(">iiBi", -1, 2, 1, 8)


@pytest.mark.parametrize(
    ("text", "code", "problem"),
    [
        (b64(HEAD, b"\0"), "CUCKOO", "unknown type"),
        ("", "SIMPLE", "ends after 0 bytes"),
        ("A", "SIMPLE", "not base64"),
        ("AAA!", "SIMPLE", "not base64"),
        ("éééé", "SIMPLE", "not base64"),
        (b64(HEAD), "SIMPLE", "head says 14"),
        (b64(HEAD, b"\0\0"), "", "head says 14"),
        (b64(struct.pack(">iiBi", 30, 2, 1, 8), b"\0"), "", "version 30"),
        (b64(struct.pack(">iiBi", -1, 2, 0, 8), b"\0"), "", "hash type 0"),
        (b64(struct.pack(">iiBi", -1, 2**31 - 1, 1, 8), b"\0"), "", "hashes per key"),
        (b64(struct.pack(">iiBi", -1, 0, 1, 8), b"\0"), "", "hashes per key"),
        (b64(struct.pack(">iiBi", -1, 2, 1, 0)), "", "0 bits"),
        (b64(struct.pack(">iiBi", -1, 2, 1, -8)), "", "-8 bits"),
        (b64(HEAD), "DYNAMIC_V0", "ends after 13"),
        (b64(HEAD, struct.pack(">iii", 5, 0, 0)), "DYNAMIC_V0", "0 rows"),
        (b64(HEAD, struct.pack(">iii", 0, 0, 1), HEAD, b"\0"), "DYNAMIC_V0", "rows of 0"),
        (b64(HEAD, struct.pack(">iii", 5, 0, 2**31 - 1), HEAD, b"\0"), "DYNAMIC_V0", "its head says"),
        (b64(HEAD, struct.pack(">iii", 5, 0, 1), struct.pack(">iiBi", -1, 3, 1, 8), b"\0"), "DYNAMIC_V0", "unlike"),
    ],
)
def test_text_that_is_no_filter_is_corrupt_and_names_the_file(text: str, code: str, problem: str) -> None:
    with pytest.raises(CorruptFile, match=problem) as raised:
        decode(text, code, "city=x/f.parquet")
    assert raised.value.path == "city=x/f.parquet"
