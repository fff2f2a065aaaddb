"""Keys of Arrow rows looked up in a table, by threads of this process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.api.arrow.rows import Rows
from hoodie.api.engine import KeyedRows
from hoodie.api.inputs import arrow_stream
from hoodie.config.options import Options
from hoodie.errors import SchemaMismatch, UnsupportedTable
from hoodie.keygen.arrow_keys import RowKeys, in_units_of, type_at
from hoodie.keygen.keygen import KeyGenerator, lacking_columns, refuse_lacking
from hoodie.lookup.context import LookupContext, lookup_for_read
from hoodie.lookup.point_read import LocatedKeys, held, locate_keys, read_rows, reader_for
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.reading.filters.selection import check_columns, selected_columns
from hoodie.reading.table_schema import read_schema
from hoodie.schema.schema import every_column, without_meta_fields
from hoodie.storage.protocol import Storage
from hoodie.table.create import with_write_options
from hoodie.table.settings import Settings
from hoodie.table.state import load_state, writer_keygen
from hoodie.writing.batch.arrow import ArrowRows, brought_columns, check_keys, peeked
from hoodie.writing.batch.memory import thread_pool

#: The file group that a key is in, and the base instant of its file slice.
_FILE_ID = "_hoodie_file_id"
INSTANT = "_hoodie_instant_time"


@dataclass(frozen=True, slots=True)
class ArrowKeys:
    """Asks a table about keys: `HoodieReadClient` without a session. A batch is held in memory."""

    storage: Storage
    options: Options

    def read(self, keys: Any, columns: Sequence[str] | None = None, meta: bool = True) -> KeyedRows[Rows]:
        context, settings = self._context()
        schema = read_schema(context.state)
        requested_columns = list(selected_columns(columns, every_column(schema, meta)))
        check_columns(requested_columns, schema)
        keyed_rows = keyed_arrow_rows(context, arrow_stream(keys))
        with thread_pool(settings) as pool:
            places = locate_keys(context, keyed_rows, pool)
            reader = reader_for(context.state, schema, places.slices.values(), settings.reading)
            # Without any column the number of rows would be lost.
            read = list(dict.fromkeys(requested_columns)) or [RECORD_KEY]
            rows, stats = read_rows(places, self.storage, schema, read, reader, pool)
        return KeyedRows(Rows.of_table(rows.select(requested_columns)), stats)

    def filter_exists(self, rows: Any) -> Rows:
        context, settings = self._context()
        batch = _without_views(arrow_stream(rows).read_all())
        schema = read_schema(context.state)
        with thread_pool(settings) as pool:
            places = locate_keys(context, _with_keys(batch, context), pool)
            reader = reader_for(context.state, schema, places.slices.values(), settings.reading)
            new = ~held(places, self.storage, reader, pool)
        return Rows.of_table(places.batch.rows.filter(pa.array(new)).select(batch.schema.names))

    def tag_location(self, rows: Any) -> Rows:
        context, settings = self._context()
        batch = _without_views(arrow_stream(rows).read_all())
        names = list(dict.fromkeys([*batch.schema.names, RECORD_KEY, PARTITION_PATH]))
        if taken := {_FILE_ID, INSTANT} & set(names):
            raise SchemaMismatch(f"columns {sorted(taken)} are there already: drop them")
        with thread_pool(settings) as pool:
            places = locate_keys(context, _with_keys(batch, context), pool)
        return Rows.of_table(located_rows(places).select([*names, _FILE_ID, INSTANT]))

    def _context(self) -> tuple[LookupContext, Settings]:
        settings = Settings.read(self.options)
        return key_lookup(self.storage, settings, self.options), settings


def key_lookup(storage: Storage, settings: Settings, options: Options) -> LookupContext:
    """The table as it is now, and its index. Raises UnsupportedTable when it stores no record keys."""
    state = with_write_options(load_state(storage), options)
    if not state.config.meta_fields:
        raise UnsupportedTable(
            f"{state.config.name} stores no record keys (hoodie.populate.meta.fields=false): filter its rows"
        )
    return lookup_for_read(state, settings)


def keyed_arrow_rows(context: LookupContext, source: pa.RecordBatchReader) -> pa.Table:
    """Record key and partition path of each row, in the order of the rows.

    Raises SchemaMismatch naming columns that are missing; InvalidInput on rows without a key
    """
    if {RECORD_KEY, PARTITION_PATH} <= set(source.schema.names):
        rows = ArrowRows(source, None, RowKeys((), None))
    else:
        schema = without_meta_fields(source.schema)
        keygen = keygen_of(context, schema.names, lambda name: type_at(schema, name) is not None)
        first, source = peeked(source)
        brought = brought_columns(context.schema, schema, first, context.state.config.pinned_columns)
        rows = ArrowRows(source, None, RowKeys((), keygen), brought=brought)
    keys = pa.Table.from_batches(rows.batches(), rows.schema)
    check_keys(keys, context.state.config)
    return keys


def keygen_of(context: LookupContext, names: Sequence[str], has: Callable[[str], bool]) -> KeyGenerator:
    """What makes the keys of rows that a table is asked about; names, has: as of `lacking_columns`.

    Raises SchemaMismatch naming columns that are missing. A global index does not look at the partition path
    """
    state = context.state
    keygen = in_units_of(writer_keygen(state), context.schema)
    if keygen.makes_new_keys:
        raise SchemaMismatch(
            f"{state.config.name} has no record key: its rows are named by {RECORD_KEY} and {PARTITION_PATH}, as reads "
            "with meta=True have them"
        )
    unpartitioned = replace(keygen, partition_fields=())
    refuse_lacking(names, has, unpartitioned, (), state.config.name)
    lacking = lacking_columns(names, has, replace(keygen, record_keys=()))
    if lacking and not context.index.is_global:
        raise SchemaMismatch(
            f"The keys do not fit table {state.config.name!r}: {'; '.join(lacking)}. The index "
            f"{context.index.name} finds a key within its partition only: add the column, take {RECORD_KEY} and "
            f"{PARTITION_PATH} as reads with meta=True have them, or name the rows by a condition "
            "(scan(filters=…), delete(where=…))."
        )
    return unpartitioned if lacking else keygen


def located_rows(places: LocatedKeys) -> pa.Table:
    """The rows of a batch, each with its places: file id and base instant, and the place's partition path."""
    located = places.located
    new = np.flatnonzero(located.inserts(len(places.batch.rows)))
    rows = places.batch.rows.take(pa.array(np.concatenate([located.rows, new])))
    groups = pa.array(
        np.concatenate([located.groups, np.zeros_like(new)]), mask=np.arange(len(rows)) >= len(located.rows)
    )
    instants = [slice_.base_instant if (slice_ := places.slices.get(place)) else None for place in located.places]

    def column(values: Sequence[str | None]) -> pa.Array:
        return pa.array(values or [None], pa.string()).take(groups)

    own = rows.column(PARTITION_PATH)
    path = pc.coalesce(column([place.partition for place in located.places]), own)
    rows = rows.set_column(rows.schema.get_field_index(PARTITION_PATH), PARTITION_PATH, path)
    rows = rows.append_column(_FILE_ID, column([place.file_id for place in located.places]))
    return rows.append_column(INSTANT, column(instants))


def _with_keys(batch: pa.Table, context: LookupContext) -> pa.Table:
    """The rows as they came, then record key and partition path; columns of these names are taken as they are."""
    keys = keyed_arrow_rows(context, batch.to_reader())
    others = [name for name in batch.schema.names if name not in (RECORD_KEY, PARTITION_PATH)]
    return pa.Table.from_arrays([*batch.select(others).columns, *keys.columns], [*others, *keys.schema.names])


def _without_views(rows: pa.Table) -> pa.Table:
    """The rows with views as text or bytes: Arrow has no kernel yet that takes some rows of a view, as Polars has."""
    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return rows.cast(pa.schema([field.with_type(plain.get(field.type, field.type)) for field in rows.schema]))
