import numpy as np
import pytest

from hoodie.formats.avro.bytes import Cells, Malformed, Pieces


def test_spans_that_overlap_are_refused() -> None:
    cells = Cells(b"abcdef")
    assert cells.gather(np.array([0, 3]), np.array([3, 4])).to_pylist() == [b"abc", b"d"]
    with pytest.raises(Malformed, match="next row"):
        cells.gather(np.array([0, 2]), np.array([3, 4]))


def test_cursors_anywhere_past_the_data_read_nothing_beyond_it() -> None:
    cells = Cells(b"\xff" * 20)
    far = np.array([20, 21, 10**12])
    assert cells.bytes_at(far).tolist() == [0, 0, 0]
    assert cells.varints(far)[0].tolist() == [0, 0, 0]
    for read in (cells.spans, lambda at: cells.fixed(at, 1)):
        with pytest.raises(Malformed):
            read(far)


def test_numbers_that_are_not_present_have_no_bytes() -> None:
    pieces = Pieces(3)
    pieces.varints(np.array([300, 300, 1]), np.array([False, True, True]))
    pieces.constant(0)
    assert pieces.join().to_pylist() == [b"\x00", b"\xd8\x04\x00", b"\x02\x00"]


def test_rows_of_no_pieces_are_empty() -> None:
    assert Pieces(2).join().to_pylist() == [b"", b""]
    assert Pieces(2).join_framed().to_pylist() == [b"\0" * 4] * 2
