"""HFiles: those of the vectors and of real metadata tables are read, and written again byte for byte."""

import base64
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import CorruptFile, InvalidInput, UnsupportedTable
from hoodie.formats.hfile import blocks
from hoodie.formats.hfile.blocks import (
    DATA,
    FILE_INFO,
    HEADER_SIZE,
    INNER_INDEX,
    LEAF_INDEX,
    ROOT_INDEX,
    BlockCodec,
    encode_hfile_block,
)
from hoodie.formats.hfile.cells import KEY_TAIL, HFileCells, cell_key, encode_cells
from hoodie.formats.hfile.checksums import crc32c_chunks
from hoodie.formats.hfile.index import decode_root_index, encode_index_entry, separator
from hoodie.formats.hfile.numbers import decode_vlong, encode_vlong
from hoodie.formats.hfile.reader import HFile, open_hfile
from hoodie.formats.hfile.trailer import Trailer, encode_file_info, encode_trailer
from hoodie.formats.hfile.writer import encode_hfile, write_hfile
from support.metadata_tables import ALL, BY_HBASE, hfiles

VECTORS = Path(__file__).parents[2] / "vectors"
TINY = json.loads((VECTORS / "tiny_hfiles.json").read_text())["files"]
CELLS = json.loads((VECTORS / "hfile_cells.json").read_text())

#: File info entries that the writer makes itself.
OWN = {"KEY_VALUE_VERSION", "MAX_MEMSTORE_TS_KEY"}


def opened(data: bytes, path: str = "f.hfile") -> HFile:
    return open_hfile(lambda offset, length: data[offset : offset + length], len(data), path)


def content(file: HFile) -> list[tuple[bytes, bytes]]:
    return [pair for cells in file.cells() for pair in zip(cells.rows, cells.values(), strict=True)]


def written(pairs: list[tuple[bytes, bytes]], info: Mapping[str, bytes] | None = None, **more: Any) -> bytes:
    rows, values = ([pair[at] for pair in pairs] for at in (0, 1))
    return encode_hfile(pa.array(rows, pa.binary()), pa.array(values, pa.binary()), info or {}, **more)


def again(file: HFile, **more: Any) -> bytes:
    """What our writer makes of the same content."""
    info = {key: value for key, value in file.info.items() if not key.startswith("hfile.") and key not in OWN}
    metas = {name: file.meta(name) for name in file.metas}
    created = int.from_bytes(file.info["hfile.CREATE_TIME_TS"], "big")
    return written(content(file), info, metas=metas, codec=file.trailer.codec, created=created, **more)


def vector_bytes(vector: Mapping[str, Any]) -> bytes:
    body = base64.b64decode(vector["bytes_base64_without_trailer_padding"])
    return body + bytes.fromhex(vector["trailer_used_hex"]).ljust(4092, b"\0") + bytes.fromhex("03000003")


@pytest.mark.parametrize("vector", TINY, ids=lambda vector: vector["name"])
def test_the_files_of_the_vectors_are_read_and_written(vector: Mapping[str, Any]) -> None:
    data = vector_bytes(vector)
    assert len(data) == vector["size"]
    file = opened(data)
    expected = vector["trailer"]
    assert file.trailer == Trailer(
        file_info=expected["file_info_offset"],
        load_on_open=expected["load_on_open"],
        index_size=expected["unc_index_size"],
        total_size=expected["total_unc"],
        index_entries=expected["data_index_count"],
        meta_entries=expected["meta_index_count"],
        cells=expected["entries"],
        levels=expected["levels"],
        first=expected["first"],
        last=expected["last"],
        comparator=expected["cmp"],
        codec=BlockCodec(expected["codec"]),
    )
    assert {key: value.hex() for key, value in file.info.items()} == vector["file_info"]
    assert len(content(file)) == expected["entries"]
    assert again(file, block_size=vector["block_size"]) == data


@pytest.mark.parametrize("name", ALL)
def test_every_hfile_of_real_tables_is_read_to_its_last_cell(name: str) -> None:
    count = 0
    for path, data in hfiles(name):
        file = opened(data, path)
        pairs = content(file)
        assert "schema" in file.info
        rows = {row for row, _ in pairs}
        for row in rows:
            hits = [pair for cells in file.rows([row]) for pair in zip(cells.rows, cells.values(), strict=True)]
            assert hits == [pair for pair in pairs if pair[0] == row]
        assert not list(file.rows([b"no such row", b""]))
        count += 1
    assert count > 3


