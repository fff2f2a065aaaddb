"""File slices with logs, as Spark reads them best: base files by its own Parquet reader, without the rows that logs
replace, and beside them the rows of the logs, which are few.

Columns and filters of a query so reach the base files. Arrow tasks find the rows that are replaced, by their positions
in the file, and read the logs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
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
from hoodie.spark.local_frame import local_frame
from hoodie.spark.own_sql import spark_sql
from hoodie.spark.read.merged_slices import packed_tasks, slice_bytes, slice_rows
from hoodie.spark.types import to_spark
from hoodie.spark.worker_errors import as_text
from hoodie.storage.faults import typed_errors

Words = npt.NDArray[np.int64]

# No column of a table has a dot in its name.
_FILE = "hoodie.file"  # name of a base file
_SIZE = "hoodie.size"  # its bytes, by which it is told where no two have as many: a number is looked up faster
_GONE = "hoodie.gone"  # its rows that logs replace, a bit a row: 64 to a number, the first is the lowest
_ROW = "_metadata.row_index"  # position of a row in its file, as Spark has it
_SLICE = "hoodie.slice"  # which of the slices a change is of
_KEY = "hoodie.key"  # size or name of a file
#: Of a file beside its own.
OWN_COLUMNS = (_KEY, _GONE)
#: Words of bits that go to Spark as text, for 65,536 rows: about 20 kB, a few ms.
_MOST_WORDS_AS_TEXT = 1024
#: Frames of bits that a session keeps.
_MOST_FRAMES = 8
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
    return packed_tasks(session, list(enumerate(slices)), lambda item: slice_bytes(item[1]), schema, read)


def changes_among(changes: DataFrame, count: int, numbers: Sequence[int], columns: Sequence[str]) -> DataFrame:
    """The changes of some slices, among those of so many, with fewer columns."""
    if len(numbers) < count:
        others = sorted(set(range(count)).difference(numbers))
        few, kept = (numbers, "in") if len(numbers) < len(others) else (others, "not in")
        changes = changes.where(f"`{_SLICE}` {kept} ({', '.join(map(str, few))})")
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


def rows_of(changes: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The rows among changes."""
    return changes.where(f"`{_FILE}` is null").selectExpr(*map(tick, columns))


