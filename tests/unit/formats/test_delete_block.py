import datetime as dt
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import CorruptLogBlock, SchemaMismatch, UnsupportedTable
from hoodie.formats.log.delete_block import (
    DELETES,
    OrderingClass,
    decode_deletes,
    deletes_of,
    encode_deletes,
    usual_class,
    without_ordering,
)

KEYS = pa.array(["a", "b", "c"])
PARTITIONS = pa.array(["p", "p", ""])


def held(deletes: pa.Table) -> list[tuple[OrderingClass, Any]]:
    """The class and the one value of each delete."""
    names = DELETES.names[3:]
    found = []
    for row in deletes.to_pylist():
        (value,) = (row[name] for name in names if row[name] is not None)
        found.append((OrderingClass(row["ordering_class"]), value))
    return found


def test_a_delete_by_key_alone_carries_the_integer_zero() -> None:
    deletes = deletes_of(KEYS.slice(0, 1), PARTITIONS.slice(0, 1))
    # One block of one record: key "a", partition "p", branch 2 (IntWrapper), 0; end of array.
    assert encode_deletes(deletes).hex() == "00000003" + "0000000a" + "02" + "020261" + "020270" + "0400" + "00"
    assert without_ordering(deletes).to_pylist() == [True]


def test_no_deletes_are_an_empty_array() -> None:
    nothing = deletes_of(pa.array([], pa.string()), pa.array([], pa.string()))
    assert encode_deletes(nothing).hex() == "00000003" + "00000001" + "00"
    assert decode_deletes(encode_deletes(nothing)) == nothing


@pytest.mark.parametrize(
    ("values", "expected", "first", "last"),
    [
        (pa.array([True, None, False]), OrderingClass.BOOLEAN, 1, 0),
        (pa.array([5, None, -7], pa.int32()), OrderingClass.INT, 5, -7),
        (pa.array([5, None, 2**62]), OrderingClass.LONG, 5, 2**62),
        (pa.array([0, None, 0]), OrderingClass.LONG, 0, 0),
        (pa.array([1.5, None, 2.5], pa.float32()), OrderingClass.FLOAT, 1.5, 2.5),
        (pa.array([1.5, None, 2.5]), OrderingClass.DOUBLE, 1.5, 2.5),
        (pa.array([b"x", None, b""]), OrderingClass.BYTES, b"x", b""),
        (pa.array(["x", None, "ü"]), OrderingClass.STRING, "x", "ü"),
        (pa.array([dt.date(1970, 1, 3), None, dt.date(1969, 12, 31)]), OrderingClass.DATE, 2, -1),
        (pa.array([Decimal("1.25"), None, Decimal("-3.00")]), OrderingClass.DECIMAL, Decimal("1.25"), Decimal(-3)),
        (pa.array([1, None, -1], pa.timestamp("us", "UTC")), OrderingClass.LONG, 1, -1),
    ],
)
def test_an_ordering_value_keeps_its_java_class_and_a_null_is_no_ordering(
    values: pa.Array, expected: OrderingClass, first: Any, last: Any
) -> None:
    deletes = deletes_of(KEYS, PARTITIONS, values)
    assert held(deletes) == [(expected, first), (OrderingClass.INT, 0), (expected, last)]
    assert decode_deletes(encode_deletes(deletes)) == deletes
    assert without_ordering(deletes).to_pylist() == [False, True, False]


def test_values_of_several_fields_are_one_array_and_a_null_in_one_of_them_is_no_ordering() -> None:
    times, words = pa.array([7, 8, None]), pa.array(["x", None, "z"])
    deletes = deletes_of(KEYS, PARTITIONS, times, words)
    content = encode_deletes(deletes)
    # "a" in "p": an array of LongWrapper 7 and StringWrapper "x"; then IntWrapper 0 for the two others.
    assert content.hex()[16:].startswith("06" + "020261" + "020270" + "18" + "02" + "04" + "060e" + "0e0278" + "00")
    assert decode_deletes(content) == deletes
    assert deletes["ordering_class"].to_pylist() == [OrderingClass.ARRAY, OrderingClass.INT, OrderingClass.INT]
    assert without_ordering(deletes).to_pylist() == [False, True, True]


def test_the_class_can_be_chosen() -> None:
    moment = pa.array([dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)] * 3, pa.timestamp("ms", "UTC"))
    deletes = deletes_of(KEYS, PARTITIONS, moment, ordering_class=OrderingClass.TIMESTAMP_MICROS)
    assert held(deletes) == [(OrderingClass.TIMESTAMP_MICROS, 1_000_000)] * 3
    assert decode_deletes(encode_deletes(deletes)) == deletes