@pytest.mark.parametrize("name", BY_HBASE)
def test_what_hbase_wrote_is_written_byte_for_byte(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, data in hfiles(name):
        file = opened(data, path)
        assert data[-4:] == bytes.fromhex("03000003")
        # Newer Javas say that they do not know the system; its byte is all that differs.
        monkeypatch.setattr(blocks, "_GZIP_HEAD", data[33:43])
        assert again(file) == data, path


@pytest.mark.parametrize("case", CELLS["cells"], ids=lambda case: case["row_utf8"])
def test_cells_are_those_of_the_vectors(case: Mapping[str, str]) -> None:
    rows, values = pa.array([case["row_utf8"].encode()]), pa.array([bytes.fromhex(case["value_hex"])])
    (cell,) = encode_cells(rows, values).to_pylist()
    assert cell.hex() == case["cell_hex"]


@pytest.mark.parametrize("case", CELLS["separators"], ids=lambda case: case["index_row"])
def test_separators_of_blocks_are_those_of_the_vectors(case: Mapping[str, str]) -> None:
    key = separator(case["last_row_of_previous_block"].encode(), case["first_row_of_block"].encode())
    assert key.hex() == case["index_key_hex"]
    index = decode_root_index(memoryview(encode_index_entry(7, 40, key)), 1, "f", exact=True)
    assert (index[0].offset, index[0].size, index[0].row) == (7, 40, case["index_row"].encode())


def test_many_rows_are_searched_for_in_an_index_as_one_is() -> None:
    alike = [b"same start/" + bytes([byte]) for byte in (0, 1, 127, 255)]
    rows = sorted({b"", b"\0", b"a", b"a\0", b"a\0\0", b"abcdefg", b"abcdefg\0", b"abcdefgh", b"\xff" * 9, *alike})
    payload = b"".join(encode_index_entry(40, 40, len(row).to_bytes(2, "big") + row + KEY_TAIL) for row in rows)
    index = decode_root_index(memoryview(payload), len(rows), "f", exact=True)
    assert [entry.row for entry in index] == rows
    searched = sorted({*rows, *(row + b"\0" for row in rows), *(row[:-1] for row in rows), b"same start/\x02", b"b"})
    assert index.last_of(searched) == [index.last(row) for row in searched]
    assert index.last_of(searched) == [sum(row <= other for row in rows) - 1 for other in searched]
    assert index.last_of([]) == []


def test_a_row_with_several_cells_is_read_with_all_of_them() -> None:
    pairs = [(b"a", b"1"), (b"b", b"2"), (b"b", b"b3"), (b"b", b""), (b"c", b"\0\x01c" + KEY_TAIL + b"4"), (b"d", b"5")]
    file = opened(written(pairs))
    hits = [pair for cells in file.rows([b"b", b"c"]) for pair in zip(cells.rows, cells.values(), strict=True)]
    assert hits == pairs[1:5]


@pytest.mark.parametrize("length", [0, 1, 60, 115, 116, 240, 244, 300, 40_000])
@pytest.mark.parametrize("tail", [KEY_TAIL, b""], ids=["of HBase", "of Hudi's own writer"])
def test_an_index_is_read_whatever_the_length_of_its_rows(length: int, tail: bytes) -> None:
    rows = [f"{number:04}".encode() + b"x" * length for number in range(50)]
    keys = [len(row).to_bytes(2, "big") + row + tail for row in rows]
    payload = b"".join(encode_index_entry(100 * number, 40, key) for number, key in enumerate(keys))
    index = decode_root_index(memoryview(payload), len(rows), "f", exact=True)
    assert [(entry.offset, entry.size, entry.row) for entry in index] == [
        (100 * number, 40, row) for number, row in enumerate(rows)
    ]
    assert [index.last(row) for row in (b"", rows[0], rows[7] + b"a", b"9")] == [-1, 0, 7, 49]
    with pytest.raises(CorruptFile, match="entries take"):
        decode_root_index(memoryview(payload + b"rest"), len(rows), "f", exact=True)
    with pytest.raises(CorruptFile, match=r"should have 51 entries|ends amid"):
        decode_root_index(memoryview(payload), len(rows) + 1, "f", exact=True)
    swapped = b"".join(encode_index_entry(0, 40, key) for key in reversed(keys))
    with pytest.raises(CorruptFile, match="comes after"):
        decode_root_index(memoryview(swapped), len(rows), "f", exact=True)


@pytest.mark.parametrize("case", CELLS["vlong"], ids=lambda case: str(case["n"]))
def test_numbers_of_variable_length_are_those_of_the_vectors(case: Mapping[str, Any]) -> None:
    data = bytes.fromhex(case["hex"])
    assert encode_vlong(case["n"]) == data
    assert decode_vlong(data + b"rest", 0, "f") == (case["n"], len(data))


def test_checksums_are_castagnolis() -> None:
    assert crc32c_chunks(b"123456789", 100) == [0xE3069283]
    assert crc32c_chunks(bytes(32), 32) == [0x8A9136AA]
    assert crc32c_chunks(bytes(range(32)) + b"abc", 32) == [0x46DD794E, 0x364B3FB7]
    assert crc32c_chunks(b"", 16) == []


def test_many_blocks_are_looked_into_only_where_rows_may_be() -> None:
    pairs = [(f"key-{number:05d}".encode(), bytes([number % 251]) * 40) for number in range(5000)]
    data = written(pairs, block_size=4096)
    reads: list[tuple[int, int]] = []

    def read(offset: int, length: int) -> bytes:
        reads.append((offset, length))
        return data[offset : offset + length]

    file = open_hfile(read, len(data), "f.hfile")
    assert len(file.index) > 50
    reads.clear()
    wanted = [pairs[17], pairs[2500], pairs[4999]]
    cells = list(file.rows([row for row, _ in wanted]))
    assert [pair for part in cells for pair in zip(part.rows, part.values(), strict=True)] == wanted
    assert sum(length for _, length in reads) < len(data) / 10
    reads.clear()
    cells = list(file.prefixed(b"key-0123"))
    assert [row for part in cells for row in part.rows] == [
        f"key-{number:05d}".encode() for number in range(1230, 1240)
    ]
    assert sum(length for _, length in reads) < len(data) / 10
    assert not list(file.prefixed(b"zzz"))
    assert sum(map(len, file.prefixed(b""))) == 5000


def test_a_row_in_several_blocks_is_found_whole() -> None:
    """As a writer may split that is not HBase's; ours never does."""
    parts = [[(b"a", b"1"), (b"b", b"2")], [(b"b", b"3"), (b"b", b"4")], [(b"b", b"5"), (b"c", b"6")]]
    body, index, previous = b"", [], -1
    for part in parts:
        cells = encode_cells(pa.array([row for row, _ in part]), pa.array([value for _, value in part]))
        block = encode_hfile_block(DATA, b"".join(cells.to_pylist()), BlockCodec.NONE, previous)
        index.append(encode_index_entry(len(body), len(block), cell_key(part[0][0])))
        previous, body = len(body), body + block
    file = opened(_with_index(body, b"".join(index), 3, cells=6))
    assert [value for cells in file.rows([b"b"]) for value in cells.values()] == [b"2", b"3", b"4", b"5"]
    assert [value for cells in file.prefixed(b"b") for value in cells.values()] == [b"2", b"3", b"4", b"5"]


def test_an_index_of_several_levels_is_read() -> None:
    """As HBase makes of very many blocks."""
    body, data_entries, pairs = b"", [], []
    for number in range(8):
        row = f"r{number}".encode()
        pairs.append((row, row * 2))
        cells = encode_cells(pa.array([row]), pa.array([row * 2]))
        block = encode_hfile_block(DATA, b"".join(cells.to_pylist()), BlockCodec.GZ, -1)
        data_entries.append((len(body), len(block), cell_key(row)))
        body += block
    above = data_entries
    for magic, width in ((LEAF_INDEX, 2), (INNER_INDEX, 2)):
        entries = []
        for at in range(0, len(above), width):
            part = above[at : at + width]
            packed = [struct.pack(">qi", offset, size) + key for offset, size, key in part]
            places = [sum(map(len, packed[:count])) for count in range(len(packed) + 1)]
            payload = struct.pack(f">{len(places) + 1}i", len(part), *places) + b"".join(packed)
            block = encode_hfile_block(magic, payload, BlockCodec.GZ, -1)
            entries.append((len(body), len(block), part[0][2]))
            body += block
        above = entries
    root = b"".join(encode_index_entry(*entry) for entry in above) + bytes(16)
    file = opened(_with_index(body, root, len(above), cells=8, levels=3, codec=BlockCodec.GZ))
    assert content(file) == pairs
    assert [cells.rows for cells in file.rows([b"r5"])] == [(b"r5",)]


def _with_index(
    body: bytes, root: bytes, entries: int, cells: int, levels: int = 1, codec: BlockCodec = BlockCodec.NONE
) -> bytes:
    load_on_open = len(body)
    body += encode_hfile_block(ROOT_INDEX, root, codec, -1) + encode_hfile_block(ROOT_INDEX, b"", codec, load_on_open)
    file_info = len(body)
    body += encode_hfile_block(FILE_INFO, encode_file_info({"schema": b"x"}), codec, -1)
    trailer = Trailer(
        file_info=file_info,
        load_on_open=load_on_open,
        index_size=len(root),
        total_size=0,
        index_entries=entries,
        meta_entries=0,
        cells=cells,
        levels=levels,
        codec=codec,
    )
    return body + encode_trailer(trailer)


def test_batches_make_the_file_that_one_makes() -> None:
    pairs = [(f"{number // 3:04d}".encode(), b"v" * (number % 70)) for number in range(900)]
    whole = written(pairs, block_size=700)
    for step in (1, 7, 100):
        pieces: list[bytes] = []
        batches = [
            (
                pa.array([row for row, _ in pairs[at : at + step]], pa.binary()),
                pa.array([value for _, value in pairs[at : at + step]], pa.binary()),
            )
            for at in range(0, len(pairs), step)
        ]
        assert write_hfile(pieces.append, batches, {}, block_size=700) == 900
        assert b"".join(pieces) == whole
    assert content(opened(whole)) == pairs


def test_a_file_without_cells_is_one() -> None:
    file = opened(written([], {"schema": b"s"}))
    assert (list(file.cells()), list(file.rows([b"a"])), list(file.prefixed(b""))) == ([], [], [])
    assert file.info["schema"] == b"s"
    assert file.meta("bloomFilter") is None


def test_what_cannot_be_written_is_refused() -> None:
    rows = pa.array([b"b", b"a"])
    with pytest.raises(InvalidInput, match="sorted"):
        write_hfile(lambda _: None, [(rows, rows)], {})
    with pytest.raises(InvalidInput, match="sorted"):
        write_hfile(lambda _: None, [(rows.slice(0, 1), rows.slice(0, 1)), (rows.slice(1), rows.slice(1))], {})
    with pytest.raises(InvalidInput, match="null"):
        written([(None, b"")])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="32768 bytes"):
        written([(b"x" * 2**15, b"")])
    with pytest.raises(UnsupportedTable, match="codec SNAPPY"):
        written([(b"x", b"")], codec=BlockCodec.SNAPPY)


