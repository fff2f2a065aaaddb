import pickle
import struct

import pytest

from hoodie.errors import CorruptLogBlock, InvalidInput, UnsupportedTable
from hoodie.formats.log.blocks import (
    MAGIC,
    BlockHead,
    BlockKind,
    BlockMap,
    HeaderKey,
    LogBlock,
    encode_block,
    read_block_headers,
    read_blocks,
)
from hoodie.formats.log.content import rollback_block

INSTANT = "20250101000001000"


def block(content: bytes = b"rows", instant: str = INSTANT, kind: BlockKind = BlockKind.AVRO_DATA) -> LogBlock:
    return LogBlock(kind, BlockMap(((HeaderKey.SCHEMA, '"int"'), (HeaderKey.INSTANT_TIME, instant))), content)


def heads_of(data: bytes) -> list[BlockHead]:
    return list(read_block_headers(lambda offset, length: data[offset : offset + length], len(data), "f.log"))


def kinds_of(data: bytes) -> list[tuple[BlockKind, bytes]]:
    found = [(one.kind, bytes(one.content)) for one in read_blocks(data, "f.log")]
    assert [(head.kind, data[head.content_offset :][: head.content_length]) for head in heads_of(data)] == found
    return found


def test_a_block_is_laid_out_as_the_format_says() -> None:
    data = encode_block(rollback_block("20250126040936578", "20250126040826878"))
    assert len(data) == 105
    assert data[:22].hex() == "234855444923" + "000000000000005b" + "00000001" + "00000000"
    assert data[-20:].hex() == "0000000000000000" + "00000000" + "0000000000000061"


def test_an_empty_file_has_no_blocks() -> None:
    assert kinds_of(b"") == []


def test_the_order_of_header_entries_is_kept() -> None:
    for entries in (((2, "s"), (0, "i")), ((0, "i"), (2, "s")), ((9, "new"), (0, "ü"), (0, "twice"))):
        one = LogBlock(BlockKind.DELETE, BlockMap(entries), b"x")
        (read,) = read_blocks(encode_block(one), "f.log")
        assert read.header.entries == entries
    assert read.header.instant == "twice"


def test_header_words_that_are_absent() -> None:
    empty = BlockMap()
    assert (empty.instant, empty.target, empty.schema, empty.compacted) == ("", None, None, ())
    assert BlockMap(((HeaderKey.COMPACTED_BLOCK_TIMES, "1, 2,3"),)).compacted == ("1", "2", "3")


def test_up_to_five_bytes_after_the_last_block_are_the_end_of_the_file() -> None:
    for tail in (b"#", b"#HUDI", b"other"):
        assert kinds_of(encode_block(block()) + tail) == [(BlockKind.AVRO_DATA, b"rows")]


def test_bytes_that_begin_no_block_are_an_error() -> None:
    for data, offset in ((b"garbage", 0), (b"\0" * 100, 0)):
        with pytest.raises(CorruptLogBlock) as caught:
            list(read_blocks(data, "f.log"))
        assert (caught.value.path, caught.value.offset) == ("f.log", offset)
        with pytest.raises(CorruptLogBlock):
            heads_of(data)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_bytes_after_a_block_that_begin_no_block_make_it_corrupt() -> None:
    data = encode_block(block())
    assert kinds_of(data + b"garbage") == [(BlockKind.CORRUPT, data[6:] + b"garbage")]


def test_a_block_cut_short_is_corrupt_up_to_the_next_magic() -> None:
    whole = encode_block(block())
    for cut in range(6, len(whole)):
        assert kinds_of(whole + whole[:cut] + whole) == [
            (BlockKind.AVRO_DATA, b"rows"),
            (BlockKind.CORRUPT, whole[6:cut]),
            (BlockKind.AVRO_DATA, b"rows"),
        ]
        assert kinds_of(whole + whole[:cut])[1:] == [(BlockKind.CORRUPT, whole[6:cut])]


def test_a_magic_within_a_content_is_content() -> None:
    content = MAGIC + b"x" * 50 + MAGIC
    assert kinds_of(encode_block(block(content)) * 2) == [(BlockKind.AVRO_DATA, content)] * 2


def test_a_magic_within_a_content_misleads_the_search_past_a_corrupt_block() -> None:
    inner, outer = encode_block(block(b"inner")), encode_block(block())
    broken = encode_block(block(inner))
    found = kinds_of(broken[: broken.index(inner) + len(inner)] + outer)
    assert found[1:] == [(BlockKind.AVRO_DATA, b"inner"), (BlockKind.AVRO_DATA, b"rows")]


def test_the_magic_after_a_large_corrupt_block_is_found_wherever_it_stands() -> None:
    whole = encode_block(block())
    for size in range(2**20 - 7, 2**20 + 2):
        data = MAGIC + b"x" * size + whole
        assert [kind for kind, _ in kinds_of(data)] == [BlockKind.CORRUPT, BlockKind.AVRO_DATA]


