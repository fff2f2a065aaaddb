"""Rows and deletes as a write hands them to the merge, for tests."""

import numpy as np
import pyarrow as pa

from hoodie.merge.base import Incoming, tombstones
from hoodie.merge.rows import as_array, as_table
from hoodie.model.meta import RECORD_KEY

#: Those that the payload classes look at, and some that they only carry.
PAYLOAD_COLUMNS = pa.schema(
    [
        ("ts", pa.int64()),
        ("v", pa.string()),
        ("n", pa.int32()),
        ("_hoodie_is_deleted", pa.bool_()),
        ("Op", pa.string()),
        ("_change_operation_type", pa.string()),
        ("_event_seq", pa.string()),
        ("_event_lsn", pa.int64()),
    ]
)


def incoming_rows(rows: pa.Table | pa.RecordBatch, keys: pa.Array | pa.ChunkedArray | None = None) -> Incoming:
    """Rows to be written, by their column `_hoodie_record_key` or, on tables without it, the keys given."""
    table = as_table(rows).combine_chunks()  # each batch of stored rows takes some: quick from one piece only
    return Incoming(table, as_array(table.column(RECORD_KEY) if keys is None else keys))


def incoming_deletes(
    keys: pa.Array | pa.ChunkedArray, schema: pa.Schema, partitions: pa.Array | pa.ChunkedArray | None = None
) -> Incoming:
    """Tombstones of the keys: the delete operation, which takes rows away whatever their ordering value."""
    deleted_keys = as_array(keys)
    rows = tombstones(deleted_keys, schema, partitions)
    return Incoming(rows, deleted_keys, np.ones(len(deleted_keys), np.bool_))