def test_other_files_are_told_from_hfiles() -> None:
    with pytest.raises(CorruptFile, match="no HFile"):
        opened(b"PAR1" * 2000)
    with pytest.raises(CorruptFile, match="3 bytes are no HFile"):
        opened(b"abc")
    data = bytearray(written([(b"a", b"b")]))
    data[-1] = 2
    with pytest.raises(UnsupportedTable, match="version 2"):
        opened(bytes(data))


def test_few_rows_and_many_rows_of_a_block_have_the_same_cells() -> None:
    """Few are searched for in the bytes, for many all cells are looked at. Values that hold what looks like another
    cell's key are no cells."""
    names = [b"k", b"k1", b"k10", b"k2", b"", b"\0", b"k1" + KEY_TAIL]
    trap = struct.pack(">ii", 14, 3) + cell_key(b"k3") + b"abc\0"
    pairs = [(name, name + trap[: len(trap) if name != b"k2" else 9]) for name in sorted(names)]
    pairs += [(b"m%03d" % number, trap[8:]) for number in range(40) for _ in range(2)]
    file = opened(written(pairs, block_size=300))
    assert len(file.index) > 3
    for asked in ([b"k1"], [b"k2", b"k", b"", b"x"], [b"m007"], [b"m0"], [name for name, _ in pairs]):
        expected = sorted(pair for pair in pairs if pair[0] in asked)
        found = [pair for cells in file.rows(asked) for pair in zip(cells.rows, cells.values(), strict=True)]
        assert sorted(found) == expected
    assert list(file.rows([b"k3"])) == []


