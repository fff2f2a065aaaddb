"""A key's bucket, as Hudi's own classes deal keys out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.config.table import from_properties
from hoodie.formats.java.strings import list_hashes, string_hashes
from hoodie.index.bucket import HashFields, bucket_of, buckets_of, file_id_of, hash_fields

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "bucket_index.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", VECTORS["record_keys"], ids=lambda case: case["record_key"])
def test_a_record_key_goes_to_the_bucket_that_hudi_gives_it(case: dict[str, object]) -> None:
    keys = pa.array(["before", case["record_key"], "a:1"])
    fields = HashFields(tuple(case["hash_fields"]))  # type: ignore[arg-type]
    assert buckets_of(keys, fields, 256)[1] == case["mod256"]


@pytest.mark.parametrize(
    "case", VECTORS["keys_with_commas"], ids=lambda case: f"{case['record_key']} {case['hash_fields']}"
)
def test_a_record_key_with_commas_goes_to_the_bucket_that_each_hudi_gives_it(case: dict[str, Any]) -> None:
    keys, names = pa.array(["before", case["record_key"], "a:1,x"]), tuple(case["hash_fields"].split(","))
    assert buckets_of(keys, HashFields(names, hold_commas=True), 1 << 30)[1] == case["hash"]
    assert buckets_of(keys, HashFields(names), 1 << 30)[1] == case["hash_0_15"]


@pytest.mark.parametrize(("version", "holds"), [(6, False), (8, True), (9, True)])
def test_the_version_of_a_table_says_whether_values_of_keys_hold_commas(version: int, holds: bool) -> None:
    settings = {"hoodie.table.recordkey.fields": "a,b", "hoodie.table.version": str(version)}
    layout = {"hoodie.timeline.layout.version": "1" if version == 6 else "2"}
    config = from_properties({"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE", **settings, **layout})
    assert hash_fields({}, config) == HashFields(("a", "b"), holds)


def test_a_key_without_a_hashed_field_is_hashed_whole_whatever_stands_in_it() -> None:
    key = "a:__null__,b:1"
    hashed = list_hashes(string_hashes(pa.array([key])), np.array([0, 1]))
    fields = HashFields(("id",), hold_commas=True)
    assert buckets_of(pa.array([key]), fields, 1 << 30)[0] == (int(hashed[0]) & 0x7FFFFFFF) % (1 << 30)


@pytest.mark.parametrize("case", VECTORS["list_hashes"], ids=lambda case: str(case["parts"]))
def test_a_list_of_strings_hashes_as_in_java(case: dict[str, object]) -> None:
    parts = [part or "" for part in case["parts"]]  # type: ignore[attr-defined]
    hashes = string_hashes(pa.array(parts, pa.string()))
    assert list_hashes(hashes, np.array([0, len(parts)])).tolist() == [case["list_hash"]]


@pytest.mark.parametrize("case", VECTORS["rli_group"], ids=lambda case: case["key"])
def test_a_string_hashes_as_in_java(case: dict[str, object]) -> None:
    assert string_hashes(pa.array([case["key"]])).tolist() == [case["java_string_hash"]]


@given(st.lists(st.text(max_size=8), max_size=6), st.integers(0, 2))
def test_a_column_hashes_as_its_strings_one_by_one(texts: list[str], skipped: int) -> None:
    column = pa.array(["é", "x", *texts], pa.string()).slice(skipped)
    expected = []
    for text in column.to_pylist():
        units, value = text.encode("utf-16-le"), 0
        for at in range(0, len(units), 2):
            value = (31 * value + int.from_bytes(units[at : at + 2], "little")) % 2**32
        expected.append(value - 2**32 if value >= 2**31 else value)
    assert string_hashes(column).tolist() == expected


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("a:1,b:2", ["1", "2"]),
        ("a:1,b:", ["1", ""]),
        ("a:1,,", ["1"]),  # Java's split drops what is empty at the end,
        ("a:1,,b:2", ["1", "", "2"]),  # and keeps it elsewhere
        ("c:3,a:x:y", ["x:y"]),
        (":", []),
        ("a:__empty__,b:__null__", ["", ""]),
        ("__null__,a:1", ["__null__", "1"]),  # stands for null as the value of a field only
    ],
)
def test_a_compound_key_is_taken_apart_as_in_java(key: str, parts: list[str]) -> None:
    hashes = string_hashes(pa.array(parts, pa.string()))
    (hashed,) = list_hashes(hashes, np.array([0, len(parts)]))
    assert buckets_of(pa.array([key, "z"]), HashFields(("a", "b")), 1009)[0] == (int(hashed) & 0x7FFFFFFF) % 1009


@pytest.mark.parametrize("case", VECTORS["file_id_prefix"], ids=lambda case: str(case["bucket"]))
def test_a_file_id_begins_with_its_bucket(case: dict[str, object]) -> None:
    made = file_id_of(case["bucket"], "seed")  # type: ignore[arg-type]
    assert made[:9] == f"{case['first8']}-"
    assert made.endswith("-0")
    assert bucket_of(made) == case["bucket"]
    assert made == file_id_of(case["bucket"], "seed") != file_id_of(case["bucket"], "other")  # type: ignore[arg-type]
    assert bucket_of("5d5a3d5e-6f3c-4b9a-9f58-5f2a7f6c1d2e-0") is None
