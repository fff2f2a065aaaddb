"""File slices with logs, as Spark reads them best: base files by its own Parquet reader, without the rows that logs
replace, and beside them the rows of the logs, which are few.

Columns and filters of a query so reach the base files. Arrow tasks find the rows that are replaced, by their positions
in the file, and read the logs.
"""

import hashlib
import itertools
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie.errors import FileGone
from hoodie.expressions.text import tick
from hoodie.merge.rows import Positions
from hoodie.model.files import BaseFile, FileSlice
from hoodie.reading.slices.reader import SliceReader
from hoodie.reading.slices.slice_changes import SliceChanges
from hoodie.schema.schema import AVRO_DEFAULT
from hoodie.spark.columns import is_floating, quoted, tested_by_row
from hoodie.spark.own_sql import spark_sql
from hoodie.spark.read.merged_slices import packed_tasks, slice_rows
from hoodie.spark.worker_errors import error_text
from hoodie.storage.faults import typed_errors

_Words = npt.NDArray[np.int64]

# No column of a table has a dot in its name.
_FILE = "hoodie.file"  # name of a base file
_SIZE = "hoodie.size"  # its bytes, by which it is told where no two have as many: a number is looked up faster
_GONE = "hoodie.gone"  # its rows that logs replace, a bit a row: 64 to a number, the first is the lowest
_ROW = "_metadata.row_index"  # position of a row in its file, as Spark has it
_SLICE = "hoodie.slice"  # which of the slices a change is of
_KEY = "hoodie.key"  # size or name of a file
#: Positions of rows that are replaced in a file without logs.
NONE_GONE: Positions = np.empty(0, np.int64)
#: Characters that stand in a statement; as an argument, which Spark does not parse, they take four calls more.
_MOST_TEXT = 20_000
#: Files that have one key: their places are as many as the square.
_ONE_KEY = 40
#: The columns of a file beside its own.
OWN_COLUMNS = (_GONE,)
_FAILED = -1  # in place of a size: the slice could not be read, and `_FILE` says why
_BITS = [pa.field(_FILE, pa.string()), pa.field(_SIZE, pa.int64()), pa.field(_GONE, pa.list_(pa.int64()))]


def readable(schema: pa.Schema, slices: Sequence[FileSlice], columns: Sequence[str]) -> bool:
    """Whether slices can be read so, as far as their columns and names go.

    Spark's reader gives null where a file lacks a column, whatever its default; and it tells a file by its name.
    """
    names = [slice_.base.name for slice_ in slices if slice_.base is not None]
    defaults = any(_has_default(schema.field(name)) for name in columns)
    return not defaults and "_metadata" not in schema.names and len(set(names)) == len(names)


def _has_default(field: pa.Field) -> bool:
    inner = [field.type.field(number) for number in range(field.type.num_fields)]
    return AVRO_DEFAULT in (field.metadata or {}) or any(map(_has_default, inner))


def changes_of(
    session: SparkSession,
    reader: SliceReader,
    slices: Sequence[FileSlice],
    columns: Sequence[str],
    *,
    each_alone: bool = False,
) -> DataFrame:
    """All that the logs of slices change: rows, and for each base file which of its rows are gone.

    each_alone  a slice whose files are gone fails only those who ask for it by `changes_among`
    returns     `columns`, and those of the latter, which are null where a row is one of the table; and which of
                `slices` each is of, from 0
    """
    stored = (reader.schema.field(name).with_nullable(True) for name in columns)
    schema = pa.schema([*stored, *_BITS, pa.field(_SLICE, pa.int32())])
    read = partial(_changes, reader, tuple(columns), schema, each_alone)
    return packed_tasks(session, list(enumerate(slices)), lambda item: item[1].bytes, schema, read)


def changes_among(changes: DataFrame, count: int, numbers: Sequence[int], columns: Sequence[str]) -> DataFrame:
    """The changes of some slices, among those of so many, with fewer columns."""
    if len(numbers) < count:
        others = sorted(set(range(count)).difference(numbers))
        few, operator = (numbers, "in") if len(numbers) < len(others) else (others, "not in")
        changes = changes.where(f"`{_SLICE}` {operator} ({', '.join(map(str, few))})")
    changes = changes.where(f"if(`{_SIZE}` = {_FAILED}, raise_error(`{_FILE}`), true)")
    rows = changes.selectExpr(*map(tick, columns), *(tick(field.name) for field in _BITS))
    floating = [field for field in changes.schema if field.name in columns and is_floating(field.dataType)]
    if not floating:
        return rows
    return rows.withColumns({field.name: tested_by_row(quoted(field.name), field.dataType) for field in floating})