def rows_that_stay(base: DataFrame, files: Sequence[BaseFile], changes: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The rows of base files that no log replaces.

    base     of the files, by Spark's own reader
    changes  of `changes_of` or `rows_gone`
    """
    sizes_differ = len({file.size for file in files}) == len(files)
    gone = changes.where(f"`{_FILE}` is not null").selectExpr(f"`{_SIZE if sizes_differ else _FILE}`", f"`{_GONE}`")
    return _without(base, F.broadcast(gone.toDF(_KEY, _GONE)), sizes_differ).selectExpr(*map(tick, columns))


def rows_with_logs(
    session: SparkSession,
    frame: DataFrame,
    replaced: Mapping[BaseFile, Positions],
    rows: Mapping[str, int],
) -> DataFrame:
    """The rows of base files that no log replaces, and those of files that hold nothing else than rows of logs; with
    columns of ours.

    frame     of all these files, by Spark's own reader
    replaced  rows of the base files, by their positions
    rows      the other files by name, with their bytes
    """
    words = {(file.name, file.size): _words(positions) for file, positions in replaced.items()}
    words |= {file: np.empty(0, np.int64) for file in rows.items()}
    sizes_differ = len({size for _, size in words}) == len(words)
    gone = {size if sizes_differ else name: each for (name, size), each in words.items()}
    return _without(frame, _gone_frame(session, gone), sizes_differ)


def _gone_frame(session: SparkSession, gone: Mapping[int | str, Words]) -> DataFrame:
    """Rows that are gone, of each file by its size or name, as rows of the driver.

    Few words go as text: two calls to Spark, where a frame of Arrow takes 38. Of many it takes Spark longer to read it,
    and the session keeps the frame.
    """
    if sum(map(len, gone.values())) > _MOST_WORDS_AS_TEXT:
        kind = pa.int64() if isinstance(next(iter(gone)), int) else pa.string()
        schema = pa.schema([pa.field(_KEY, kind), pa.field(_GONE, pa.list_(pa.int64()))])
        columns = [pa.array(list(gone), kind), pa.array(list(gone.values()), schema.field(1).type)]
        return F.broadcast(_kept_frame(session, pa.table(columns, schema=schema).sort_by(_KEY)))
    rows = ", ".join(f"({_literal(key)}, {_array(words)})" for key, words in gone.items())
    text = f"select /*+ broadcast(gone) */ * from values {rows} as gone(`{_KEY}`, `{_GONE}`)"
    return spark_sql(session, text, {})  # no arguments take three calls more than an empty mapping


def _kept_frame(session: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows of the driver as a frame, which is not sent again for a further query that needs the same."""
    kept: dict[bytes, DataFrame] = vars(session).setdefault("_hoodie_gone", {})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    key = hashlib.sha256(sink.getvalue()).digest()
    frame = kept.get(key)
    if frame is None:
        kept[key] = frame = local_frame(session, rows, to_spark(rows.schema))
        for oldest in list(kept)[:-_MOST_FRAMES]:
            kept.pop(oldest, None)
    return frame


def _literal(key: int | str) -> str:
    return f"{key}L" if isinstance(key, int) else f"cast(X'{key.encode().hex()}' as string)"


def _array(words: Words) -> str:
    if not len(words):
        return "cast(array() as array<bigint>)"
    return f"cast(split('{','.join(map(str, words.tolist()))}', ',') as array<bigint>)"


def _without(frame: DataFrame, gone: DataFrame, by_size: bool) -> DataFrame:
    """The rows of files but for those that are gone.

    gone  of each file by `_KEY`, its size or else its name; to be broadcast

    Expressions are text: to make a column in Python takes several calls to Spark, and tables have many.
    """
    told = "file_size" if by_size else "file_name"
    return frame.join(gone, F.expr(f"_metadata.{told} = `{_KEY}`"), "left").where(_STAYS)


# A file that nothing is known of must not pass for one without changes.
_WORDS = f"coalesce(`{_GONE}`, raise_error('what the logs change of a base file is not known'))"
_WORD = f"coalesce(get({_WORDS}, cast(shiftright({_ROW}, 6) as int)), 0L)"
_STAYS = f"shiftright({_WORD}, cast({_ROW} & 63 as int)) & 1 = 0"


def _changes(
    reader: SliceReader,
    columns: Sequence[str],
    schema: pa.Schema,
    each_alone: bool,
    items: Sequence[tuple[int, FileSlice]],
) -> Iterator[pa.Table]:
    """What the logs of a task's slices change. What is gone comes last: of rows that are kept in Spark's cache it then
    passes over the batches that hold none of it."""
    gone = []
    for number, slice_ in items:
        try:
            with typed_errors():
                changes = SliceChanges(reader, slice_, columns)
                for rows in changes.rows():
                    none = [pa.nulls(rows.num_rows, field.type) for field in _BITS]
                    numbers = pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows)
                    yield pa.Table.from_arrays([*rows.columns, *none, numbers], schema=schema)
                if slice_.base is not None:
                    gone.append(_bits(slice_.base, changes.replaced, schema, number))
        except FileGone as error:
            if not each_alone:
                raise
            gone.append(_row(schema, {_FILE: as_text(error), _SIZE: _FAILED, _SLICE: number}))
    yield from gone


def _positions(reader: SliceReader, schema: pa.Schema, slice_: FileSlice) -> Iterator[pa.Table]:
    assert slice_.base is not None  # the caller's slices have one
    yield _bits(slice_.base, SliceChanges(reader, slice_, ()).positions(), schema)


def _bits(file: BaseFile, positions: Positions, schema: pa.Schema, number: int = 0) -> pa.Table:
    """One row: the positions of a file as bits."""
    return _row(schema, {_FILE: file.name, _SIZE: file.size, _GONE: _words(positions), _SLICE: number})


def _words(positions: Positions) -> Words:
    """int64[...]: a bit for each row of a file up to the last of these, which are set."""
    marks = np.zeros((int(positions[-1]) // 64 + 1) * 64 if len(positions) else 0, np.uint8)
    marks[positions] = 1
    words: Words = np.packbits(marks, bitorder="little").view("<i8")
    return words


def _row(schema: pa.Schema, values: Mapping[str, object]) -> pa.Table:
    columns = [pa.array([values.get(field.name)], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
