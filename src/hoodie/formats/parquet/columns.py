"""Columns of Parquet files: how they are written, and read; damage and faults of the storage are different errors."""

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from hoodie.errors import CorruptFile


def open_parquet(
    source: object,
    path: str,
    *,
    pre_buffer: bool = False,
    checked: bool = False,
    footer: pq.FileMetaData | None = None,
    encoded: Sequence[str] = (),
) -> pq.ParquetFile:
    """The file as Parquet. Raises CorruptFile naming it; OSError of the storage.

    footer   the file's, where it has been read
    encoded  columns of text that come as dictionaries
    checked  compare the pages that are read with their checksums, where the writer stored some: rewrites do, so that no
             damage gets into a new file. It costs about a second for each 4 GB of the file
    """
    with damage_of(path):
        # Nanoseconds, pyarrow's choice for INT96, end in 2262.
        return pq.ParquetFile(
            source,
            metadata=footer,
            coerce_int96_timestamp_unit="us",
            pre_buffer=pre_buffer,
            read_dictionary=list(encoded) or None,
            page_checksum_verification=checked,
        )


def open_encoded(
    source: object, path: str, *, pre_buffer: bool = False, checked: bool = False, footer: pq.FileMetaData | None = None
) -> pq.ParquetFile:
    """As `open_parquet`; text of few values comes as a dictionary.

    Most of the time of reading such a column goes into writing its values out, row by row.
    """
    metadata = open_parquet(source, path).metadata if footer is None else footer
    columns = list(_of_few_values(metadata))
    return open_parquet(source, path, pre_buffer=pre_buffer, checked=checked, footer=metadata, encoded=columns)


def _of_few_values(file: pq.FileMetaData) -> Iterator[str]:
    """The text columns, outside of lists and structs, whose values are all in a dictionary.

    A value that is written out takes four bytes and its own; when a dictionary grew too large, the rest is written out.
    """
    groups = [file.row_group(number) for number in range(file.num_row_groups)]
    for number in range(file.num_columns):
        column = file.schema.column(number)
        if column.physical_type != "BYTE_ARRAY" or column.path != column.name or column.logical_type.type != "STRING":
            continue
        chunks = [group.column(number) for group in groups]
        if all(chunk.has_dictionary_page and chunk.total_uncompressed_size < 4 * chunk.num_values for chunk in chunks):
            yield column.path


def read_columns(parquet: pq.ParquetFile, group: int, columns: Sequence[str], path: str) -> pa.Table:
    """Some columns of one row group. Raises as `open_parquet`."""
    with damage_of(path):
        return parquet.read_row_group(group, columns=list(columns))


@contextmanager
def damage_of(path: str) -> Iterator[None]:
    """Raise what Arrow says against a base file's bytes as CorruptFile; faults of the storage pass as they are."""
    try:
        yield
    except (pa.ArrowException, ValueError, OSError) as problem:
        if is_storage_fault(problem):
            raise
        raise CorruptFile(
            path, f"cannot be read as Parquet: {problem}", None, "Restore the file, or roll back its commit."
        ) from problem


def is_storage_fault(problem: Exception) -> bool:
    """Whether an error met while reading Parquet is the storage's. Arrow reports damage by a bare OSError; a fault of
    the storage has a number or a class of its own."""
    return isinstance(problem, OSError) and (type(problem) is not OSError or problem.errno is not None)


#: Rows that are looked at. Counting distinct values among them costs a quarter of a millisecond a column.
_SAMPLE = 4096
#: A dictionary that outgrows this many bytes is given up by the Parquet writer, after it has cost its time.
_LIMIT = 1 << 20
#: Rows that are encoded at a time, at least and at most, and the bytes of them in one column.
_LEAST_AT_ONCE, _MOST_AT_ONCE, _AT_ONCE_BYTES = 1024, 65_536, 1 << 20


