"""Columns of Parquet files; damage and faults of the storage are different errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFile


def open_parquet(source: object, path: str, *, pre_buffer: bool = False, checked: bool = False) -> pq.ParquetFile:
    """The file as Parquet. Raises CorruptFile naming it; OSError of the storage.

    checked  compare the pages that are read with their checksums, where the writer stored some: rewrites do, so that no
             damage gets into a new file. It costs about a second for each 4 GB of the file
    """
    with damage_of(path):
        # Nanoseconds, pyarrow's choice for INT96, end in 2262.
        return pq.ParquetFile(
            source, coerce_int96_timestamp_unit="us", pre_buffer=pre_buffer, page_checksum_verification=checked
        )


def open_encoded(source: object, path: str, *, checked: bool = False) -> pq.ParquetFile:
    """As `open_parquet`; text of few values comes as a dictionary.

    Most of the time of reading such a column goes into writing its values out, row by row.
    """
    parquet = open_parquet(source, path, checked=checked)
    columns = list(_of_few_values(parquet.metadata))
    if not columns:
        return parquet
    with damage_of(path):
        return pq.ParquetFile(
            source,
            metadata=parquet.metadata,
            coerce_int96_timestamp_unit="us",
            read_dictionary=columns,
            page_checksum_verification=checked,
        )


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
