"""The right types of the columns of base files and log blocks, with a warning where witnesses contradict each other."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import ContradictoryTimestamps
from hoodie.formats.avro.schema import from_avro
from hoodie.formats.log.blocks import BlockKind, LogBlock
from hoodie.formats.parquet.columns import open_parquet
from hoodie.formats.parquet.stored_types import (
    Contradiction,
    StoredTypes,
    avro_witness,
    in_doubt,
    stored_types,
    types_of_file,
)
from hoodie.model.files import BaseFile
from hoodie.model.instant import Instant
from hoodie.reading.slices.file_columns import FileColumns
from hoodie.schema.schema import ALSO_TEXT, GROWN
from hoodie.schema.written import written_columns
from hoodie.storage.protocol import Storage
from hoodie.storage.together import in_threads
from hoodie.table.state import TableState
from hoodie.timeline.load import read_commit

#: What footers said, by table, file, size and columns: base files never change. A few hundred bytes each.
_known: dict[tuple[str, str, int, bytes], StoredTypes] = {}
_MOST_KNOWN = 100_000


def base_columns(storage: Storage, parquet: pq.ParquetFile, schema: pa.Schema, instant: str) -> FileColumns:
    """How the rows of a base file are to be read in columns of the table.

    instant  that wrote the file
    Warns    ContradictoryTimestamps
    """
    columns = columns_at(schema, instant)
    types = types_of_file(parquet, _as_written(schema, columns))
    warn_of(storage.root, types.contradictions)
    return replace(columns, types=types)


def block_columns(
    storage: Storage, block: LogBlock, rows: pa.Table, schema: pa.Schema, columns: FileColumns
) -> FileColumns:
    """As `base_columns`, of the rows of a data block. The schema in its header is the rows' own, or a further witness.

    columns  where they are in the block (`columns_at`)
    """
    header = block.header.schema if block.kind is BlockKind.PARQUET_DATA else None
    types = stored_types(rows.schema, _as_written(schema, columns), *avro_witness(header or ""))
    warn_of(storage.root, types.contradictions)
    return replace(columns, types=types)


def columns_at(schema: pa.Schema, instant: str, *, in_log: bool = False) -> FileColumns:
    """Where the columns of a table are in what an instant wrote; nothing of their labels."""
    written = written_columns(schema, instant)
    return FileColumns(written=written, kinds={name: schema.field(name).type for name in written}, in_log=in_log)


def _as_written(schema: pa.Schema, columns: FileColumns) -> pa.Schema:
    """The columns whose labels are looked at: not those that the file has under another name or type."""
    return schema if not columns.written else pa.schema([c for c in schema if c.name not in columns.written])


def warn_of(table: str, contradictions: Iterable[Contradiction]) -> None:
    """One warning for each. It does not name the file: the same one of many files is shown once."""
    for found in contradictions:
        warning = ContradictoryTimestamps(table, found.column, found.table, found.file, found.avro, found.taken)
        warnings.warn(warning, stacklevel=4)


def mislabelled(
    state: TableState, files: Sequence[BaseFile], schema: pa.Schema, columns: Collection[str]
) -> frozenset[BaseFile]:
    """Those of some base files that a reader of Parquet, as Spark's own, would read as other values, or not at all:
    wrong labels, and columns that were altered since.

    schema   all columns of the table
    columns  those that are read
    Warns    ContradictoryTimestamps

    Costs nothing where the commits leave no doubt: for the types that Spark's writers make. Where a column in question
    is in milliseconds, or a local timestamp of another writer's, the footers of the files are read, by threads, and
    remembered by this process. Where it is a number that the key generator prints as a time, one commit is read for
    each instant among the files, and footers only of those whose commit declares another type, or is archived.
    """
    asked = [column for column in schema if column.name in columns]
    wanted = pa.schema(asked)
    altered = frozenset(file for file in files if written_columns(wanted, file.instant))
    suspects = list(files) if any(map(in_doubt, asked)) else _suspects(state, files, asked)
    suspects = [file for file in suspects if file not in altered]
    if not suspects:
        return altered
    key = schema.serialize().to_pybytes()
    found = in_threads(partial(_types_of, state.storage, schema, key), suspects)
    noted = dict.fromkeys(note for types in found for note in types.contradictions)
    warn_of(state.storage.root, (note for note in noted if note.column.partition(".")[0] in columns))
    return altered | frozenset(
        file
        for file, types in zip(suspects, found, strict=True)
        if any(name in columns for name in (*types.types, *types.text, *types.finer))
    )


def _suspects(state: TableState, files: Sequence[BaseFile], columns: Sequence[pa.Field]) -> list[BaseFile]:
    """Files that may hold a column of numbers as text, or one that has grown as it was, as their commits have it."""
    marks = (ALSO_TEXT, GROWN)
    kinds = {c.name: c.type for c in columns if any(mark in (c.metadata or {}) for mark in marks)}
    if not kinds:
        return []
    wanted = {file.instant for file in files}
    instants = [instant for instant in state.timeline.commits if instant.requested in wanted]
    if not instants:
        return list(files)
    clear = set(in_threads(partial(_declares, state, kinds), instants))
    return [file for file in files if file.instant not in clear]


def _declares(state: TableState, kinds: Mapping[str, pa.DataType], instant: Instant) -> str:
    """The instant if its commit declares the columns so, "" otherwise."""
    try:
        text = read_commit(state.storage, state.timeline, instant).schema
    except FileNotFoundError:  # archived meanwhile
        return ""
    schema = from_avro(text, state.timeline.path(instant)) if text else pa.schema([])
    same = all(name in schema.names and schema.field(name).type == kind for name, kind in kinds.items())
    return instant.requested if same else ""


def _types_of(storage: Storage, schema: pa.Schema, key: bytes, file: BaseFile) -> StoredTypes:
    place = (storage.root, file.path, file.size, key)
    found = _known.get(place)
    if found is None:
        with storage.open_listed(file.path, file.size) as source:
            found = types_of_file(open_parquet(source, file.path), schema)
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[place] = found
    return found
