"""HFiles of any rows are read as they were written; damaged ones give an error of ours, never other cells."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.formats.hfile.blocks import BlockCodec
from hoodie.formats.hfile.checksums import crc32c_chunks
from hoodie.formats.hfile.reader import open_hfile
from hoodie.formats.hfile.writer import encode_hfile
from support.metadata_tables import hfiles

Pairs = list[tuple[bytes, bytes]]

ROWS = st.binary(max_size=6) | st.sampled_from([b"a", b"ab", b"abc", b"abd", b"b", b"\xff", b"\xff\xff"])
PAIRS = st.lists(st.tuples(ROWS, st.binary(max_size=40)), max_size=60).map(
    lambda pairs: sorted(pairs, key=lambda pair: pair[0])
)


def encoded(pairs: Pairs, block_size: int, codec: BlockCodec) -> bytes:
    rows, values = ([pair[at] for pair in pairs] for at in (0, 1))
    arrays = pa.array(rows, pa.binary()), pa.array(values, pa.binary())
    return encode_hfile(*arrays, {"schema": b'"string"'}, {"m": b"meta"}, codec, block_size)


def read_all(data: bytes) -> tuple[Pairs, bytes | None]:
    file = open_hfile(lambda offset, length: data[offset : offset + length], len(data), "f.hfile")
    pairs = [pair for cells in file.cells() for pair in zip(cells.rows, cells.values(), strict=True)]
    return pairs, file.meta("m")


@given(PAIRS, st.integers(1, 300), st.sampled_from([BlockCodec.GZ, BlockCodec.NONE]), st.lists(ROWS, max_size=4))
def test_what_is_written_is_read_and_found(
    pairs: Pairs, block_size: int, codec: BlockCodec, wanted: list[bytes]
) -> None:
    data = encoded(pairs, block_size, codec)
    assert read_all(data) == (pairs, b"meta")
    file = open_hfile(lambda offset, length: data[offset : offset + length], len(data), "f.hfile")
    hits = [pair for cells in file.rows(wanted) for pair in zip(cells.rows, cells.values(), strict=True)]
    assert hits == [pair for pair in pairs if pair[0] in wanted]
    for prefix in wanted:
        hits = [pair for cells in file.prefixed(prefix) for pair in zip(cells.rows, cells.values(), strict=True)]
        assert hits == [pair for pair in pairs if pair[0].startswith(prefix)]


@given(st.data(), PAIRS, st.integers(20, 300), st.sampled_from([BlockCodec.GZ, BlockCodec.NONE]))
def test_bits_turned_over_give_the_same_cells_or_an_error(
    data: st.DataObject, pairs: Pairs, block_size: int, codec: BlockCodec
) -> None:
    damaged = bytearray(encoded(pairs, block_size, codec))
    used = len(damaged) - 4096 + 120  # the rest of the trailer is zeros
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, used))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        outcome = read_all(bytes(damaged))
    except (CorruptFile, UnsupportedTable):
        return
    assert outcome[0] == pairs
    assert outcome[1] in (b"meta", None)  # the trailer's count of meta blocks has no checksum


@given(st.data())
def test_real_files_with_bits_turned_over_give_the_same_cells_or_an_error(data: st.DataObject) -> None:
    """Of both dialects: Hudi's own writer leaves checksums out, and gzip's own stand in."""
    name = data.draw(st.sampled_from(["mdt_cow", "hudi-0.15/cow_metadata_table"]))
    original = data.draw(st.sampled_from([content for _, content in hfiles(name)]))
    damaged = bytearray(original)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 3900))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        outcome = read_all(bytes(damaged))
    except (CorruptFile, UnsupportedTable):
        return
    assert outcome[0] == read_all(original)[0]


@pytest.mark.parametrize("name", ["mdt_cow", "hudi-0.15/cow_metadata_table"])
def test_a_file_cut_anywhere_is_an_error(name: str) -> None:
    content = next(data for _, data in hfiles(name))
    for cut in range(0, len(content), 97):
        with pytest.raises((CorruptFile, UnsupportedTable)):
            read_all(content[:cut])


@given(st.binary(max_size=600), st.integers(4, 70))
def test_checksums_do_not_depend_on_how_they_are_cut_into_lanes(content: bytes, chunk: int) -> None:
    def plain(piece: bytes) -> int:
        crc = 0xFFFFFFFF
        for byte in piece:
            crc ^= byte
            for _ in range(8):
                crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        return crc ^ 0xFFFFFFFF

    assert crc32c_chunks(content, chunk) == [plain(content[at : at + chunk]) for at in range(0, len(content), chunk)]