def rows_gone(session: SparkSession, reader: SliceReader, slices: Sequence[FileSlice]) -> DataFrame:
    """The rows of base files that are gone, by themselves: see `changes_of`."""
    schema = pa.schema(_BITS)
    based = [slice_ for slice_ in slices if slice_.base is not None]
    return slice_rows(session, based, schema, partial(_positions, reader, schema))


def rows_among(changes: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The rows among changes."""
    return changes.where(f"`{_FILE}` is null").selectExpr(*map(tick, columns))


def rows_that_stay(base: DataFrame, files: Sequence[BaseFile], changes: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The rows of base files that no log replaces.

    base     of the files, by Spark's own reader
    changes  of `changes_of` or `rows_gone`
    """
    sizes_differ = len({file.size for file in files}) == len(files)
    replaced_rows = changes.where(f"`{_FILE}` is not null").selectExpr(
        f"`{_SIZE if sizes_differ else _FILE}`", f"`{_GONE}`"
    )
    return _remaining_rows(base, F.broadcast(replaced_rows.toDF(_KEY, _GONE)), sizes_differ).selectExpr(
        *map(tick, columns)
    )


def rows_with_logs(
    session: SparkSession, frame: DataFrame, replaced: Mapping[BaseFile, Positions], rows: Mapping[str, int]
) -> DataFrame:
    """The rows of base files that no log replaces, and those of files that hold nothing else than rows of logs; with
    columns of ours.

    frame     of all these files, by Spark's own reader
    replaced  rows of the base files, by their positions
    rows      the other files by name, with their bytes
    """
    words = {(file.name, file.size): _words(positions) for file, positions in replaced.items()}
    words |= {file: np.empty(0, np.int64) for file in rows.items()}
    numbered = ((file_number, _by_number(words, of)) for file_number, of in _NUMBERS)
    file_number, bits_by_number = next(
        (file_number, bits_by_number) for file_number, bits_by_number in numbered if bits_by_number is not None
    )
    # One value has it all, a scalar subquery: Spark runs no job for it, plans no join, and shows none of it in a plan.
    # It is named as few times as can be, since Spark plans it for each.
    places = _places_of(bits_by_number)
    text = json.dumps(places.values, separators=(",", ":"))
    if len(text) > _MOST_TEXT:
        value = spark_sql(session, _VALUE.format(":gone"), {"gone": text}).scalar()
    else:
        value = spark_sql(session, _VALUE.format(f"'{text}'"), {}).scalar()  # no arguments: three calls more
    return frame.withColumn(_GONE, value).where(_stays(file_number, places))


def _by_number(words: Mapping[tuple[str, int], _Words], of: Callable[[str, int], int]) -> dict[int, _Words] | None:
    """Bits of files by their numbers; None where one number stands for files with different bits."""
    bits_by_number: dict[int, _Words] = {}
    for (name, size), bits in words.items():
        if not np.array_equal(bits_by_number.setdefault(of(name, size), bits), bits):
            return None
    return bits_by_number


@dataclass(frozen=True)
class _Places:
    """Bits of files where a file's number tells their place: number XOR key, modulo `count`.

    values  the bits by their places, None where no file is. With keys, these come first, one for each remainder of the
            number by how many they are
    key     the one of all; None: they are among the values
    """

    values: list[list[int] | None]
    count: int
    key: int | None


def _places_of(bits_by_number: Mapping[int, _Words]) -> _Places:
    """Places of their own for bits by the numbers of their files."""
    few = len(bits_by_number) <= _ONE_KEY
    # An odd count: a key tells any two numbers apart. A file that is none of these most likely meets an empty place.
    count = max(64, len(bits_by_number) ** 2 if few else 4 * len(bits_by_number)) | 1
    remainders = 1 if few else len(bits_by_number)
    same: dict[int, list[int]] = {}
    for number in bits_by_number:
        same.setdefault(number % remainders, []).append(number)
    keys = [0] * remainders
    at: dict[int, int] = {}
    for remainder, numbers in sorted(same.items(), key=lambda item: -len(item[1])):
        for key in itertools.count():
            taken = {(number ^ key) % count: number for number in numbers}
            if len(taken) == len(numbers) and taken.keys().isdisjoint(at):
                break
        keys[remainder] = key
        at |= taken
    values = [bits_by_number[at[place]].tolist() if place in at else None for place in range(count)]
    return _Places(values, count, keys[0]) if few else _Places([keys, *values], count, None)


def _stays(file_number: str, places: _Places) -> str:
    """Whether a row is none of those that are gone, of files that this number tells apart.

    A file that nothing is known of must not pass for one without changes.
    """
    column = tick(_GONE)
    if places.key is None:
        assert places.values[0] is not None
        key = f"get(get({column}, 0), cast(pmod({file_number}, {len(places.values[0])}L) as int))"
        place = f"1 + cast(pmod({file_number} ^ {key}, {places.count}L) as int)"
    else:
        place = f"cast(pmod({file_number} ^ {places.key}L, {places.count}L) as int)"
    return f"{_bit(_word(f'get({column}, {place})'))} = 0"


_VALUE = "select * from values (from_json({}, 'array<array<bigint>>')) as gone(bits)"
#: What tells a file by a number, the fastest first, where no two have the same.
_NUMBERS: tuple[tuple[str, Callable[[str, int], int]], ...] = (
    ("_metadata.file_size", lambda name, size: size),
    ("crc32(cast(_metadata.file_name as binary))", lambda name, size: zlib.crc32(name.encode())),
    (
        "cast(conv(left(md5(cast(_metadata.file_name as binary)), 15), 16, 10) as bigint)",
        lambda name, size: int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:15], 16),
    ),
)


