"""A batch of Arrow rows that fits its table, and its rows with their keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import SchemaMismatch
from hoodie.keygen.arrow_keys import missing_columns, partition_path, record_key, require_order
from hoodie.keygen.keygen import KeyGenerator
from hoodie.model.meta import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hoodie.schema.conform import conform
from hoodie.schema.schema import stored_form, without_meta_fields
from hoodie.storage.protocol import Storage
from hoodie.table.overrides import completed
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, in_units_of, key_samples, table_keygen
from hoodie.writing.job import Checked, check, writable_state

#: Bytes of rows that are keyed at once.
_PART_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """The rows of a batch on their way to a table that they fit; they can be had once.

    source  the user's columns, as they came
    columns those that are written, in stored form; None: of a delete, which takes the keys alone
    keygen  makes record keys and partition paths; None: the rows have them, as reads give them
    zone    whose clocks `consistent_timestamps` of a key generator are of; "": this process's
    """

    source: pa.RecordBatchReader
    columns: pa.Schema | None
    keygen: KeyGenerator | None
    zone: str = ""

    @property
    def schema(self) -> pa.Schema:
        """Of `batches`."""
        keys = [pa.field(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH)]
        return pa.schema([*(self.columns or ()), *keys])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows with record key and partition path, in batches of bounded size.

        Raises SchemaMismatch on values that the table's types cannot hold, InvalidInput as key generators
        """
        for batch in self.source:
            step = max(1, len(batch) * _PART_BYTES // max(batch.nbytes, _PART_BYTES))
            for start in range(0, len(batch), step):
                yield from self._keyed(pa.Table.from_batches([batch.slice(start, step)])).to_batches()

    def _keyed(self, rows: pa.Table) -> pa.Table:
        if self.keygen is None:
            return rows.select([RECORD_KEY, PARTITION_PATH]).cast(self.schema)
        kept = [name for name in rows.schema.names if name not in META_COLUMNS]
        rows = rows.select(kept)
        if self.columns is not None:
            rows = conform(rows, self.columns)
        key = record_key(rows, self.keygen, self.zone).cast(pa.string())
        path = partition_path(rows, self.keygen, self.zone).cast(pa.string())
        columns = [] if self.columns is None else rows.columns
        return pa.Table.from_arrays([*columns, key, path], schema=self.schema)


def check_rows(
    storage: Storage,
    operation: WriteOperation,
    source: pa.RecordBatchReader,
    options: Options,
    new: TableState | None = None,
    zone: str = "",
) -> tuple[Checked, ArrowRows]:
    """See whether the table may be written and the batch fits it. No row is read yet.

    new     the table as it will be, when it is not made yet
    zone    as of `ArrowRows`
    Raises  InvalidInput, SchemaMismatch, InvalidOption, TableMismatch, UnsupportedTable
    """
    settings = Settings.read(options)
    state = completed(new or writable_state(storage, settings), options)
    keygen = table_keygen(state, key_samples(state))
    schema = without_meta_fields(source.schema)
    deleting = operation is WriteOperation.DELETE
    if not deleting:
        require_columns(schema, keygen, state.config.ordering, state.config.name)
    columns = None if deleting else stored_form(schema)
    checked = check(state, operation, columns, settings)
    if not deleting:
        return checked, ArrowRows(source, columns, in_units_of(keygen, checked.schema), zone)
    if {RECORD_KEY, PARTITION_PATH} <= set(source.schema.names):
        return checked, ArrowRows(source, None, None)
    if checked.index.is_global:  # the index says where the keys are
        keygen = replace(keygen, partition_fields=())
    require_columns(schema, keygen, (), state.config.name)
    return checked, ArrowRows(source, None, in_units_of(keygen, checked.schema), zone)


def require_columns(schema: pa.Schema, keygen: KeyGenerator, ordering: Sequence[str], table: str) -> None:
    """Refuse a batch without what keys, partition paths and ordering are made of.

    Raises SchemaMismatch naming all columns that are missing or there more than once, or an ordering column without an
           order
    """
    counts = Counter(name.lower() for name in schema.names)
    needed = [*keygen.record_keys, *(field.name for field in keygen.partition_fields), *ordering]
    problems = [
        f"column {name!r} occurs more than once (names differ in case only, or not at all)"
        for name in dict.fromkeys(path.partition(".")[0] for path in needed)
        if counts[name.lower()] > 1
    ]
    problems = missing_columns(schema, keygen, ordering) + problems
    if problems:
        raise SchemaMismatch(f"The batch does not fit table {table!r}: {'; '.join(problems)}.")
    for name in ordering:
        require_order(schema, name)
