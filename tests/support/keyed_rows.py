"""Rows with their keys, as readers have them."""

import pyarrow as pa

from hoodie.keygen.arrow_keys import partition_path, record_key
from hoodie.keygen.keygen import KeyGenerator
from hoodie.model.meta import META_COLUMNS, PARTITION_PATH, RECORD_KEY


def keyed(rows: pa.Table, keygen: KeyGenerator) -> pa.Table:
    """The user's columns, then record key and partition path. Rows that have both and nothing else stay as they are.

    Raises SchemaMismatch, InvalidInput as key generators
    """
    if {RECORD_KEY, PARTITION_PATH} == set(rows.column_names):
        return rows
    rows = rows.drop_columns([name for name in META_COLUMNS if name in rows.column_names])
    key, path = record_key(rows, keygen).cast(pa.string()), partition_path(rows, keygen).cast(pa.string())
    return rows.append_column(RECORD_KEY, key).append_column(PARTITION_PATH, path)