def _remaining_rows(frame: DataFrame, replaced_rows: DataFrame, by_size: bool) -> DataFrame:
    """The rows of files but for those that are gone.

    replaced_rows  of each file by `_KEY`, its size or else its name; to be broadcast

    Expressions are text: to make a column in Python takes several calls to Spark, and tables have many.
    """
    file_field = "file_size" if by_size else "file_name"
    return frame.join(replaced_rows, F.expr(f"_metadata.{file_field} = `{_KEY}`"), "left").where(
        f"{_bit(_word(tick(_GONE)))} = 0"
    )


def _bit(word: str) -> str:
    return f"(shiftright({word}, cast({_ROW} & 63 as int)) & 1)"


def _word(bits: str) -> str:
    """The number among a file's that has the bit of a row."""
    checked_bits = f"coalesce({bits}, raise_error('what the logs change of a base file is not known'))"
    return f"coalesce(get({checked_bits}, cast(shiftright({_ROW}, 6) as int)), 0L)"


def _changes(
    reader: SliceReader,
    columns: Sequence[str],
    schema: pa.Schema,
    each_alone: bool,
    items: Sequence[tuple[int, FileSlice]],
) -> Iterator[pa.Table]:
    """What the logs of a task's slices change. What is gone comes last: of rows that are kept in Spark's cache it then
    passes over the batches that hold none of it."""
    bit_tables = []
    for number, slice_ in items:
        try:
            with typed_errors():
                changes = SliceChanges(reader, slice_, columns)
                for rows in changes.rows():
                    none = [pa.nulls(rows.num_rows, field.type) for field in _BITS]
                    numbers = pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows)
                    yield pa.Table.from_arrays([*rows.columns, *none, numbers], schema=schema)
                if slice_.base is not None:
                    bit_tables.append(_bits(slice_.base, changes.replaced, schema, number))
        except FileGone as error:
            if not each_alone:
                raise
            bit_tables.append(_row(schema, {_FILE: error_text(error), _SIZE: _FAILED, _SLICE: number}))
    yield from bit_tables


def _positions(reader: SliceReader, schema: pa.Schema, slice_: FileSlice) -> Iterator[pa.Table]:
    assert slice_.base is not None  # the caller's slices have one
    yield _bits(slice_.base, SliceChanges(reader, slice_, ()).positions(), schema)


def _bits(file: BaseFile, positions: Positions, schema: pa.Schema, number: int = 0) -> pa.Table:
    """One row: the positions of a file as bits."""
    return _row(schema, {_FILE: file.name, _SIZE: file.size, _GONE: _words(positions), _SLICE: number})


def _words(positions: Positions) -> _Words:
    """int64[...]: a bit for each row of a file up to the last of these, which are set."""
    marks = np.zeros((int(positions[-1]) // 64 + 1) * 64 if len(positions) else 0, np.uint8)
    marks[positions] = 1
    words: _Words = np.packbits(marks, bitorder="little").view("<i8")
    return words


def _row(schema: pa.Schema, values: Mapping[str, object]) -> pa.Table:
    columns = [pa.array([values.get(field.name)], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
