"""The record keys that a base file holds, or that are made again from its columns where it stores none
(`hoodie.populate.meta.fields=false`)."""

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput, InvalidOption
from hoodie.formats.parquet.columns import open_parquet, read_columns
from hoodie.keygen.arrow_keys import record_key, type_at
from hoodie.keygen.keygen import KeyGenerator, Kind
from hoodie.model.meta import RECORD_KEY
from hoodie.storage.protocol import Storage


def keys_in(storage: Storage, path: str, size: int | None = None) -> pa.Array:
    """string[n], in the order of the file. size: in bytes, where it is known. Raises CorruptFile; FileNotFoundError."""
    with storage.open_input(path, size) as source:
        parquet = open_parquet(source, path)
        parts = [read_columns(parquet, group, [RECORD_KEY], path).column(0) for group in range(parquet.num_row_groups)]
    chunks = [chunk.cast(pa.string()) for part in parts for chunk in part.chunks]
    return pa.concat_arrays(chunks).drop_null() if chunks else pa.array([], pa.string())


_KINDS = (Kind.SIMPLE, Kind.COMPLEX, Kind.NON_PARTITION)


def record_key_arrow(table: pa.Table, keygen: KeyGenerator) -> pa.Array:
    """The record key of each row, as the key generator wrote it when the row came in.

    table    has the key columns, nested ones ("a.b") within structs
    returns  large_string[n], aligned with the table's rows, no nulls
    Raises   InvalidOption on a key generator that Hudi does not run without meta columns;
             SchemaMismatch naming a column that is missing or has no text form;
             InvalidInput where the one value, or all values of a compound key, are null or empty
    Source   Hudi 0.15's key generators; pinned by tests/vectors/keygen.json
    """
    if keygen.kind not in _KINDS or not keygen.record_keys:
        raise InvalidOption(
            f"{keygen.kind} key generator on {list(keygen.record_keys)}: record keys can only be computed with "
            f"{', '.join(_KINDS)}"
        )
    if keygen.consistent_timestamps:
        for name in keygen.record_keys:
            if (kind := type_at(table.schema, name)) is not None and pa.types.is_timestamp(kind):
                raise InvalidOption(f"key column {name!r}: timestamps as text depend on the zone of their writer")
    keys = record_key(table, keygen)
    if keys.null_count:
        first = pc.index(pc.is_null(keys), True).as_py()
        raise InvalidInput(
            f"{keys.null_count} of {table.num_rows} rows have no record key, the first at {first}: "
            f"{', '.join(keygen.record_keys)} must not be null or empty"
        )
    return keys