def dictionary_columns(rows: pa.Table, distinct: Collection[str] = ()) -> list[str]:
    """The leaf columns, as Parquet paths (`a.list.element`), that a dictionary makes smaller and faster to read.

    rows      the first that the file will hold; a sample of them decides
    distinct  columns in which hardly two rows have the same value, such as keys: they have none

    Arrow starts a dictionary for each column, and keeps what it has written of it when it outgrows its limit: keys and
    other columns of ever new values then cost a fifth more to write, and to read, than without. Nested columns, and
    all columns when there are no rows, keep theirs. Floating columns never have one: readers look a constant up in a
    dictionary by its bits, and leave out rows of -0.0 that are equal to 0.0.
    """
    sample = pa.array(np.arange(0, rows.num_rows, max(1, rows.num_rows // _SAMPLE)))
    return [
        path
        for field, column in zip(rows.schema, rows.columns, strict=True)
        for path, kind in _leaves(field)
        if field.name not in distinct
        and not types.is_floating(kind)
        and (types.is_nested(field.type) or _pays(column, sample))
    ]


def rows_at_once(rows: pa.Table) -> int:
    """How many rows a writer is to encode at a time: many cost less each, and fewer keep to the size of a page."""
    widest: int = max((column.nbytes for column in rows.columns), default=0) // max(1, rows.num_rows)
    return max(_LEAST_AT_ONCE, min(_MOST_AT_ONCE, _AT_ONCE_BYTES // max(1, widest)))


def statistics_columns(rows: pa.Table) -> list[str]:
    """The leaf columns, as Parquet paths, that get bounds and counts of nulls: all but those with NaN.

    rows  the first that the file will hold

    NaN is in no statistics of Parquet's, so a reader with another order than Parquet's leaves out rows that pass its
    filter: in Spark NaN is greater than any number. A column without statistics is to Hudi one of nulls alone, whose
    files its column statistics leave out. Arrow writes them for a column of the whole file or not at all.
    """
    names = [path for field in rows.schema for path, _ in _leaves(field)]
    floating = [field.name for field in rows.schema if any(types.is_floating(kind) for _, kind in _leaves(field))]
    without = {path for name in floating for chunk in rows.column(name).chunks for path in _with_nan(name, chunk)}
    return [name for name in names if name not in without]


def _with_nan(name: str, values: pa.Array) -> Iterator[str]:
    """The leaves with NaN among their values, as Parquet paths."""
    kind = values.type
    parts: list[tuple[str, str, pa.Array]] = []
    if types.is_struct(kind):
        parts = [(name, field.name, child) for field, child in zip(kind, values.flatten(), strict=True)]
    elif types.is_map(kind):
        parts = [(f"{name}.key_value", "key", values.keys), (f"{name}.key_value", "value", values.items)]
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        parts = [(f"{name}.list", "element", values.flatten())]
    elif types.is_floating(kind) and pc.any(pc.is_nan(values)).as_py():
        yield name
    for above, leaf, child in parts:
        yield from (f"{above}.{path}" for path in _with_nan(leaf, child))


def _pays(column: pa.ChunkedArray, positions: pa.Array) -> bool:
    """positions  of a sample"""
    rows = len(column)
    if types.is_dictionary(column.type):
        values = column.chunk(0).dictionary if column.num_chunks else pa.array([])
        return 2 * len(values) <= rows and values.nbytes <= _LIMIT
    sample = column.take(positions) if len(positions) < rows else column
    seen = len(sample) - sample.null_count
    if not seen:
        return True
    distinct = _distinct(pc.count_distinct(sample).as_py(), seen, rows)
    return 2 * distinct <= rows and distinct * sample.nbytes <= _LIMIT * len(sample)


def _distinct(values: int, seen: int, rows: int) -> float:
    """How many values a column has if `seen` of its rows, evenly spread, have `values`. At most `rows`.

    It is D, of values = D(1-e^(-seen/D)).
    """
    low, high = float(values), float(max(rows, values))
    if seen >= rows or high * -math.expm1(-seen / high) <= values:
        return low if seen >= rows else high
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if middle * -math.expm1(-seen / middle) < values else (low, middle)
    return high


def _leaves(field: pa.Field) -> Iterator[tuple[str, pa.DataType]]:
    kind = field.type
    if types.is_struct(kind):
        for child in kind:
            yield from ((f"{field.name}.{path}", leaf) for path, leaf in _leaves(child))
    elif types.is_map(kind):
        for name, child in (("key", kind.key_field), ("value", kind.item_field)):
            yield from ((f"{field.name}.key_value.{path}", leaf) for path, leaf in _leaves(child.with_name(name)))
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        yield from (
            (f"{field.name}.list.{path}", leaf) for path, leaf in _leaves(kind.value_field.with_name("element"))
        )
    else:
        yield field.name, kind