def test_values_that_their_class_does_not_have_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="INT"):
        deletes_of(KEYS, PARTITIONS, pa.array([2**40] * 3), ordering_class=OrderingClass.INT)
    with pytest.raises(SchemaMismatch, match="cannot order"):
        usual_class(pa.list_(pa.int32()))
    good = deletes_of(KEYS, PARTITIONS)
    for classes in ([2, 13, 2], [2, -1, 2], [2, None, 2]):
        with pytest.raises(SchemaMismatch, match="ordering_class"):
            encode_deletes(good.set_column(2, DELETES.field(2), pa.array(classes, pa.int8())))
    with pytest.raises(SchemaMismatch, match="columns"):
        encode_deletes(good.drop_columns(["partition"]))


def test_keys_and_partitions_may_be_null() -> None:
    deletes = deletes_of(pa.array(["a", None]), pa.array([None, "p"]))
    assert decode_deletes(encode_deletes(deletes)) == deletes


def test_many_deletes_of_mixed_lengths_and_classes_come_back() -> None:
    count = 5000
    keys = pa.array([f"{'k' * (row // 700)}{row}" for row in range(count)])
    parts = pa.array([None if row % 97 == 0 else "2024-03-01" for row in range(count)])
    mixed = pa.concat_tables(
        [
            deletes_of(keys, parts),
            deletes_of(keys, parts, pa.array(range(count))),
            deletes_of(keys, parts, keys),
        ]
    )
    shuffled = mixed.take([row * 7919 % mixed.num_rows for row in range(mixed.num_rows)]).combine_chunks()
    assert decode_deletes(encode_deletes(shuffled)) == shuffled


def test_an_array_in_several_blocks_is_read() -> None:
    one = "020261" + "020270" + "0400"
    two = "020262" + "020270" + "0600"
    # A count of -1 is followed by the block's size in bytes.
    payload = bytes.fromhex("02" + one + "01" + "10" + two + "04" + one + two + "00")
    deletes = decode_deletes(struct.pack(">ii", 3, len(payload)) + payload)
    assert deletes["record_key"].to_pylist() == ["a", "b", "a", "b"]
    assert deletes["ordering_class"].to_pylist() == [2, 3, 2, 3]


def test_values_of_several_ordering_fields_are_read_and_written_again() -> None:
    # "a" in "p": LongWrapper 7 and StringWrapper "x"; LocalDateWrapper 3, as some writers have a date; then no array.
    several = "18" + "02" + "04" + "060e" + "0e0278" + "00"
    day = "18" + "02" + "02" + "1806" + "00"
    payload = bytes.fromhex("06" + "".join("020261" + "020270" + value for value in (several, day, "1800")) + "00")
    deletes = decode_deletes(struct.pack(">ii", 3, len(payload)) + payload)
    values = [
        None if array is None else [{k: v for k, v in one.items() if v is not None} for one in array]
        for array in deletes["ordering_array"].to_pylist()
    ]
    assert values == [
        [{"ordering_class": 3, "ordering_integer": 7}, {"ordering_class": 7, "ordering_text": "x"}],
        [{"ordering_class": 8, "ordering_integer": 3}],
        None,
    ]
    assert decode_deletes(encode_deletes(deletes)) == deletes


@pytest.mark.parametrize("version", [1, 2, 4])
def test_versions_that_are_java_objects_or_unknown_are_refused(version: int) -> None:
    with pytest.raises(UnsupportedTable, match=rf"x\.log at byte 90: delete block version {version}"):
        decode_deletes(struct.pack(">ii", version, 0), "x.log", 90)


@pytest.mark.parametrize(
    "payload",
    [
        "",  # no array
        "02" + "020261" + "020270",  # no ordering value
        "02" + "020261" + "020270" + "1a00" + "00",  # branch 13
        "02" + "020261" + "020270" + "0400" + "00" + "00",  # more than the array
        "02" + "020261" + "020270" + "0400",  # no end
        "02" + "02ff61" + "020270" + "0400" + "00",  # negative length
        "02" + "0202ff" + "020270" + "0400" + "00",  # no UTF-8
        "feffffff0f" + "00",  # 2^31 items
        "ffffffffffffffffff01" + "00" + "00",  # -2^63 items
    ],
)
def test_malformed_bytes_are_an_error_that_says_where(payload: str) -> None:
    data = bytes.fromhex(payload)
    with pytest.raises(CorruptLogBlock) as caught:
        decode_deletes(struct.pack(">ii", 3, len(data)) + data, "x.log", 1000)
    assert caught.value.path == "x.log"
    assert caught.value.offset is not None
    assert 1000 <= caught.value.offset <= 1008 + len(data)


def test_a_length_that_disagrees_with_the_content_is_an_error() -> None:
    good = encode_deletes(deletes_of(KEYS, PARTITIONS))
    for bad in (b"", good[:4], good[:-1], good + b"\0", struct.pack(">ii", 0, len(good) - 8) + good[8:]):
        with pytest.raises(CorruptLogBlock):
            decode_deletes(bad, "x.log")
