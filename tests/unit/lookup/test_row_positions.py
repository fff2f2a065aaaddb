"""Positions that rows bring along are those of the only row of their key."""

import pyarrow as pa

from hoodie.index.pruning import SEVERAL
from hoodie.lookup.batch import agreed_positions
from hoodie.merge.rows import ROW_POSITION
from hoodie.model.meta import RECORD_KEY


def rows(*pairs: tuple[str, int]) -> pa.Table:
    keys, positions = zip(*pairs, strict=True)
    return pa.table({RECORD_KEY: list(keys), ROW_POSITION: pa.array(positions, pa.int64())})


def test_a_key_with_rows_of_several_positions_has_several() -> None:
    given = rows(("a", 3), ("b", 5), ("b", 4), ("c", -1), ("d", 9), ("d", 9), ("b", 4))
    assert agreed_positions(given).column(ROW_POSITION).to_pylist() == [3, SEVERAL, SEVERAL, -1, 9, 9, SEVERAL]
    assert agreed_positions(given.slice(0, 2)).column(ROW_POSITION).to_pylist() == [3, 5]


def test_rows_without_positions_stay_as_they_are() -> None:
    given = rows(("a", 3), ("a", 4)).drop_columns([ROW_POSITION])
    assert agreed_positions(given) is given
