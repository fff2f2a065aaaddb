"""Where the bits of each file are, for the expression by which Spark looks them up."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hoodie.spark.read.positioned_slices import _placed


@pytest.mark.parametrize("count", [1, 2, 12, 700])
def test_each_file_is_found_by_its_number_and_no_other(count: int) -> None:
    sizes = random.Random(count).sample(range(2**20), count + 100)
    numbers, others = sizes[:count], sizes[count:]
    placed = _placed({number: np.array([number - 5, -1]) for number in numbers})
    for number in numbers:
        assert _at(placed, number, count) == [number, number - 5, -1]
    for other in others:
        assert (_at(placed, other, count) or [None])[0] != other
    assert len(placed) < 4 * count + 10


def test_numbers_of_one_remainder_are_told_apart() -> None:
    numbers = [7, 7 + 3 * 64, 7 + 3 * 128]
    placed = _placed({number: np.array([number]) for number in numbers})
    assert [_at(placed, number, 3) for number in numbers] == [[number, number] for number in numbers]
    assert _at(placed, 8, 3) is None


def _at(placed: list[list[int] | None], number: int, count: int) -> list[int] | None:
    """As `_stays` has it."""
    first = placed[0]
    assert first is not None
    begin = first[number % count]
    return placed[(begin >> 20) + number % (begin & 1048575)]
