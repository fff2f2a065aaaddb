"""The order of record keys is Java's, and range pruning never rules out a file that holds the key."""

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from hoodie.formats.java.strings import from_java_order, java_order
from hoodie.formats.parquet.base_footer import java_min_max
from hoodie.index.pruning import lookup_keys, prune_by_range

# Few characters from each region in which the two orders place characters differently, so that keys meet.
CHARS = st.sampled_from("az\u0080\u07ff\ud7ff\ue000\ufffd\uffff\U00010000\U0001f600\U0010ffff") | st.characters(
    exclude_categories=["Cs"]
)
KEY = st.text(CHARS, min_size=1, max_size=4)
KEYS = st.lists(KEY, max_size=20)


def utf16(key: str) -> bytes:
    return key.encode("utf-16-be")


@given(KEYS)
def test_keys_sort_by_their_utf16_units(keys: list[str]) -> None:
    ordered = java_order(pa.array(keys, pa.string()))
    assert [keys[i] for i in pc.sort_indices(ordered).to_pylist()] == sorted(keys, key=utf16)
    assert [from_java_order(value) for value in ordered.to_pylist()] == keys


@given(st.lists(KEY, min_size=1, max_size=20))
def test_bounds_are_the_first_and_last_by_utf16_units(keys: list[str]) -> None:
    assert java_min_max(pa.array(keys)) == (min(keys, key=utf16), max(keys, key=utf16))


@given(st.lists(st.tuples(st.lists(KEY, max_size=5), st.booleans(), st.booleans()), max_size=8), KEYS)
def test_a_file_that_holds_a_key_is_a_candidate_for_it(
    files: list[tuple[list[str], bool, bool]], keys: list[str]
) -> None:
    mins: list[str | None] = []
    maxs: list[str | None] = []
    for held, known, java in files:
        # Hudi's two writers take the bounds in two orders.
        ordered = sorted(held, key=utf16 if java else str.encode)
        mins.append(ordered[0] if ordered and known else None)
        maxs.append(ordered[-1] if ordered and known else None)
    wanted = keys + [key for held, _, _ in files for key in held]
    found = {file: set(indices.tolist()) for file, indices in prune_by_range(mins, maxs, pa.array(wanted, pa.string()))}
    for file, (held, _, _) in enumerate(files):
        low, high = mins[file], maxs[file]
        got = found.get(file, set())
        for index, key in enumerate(wanted):
            within = (
                low is None
                or high is None
                or utf16(low) <= utf16(key) <= utf16(high)
                or low.encode() <= key.encode() <= high.encode()
            )
            assert (index in got) == within
            assert key not in held or index in got


@given(st.lists(st.none() | KEY, max_size=20), KEYS)
def test_a_look_up_finds_exactly_the_keys_of_the_file(file_keys: list[str | None], wanted: list[str]) -> None:
    found = lookup_keys(pa.chunked_array([pa.array(file_keys, pa.string())]), pa.array(wanted, pa.string()))
    assert found.tolist() == [key in file_keys for key in wanted]
