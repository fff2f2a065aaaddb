"""Columns of Parquet files, with damage told from faults of the storage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFile


def open_parquet(source: object, path: str, *, pre_buffer: bool = False) -> pq.ParquetFile:
    """The file as Parquet. Raises CorruptFile naming it; OSError of the storage."""
    with damage_of(path):
        # Nanoseconds, pyarrow's choice for INT96, end in 2262.
        return pq.ParquetFile(source, coerce_int96_timestamp_unit="us", pre_buffer=pre_buffer)


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
    """Whether an error met while reading Parquet is the storage's. Arrow tells of damage by a bare OSError; a fault of
    the storage has a number or a class of its own."""
    return isinstance(problem, OSError) and (type(problem) is not OSError or problem.errno is not None)
