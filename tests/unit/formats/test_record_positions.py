"""The positions that a log block's header holds, beside those of real blocks."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoodie.formats.log.content import decode_positions, encode_positions

REAL = json.loads((Path(__file__).parents[2] / "vectors" / "v8-v9" / "record_positions.json").read_text())["vectors"]


def positions_of(vector: dict[str, Any]) -> list[int]:
    told = vector["positions"]
    return list(range(told["first"], told["last"] + 1)) if isinstance(told, dict) else list(told)


@pytest.mark.parametrize("vector", REAL)
def test_positions_of_real_blocks_are_read(vector: dict[str, Any]) -> None:
    positions = decode_positions(vector["base64"])
    assert positions.tolist() == positions_of(vector)


@pytest.mark.parametrize("vector", REAL)
def test_positions_are_written_as_in_real_blocks(vector: dict[str, Any]) -> None:
    assert encode_positions(np.array(positions_of(vector), np.int64)) == vector["base64"]


@pytest.mark.parametrize("count", [1, 3, 5_000, 70_000, 200_000])
def test_positions_come_back(count: int) -> None:
    drawn = np.sort(np.random.default_rng(count).choice(10 * count, count, replace=False)).astype(np.int64)
    text = encode_positions(drawn)
    assert text is not None
    read = decode_positions(text)
    assert read.tolist() == drawn.tolist()


@pytest.mark.parametrize("positions", [[], [3, 3], [5, 4], [-1, 2], [2**32]])
def test_positions_that_the_header_cannot_hold_are_left_out(positions: list[int]) -> None:
    assert encode_positions(np.array(positions, np.int64)) is None


@pytest.mark.parametrize("text", ["", "no base64!", "AQAAAAAAAAAAAAAA", "AgAAAAAAAAAAAAAAOjAAAAEAAAAAAAAAEAAAAAMA"])
def test_a_header_that_holds_no_positions_gives_none(text: str) -> None:
    assert decode_positions(text) is None