def test_a_trailer_that_disagrees_makes_a_block_corrupt() -> None:
    whole = encode_block(block())
    assert [kind for kind, _ in kinds_of(whole[:-1] + b"\x7f" + whole)] == [BlockKind.CORRUPT, BlockKind.AVRO_DATA]


@pytest.mark.parametrize("size", [-1, -(2**63), 0, 7, 2**31, 2**63 - 1])
def test_a_block_size_that_makes_no_sense_makes_a_block_corrupt(size: int) -> None:
    whole = encode_block(block())
    broken = MAGIC + struct.pack(">q", size) + whole[14:]
    assert [kind for kind, _ in kinds_of(broken + whole)] == [BlockKind.CORRUPT, BlockKind.AVRO_DATA]


def patched(at: int, value: int) -> bytes:
    """A second block with an int32 replaced, after a whole one."""
    whole = encode_block(block())
    return whole + whole[:at] + struct.pack(">i", value) + whole[at + 4 :]


@pytest.mark.parametrize("kind", [-1, 2, 7, 1000])
def test_an_unknown_kind_of_block_is_an_error_that_says_where(kind: int) -> None:
    data = patched(18, kind)
    for walk in (lambda: list(read_blocks(data, "f.log")), lambda: heads_of(data)):
        with pytest.raises(CorruptLogBlock, match=rf"f.log at byte {len(data) // 2}: block type {kind}"):
            walk()


@pytest.mark.parametrize("version", [0, 2, -1])
def test_another_log_format_version_is_an_error_that_says_where(version: int) -> None:
    data = patched(14, version)
    with pytest.raises(UnsupportedTable, match=rf"f.log at byte {len(data) // 2}: log format version {version}"):
        list(read_blocks(data, "f.log"))


@pytest.mark.parametrize("at", [22, 30, 70])  # header count, header length, content length
@pytest.mark.parametrize("value", [-1, 1000, 2**31 - 1])
def test_a_count_or_length_that_does_not_fit_the_block_is_an_error(at: int, value: int) -> None:
    data = patched(at, value)
    for walk in (lambda: list(read_blocks(data, "f.log")), lambda: heads_of(data)):
        with pytest.raises(CorruptLogBlock) as caught:
            walk()
        assert caught.value.offset is not None
        assert len(data) // 2 <= caught.value.offset < len(data)


def test_bytes_between_footer_and_trailer_are_an_error() -> None:
    whole = encode_block(block())
    size = len(whole) - 14 + 4
    data = MAGIC + struct.pack(">q", size) + whole[14:-8] + b"more" + struct.pack(">q", size + 6)
    for walk in (lambda: list(read_blocks(data, "f.log")), lambda: heads_of(data)):
        with pytest.raises(CorruptLogBlock, match="4 bytes stand between footer and trailer"):
            walk()


def test_a_header_that_is_no_text_is_an_error() -> None:
    data = encode_block(block()).replace(b'"int"', b'"\xff\xff"'[:5].ljust(5, b'"'))
    with pytest.raises(CorruptLogBlock, match="UTF-8"):
        list(read_blocks(data, "f.log"))


def test_a_corrupt_block_gives_back_its_bytes() -> None:
    data = encode_block(block())[:50]
    (one,) = read_blocks(data, "f.log")
    assert encode_block(one) == data


def test_a_block_that_other_readers_could_not_read_is_refused() -> None:
    class Endless(bytes):
        def __len__(self) -> int:
            return 2**31

    one = block(Endless())
    with pytest.raises(InvalidInput, match="write smaller blocks"):
        encode_block(one)


def test_headers_cost_one_small_read_a_block_however_large_the_content() -> None:
    data = encode_block(block(b"x" * 500_000)) * 4
    reads: list[int] = []

    def read(offset: int, length: int) -> bytes:
        reads.append(length)
        return data[offset : offset + length]

    heads = list(read_block_headers(read, len(data), "f.log"))
    assert [head.content_length for head in heads] == [500_000] * 4
    assert len(reads) <= len(heads) + 1
    assert sum(reads) < 200_000


def test_headers_longer_than_a_ranged_read_are_read() -> None:
    long = LogBlock(BlockKind.AVRO_DATA, BlockMap(((2, "s" * 100_000), (0, INSTANT))), b"x" * 100_000)
    data = encode_block(long) * 2
    assert [head.header for head in heads_of(data)] == [long.header] * 2


def test_a_file_that_is_shorter_than_said_is_an_error() -> None:
    data = encode_block(block())
    with pytest.raises(CorruptLogBlock, match="were expected"):
        list(read_block_headers(lambda offset, length: data[offset : offset + length], len(data) + 20, "f.log"))
