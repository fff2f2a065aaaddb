"""The record keys that a base file holds."""

from __future__ import annotations

import pyarrow as pa

from hoodie.formats.parquet.columns import open_parquet, read_columns
from hoodie.model.meta import RECORD_KEY
from hoodie.storage.protocol import Storage


def keys_in(storage: Storage, path: str, size: int | None = None) -> pa.Array:
    """string[n], in the order of the file. size: in bytes, where it is known. Raises CorruptFile; FileNotFoundError."""
    with storage.open_listed(path, size) as source:
        parquet = open_parquet(source, path)
        parts = [read_columns(parquet, group, [RECORD_KEY], path).column(0) for group in range(parquet.num_row_groups)]
    chunks = [chunk.cast(pa.string()) for part in parts for chunk in part.chunks]
    return pa.concat_arrays(chunks).drop_null() if chunks else pa.array([], pa.string())
