"""Where the bits of each file are, for the expression by which Spark looks them up."""

import random

import numpy as np
import pytest

from hoodie.spark.read.positioned_slices import _by_number, _Places, _places_of, _stays


@pytest.mark.parametrize("count", [1, 2, 12, 40, 41, 700, 3000])
def test_each_file_is_found_by_its_number(count: int) -> None:
    numbers = random.Random(count).sample(range(2**33), count)
    places = _places_of({number: np.array([number - 5, -1]) for number in numbers})
    for number in numbers:
        assert _at(places, number) == [number - 5, -1]
    assert len(places.values) < max(40**2, 6 * count) + 10


@pytest.mark.parametrize("count", [1, 12, 700])
def test_most_other_files_are_found_to_be_unknown(count: int) -> None:
    sizes = random.Random(count).sample(range(2**33), count + 1000)
    places = _places_of({number: np.array([1]) for number in sizes[:count]})
    unknown = [_at(places, other) is None for other in sizes[count:]]
    assert sum(unknown) > 650


def test_numbers_that_differ_in_high_bits_only_are_told_apart() -> None:
    numbers = [7, 7 + 2**20, 7 + 2**21, 7 + 2**40, 7 + 3 * 2**40]
    places = _places_of({number: np.array([number]) for number in numbers})
    assert [_at(places, number) for number in numbers] == [[number] for number in numbers]


def test_files_of_one_size_are_told_by_it_where_they_have_the_same_bits() -> None:
    none, some = np.empty(0, np.int64), np.array([1])

    def size(name: str, size: int) -> int:
        return size

    assert _by_number({("a", 5): none, ("b", 5): none, ("c", 6): some}, size) == {5: none, 6: some}
    assert _by_number({("a", 5): none, ("b", 5): some}, size) is None


@pytest.mark.parametrize(("count", "times"), [(40, 1), (41, 2)])
def test_spark_plans_the_bits_as_few_times_as_can_be(count: int, times: int) -> None:
    places = _places_of({number: np.array([1]) for number in range(count)})
    assert _stays("_metadata.file_size", places).count("hoodie.gone") == times


def _at(places: _Places, number: int) -> list[int] | None:
    """As `_stays` has it."""
    key, first = places.key, 0
    if key is None:
        keys = places.values[0]
        key, first = keys[number % len(keys)], 1
    return places.values[first + (number ^ key) % places.count]