def test_cells_of_blocks_are_put_together() -> None:
    file = opened(written([(b"%03d" % number, b"v" * number) for number in range(50)], block_size=100))
    joined = HFileCells.joined(list(file.cells()))
    assert list(zip(joined.rows, joined.values(), strict=True)) == content(file)


def test_a_damaged_block_is_noticed_when_a_few_rows_are_looked_up() -> None:
    data = written([(b"%04d" % number, b"value %d" % number) for number in range(500)], block_size=2000)
    file = opened(data)
    entry, row = file.index[1], list(file.cells())[1].rows[0]
    for at in range(entry.offset + HEADER_SIZE + 10, entry.offset + entry.size - 4, 7):
        damaged = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
        with pytest.raises(CorruptFile):
            list(opened(damaged).rows([row]))


def test_the_end_of_a_file_is_remembered_by_its_bytes() -> None:
    """Another file of the same name, size and index is not taken for the one that was read before."""
    rows = [f"k{number:05}" for number in range(3000)]
    files = [
        encode_hfile(
            pa.array(rows, pa.string()),
            pa.array([f"{letter}{number:09}".encode() for number in range(3000)], pa.binary()),
            {"schema": letter.encode()},
            codec=BlockCodec.NONE,
            block_size=1024,
        )
        for letter in "ab"
    ]
    assert len(files[0]) == len(files[1])
    for _ in range(2):
        for letter, data in zip("ab", files, strict=True):
            file = opened(data)
            assert file.info["schema"] == letter.encode()
            (cells,) = file.rows([b"k01234"])
            assert cells.values() == [f"{letter}000001234".encode()]
