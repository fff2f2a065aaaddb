"""Base files that Arrow tasks read: where Spark's own reader does not reach them, or would read other values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hoodie.model.files import BaseFile
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.reading.filters.predicate import ANY, Tests
from hoodie.reading.slices.reader import base_batches, numbered_batches
from hoodie.spark.read.merged_slices import packed_rows, task_bytes
from hoodie.spark.tasks import cores
from hoodie.storage.protocol import Storage

#: No part of a file is smaller: each reads the footer.
_LEAST_PART = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FilePart:
    """Bytes of a base file: the row groups that begin in them."""

    file: BaseFile
    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin


def file_rows(
    session: SparkSession,
    storage: Storage,
    schema: pa.Schema,
    files: Sequence[BaseFile],
    columns: Sequence[str],
    tests: Tests = ANY,
) -> DataFrame:
    """The rows of base files, read when an action asks for them.

    schema   all columns of the table
    columns  of the table, in the order wanted: no others are decoded. Spark does not tell a Python function which
             columns a query needs
    tests    row groups that cannot pass them by their statistics are not read
    """
    read_schema = pa.schema([schema.field(name) for name in list(columns) or schema.names[:1]])
    parts = file_parts(files, cores(session))
    rows = packed_rows(
        session, parts, lambda part: part.size, read_schema, partial(_batches, storage, read_schema, tests)
    )
    return rows if columns else rows.select()


def key_rows(
    session: SparkSession, storage: Storage, files: Sequence[BaseFile], file_id: str, position: str
) -> DataFrame:
    """The record keys and partition paths in base files, with the id of the file group that each is in, and the number
    of its row in the file.

    file_id, position  names of these columns
    """
    keys = pa.schema([(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH)])
    schema = pa.schema([*keys, (file_id, pa.string()), (position, pa.int64())])
    parts, read = file_parts(files, cores(session)), partial(_keys, storage, keys, schema)
    return packed_rows(session, parts, lambda part: part.size, schema, read)


def file_parts(files: Sequence[BaseFile], at_once: int) -> list[FilePart]:
    """The files in parts, so that tasks of about equal bytes can be made of them: one large file keeps all cores busy.

    at_once  tasks that run at the same time
    """
    most = max(_LEAST_PART, task_bytes([file.size for file in files], at_once))
    return [
        FilePart(file, begin, min(begin + most, file.size))
        for file in files
        for begin in range(0, max(1, file.size), most)
    ]


def _batches(storage: Storage, schema: pa.Schema, tests: Tests, part: FilePart) -> Iterator[pa.Table]:
    return base_batches(storage, part.file, schema, tests, _bytes(part))


def _bytes(part: FilePart) -> range | None:
    return None if part.size == part.file.size else range(part.begin, part.end)


def _keys(storage: Storage, keys: pa.Schema, schema: pa.Schema, part: FilePart) -> Iterator[pa.Table]:
    for start, rows in numbered_batches(storage, part.file, keys, _bytes(part)):
        ids = pa.repeat(part.file.group.file_id, rows.num_rows)
        numbers = pa.array(np.arange(start, start + rows.num_rows))
        yield pa.Table.from_arrays([*rows.columns, ids, numbers], schema=schema)
