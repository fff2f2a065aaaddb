"""Which columns a row holds, where some rows hold some only: a column of bits beside the rows.

Bit i of a value is column i of the rows, the first the lowest of the first byte. Null stands for all columns: of rows
of base files, and of tombstones, which hold none but are taken whole.
"""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.formats.avro.bytes import from_numpy
from hoodie.merge.rows import Mask, Positions, as_array

#: The column of bits, the last of the rows. No column of a table has a dot in its name.
PRESENT = "hoodie.present"


def with_presence(schema: pa.Schema) -> pa.Schema:
    """The schema with the column of bits."""
    return schema.append(pa.field(PRESENT, pa.binary(-(-len(schema) // 8))))


def add_presence(
    columns: Sequence[pa.ChunkedArray], schema: pa.Schema, held: Collection[str] | None = None
) -> pa.Table:
    """Rows in a schema of `with_presence`.

    columns  of the schema, but for that of the bits; one at least
    held     names of the columns that the rows hold; None: all
    """
    kind, count = schema.field(PRESENT).type, len(columns[0])
    if held is None:
        present = pa.nulls(count, kind)
    else:
        bits = np.packbits([name in held for name in schema.names[:-1]], bitorder="little")
        present = from_numpy(np.tile(bits, (count, 1)), kind)
    return pa.Table.from_arrays([*columns, present], schema=schema)


def held_columns(rows: pa.Table) -> npt.NDArray[np.bool_]:
    """bool[columns, n]: which columns a row holds, that of the bits left out."""
    bits = np.unpackbits(_bytes(as_array(rows.column(PRESENT))), axis=1, bitorder="little")
    return bits[:, : rows.num_columns - 1].T.astype(np.bool_)


def held_by_either(older: pa.Table, newer: pa.Table) -> pa.Array:
    """The bits of rows that are made of two, row by row."""
    both = [as_array(rows.column(PRESENT)) for rows in (older, newer)]
    return from_numpy(_bytes(both[0]) | _bytes(both[1]), both[0].type)


def held_by_any(rows: pa.Table, starts: Positions) -> pa.Array:
    """The bits of rows that are made of several, which follow one another.

    starts  int64[...], rising: where the rows of each begin
    """
    present = as_array(rows.column(PRESENT))
    return from_numpy(np.bitwise_or.reduceat(_bytes(present), starts, axis=0), present.type)


def _bytes(present: pa.Array) -> npt.NDArray[np.uint8]:
    """uint8[n, bytes]; null is all ones."""
    width, count = present.type.byte_width, len(present)
    stored = np.frombuffer(present.buffers()[1], np.uint8, count * width, present.offset * width) if count else None
    values = np.zeros((0, width), np.uint8) if stored is None else stored.reshape(count, width).copy()
    absent: Mask = present.is_null().to_numpy(zero_copy_only=False)
    values[absent] = 0xFF
    return values
