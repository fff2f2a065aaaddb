"""Real log files cut anywhere and with bits turned over: blocks, a clear error, and nothing else."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptLogBlock, UnsupportedTable
from hoodie.formats.avro.rows import decode_rows
from hoodie.formats.log.blocks import BlockKind, encode_block, read_block_headers, read_blocks
from hoodie.formats.log.content import data_rows
from hoodie.formats.log.delete_block import decode_deletes
from support.nightly import scaled

LOGS = Path(__file__).parents[1] / "fixtures" / "logs"
FILES = {path.parent.name: path.read_bytes() for path in sorted(LOGS.rglob(".*")) if path.is_file()}
SMALL = {name: data for name, data in FILES.items() if len(data) < 8000}


def outcome(data: bytes) -> str:
    """What reading the whole file, contents included, comes to: the kinds of its blocks, or "error"."""
    kinds = []
    error: CorruptLogBlock | UnsupportedTable | None = None
    try:
        for block in read_blocks(data, "f.log"):
            kinds.append(block.kind.name)
            if block.kind.is_data and block.kind is not BlockKind.HFILE_DATA:
                data_rows(block, "f.log").validate()
            elif block.kind is BlockKind.DELETE:
                decode_deletes(block.content, "f.log").validate()
    except (CorruptLogBlock, UnsupportedTable) as caught:
        error = caught
    if isinstance(error, CorruptLogBlock):
        assert error.offset is not None
        assert 0 <= error.offset <= len(data)
    return "error" if error else ",".join(kinds)


def walks(data: bytes) -> Iterator[list[tuple[BlockKind, int]] | type]:
    """The blocks that each way through the file finds, or the error it raises."""
    ranged = read_block_headers(lambda offset, length: data[offset : offset + length], len(data), "f.log")
    for walk in (read_blocks(data, "f.log"), ranged):
        try:
            yield [(block.kind, block.offset) for block in walk]
        except (CorruptLogBlock, UnsupportedTable) as error:
            yield type(error)


@pytest.mark.parametrize("name", ["mor_deletes", "v6_mor_payload_default", "v6_mor_parquet_log_rollback"])
def test_a_file_cut_at_any_byte_is_one_corrupt_block(name: str) -> None:
    data = FILES[name]
    for cut in (*range(30), *range(30, len(data), scaled(4, 1))):
        assert outcome(data[:cut]) == ("" if cut < 6 else "CORRUPT")
        assert outcome(data + data[:cut]) == outcome(data) + ("" if cut < 6 else ",CORRUPT")


@pytest.mark.parametrize("name", ["v6_mor_nested_types", "v9_mor_txns", "mor_deletes"])
def test_a_content_cut_at_any_byte_is_an_error(name: str) -> None:
    (block,) = read_blocks(FILES[name], "f.log")
    decode = decode_deletes if block.kind is BlockKind.DELETE else partial(decode_rows, schema_json=block.header.schema)
    decode(block.content)
    for cut in range(0, len(block.content), scaled(4, 1)):
        with pytest.raises(CorruptLogBlock):
            decode(block.content[:cut])


@given(st.data())
def test_bits_turned_over_give_blocks_or_an_error(data: st.DataObject) -> None:
    damaged = bytearray(SMALL[data.draw(st.sampled_from(sorted(SMALL)))] * 2)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    outcome(bytes(damaged))
    forward, ranged = walks(bytes(damaged))
    assert forward == ranged


@given(st.binary(max_size=200), st.lists(st.binary(max_size=100), max_size=4))
def test_any_bytes_between_magics_are_read_back_or_refused(start: bytes, parts: list[bytes]) -> None:
    data = b"#HUDI#" + b"#HUDI#".join([start, *parts])
    forward, ranged = walks(data)
    assert forward == ranged
    if isinstance(forward, list):
        found = b"".join(map(encode_block, read_blocks(data, "f.log")))
        assert data.startswith(found)
        assert len(data) - len(found) < 6
