"""The rows of a scan as Spark puts them together, without Spark: base files but for the rows that logs replace, by
their positions, and the rows of the logs."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hoodie.model.files import FileSlice
from hoodie.model.meta import COMMIT_TIME
from hoodie.reading.scan import ScanPlan
from hoodie.reading.slices.reader import SliceReader, base_batches
from hoodie.reading.slices.slice_changes import SliceChanges


def rows_by_position(scan: ScanPlan) -> pa.Table:
    """The rows of a scan, in any order."""
    schema = pa.schema([scan.schema.field(name) for name in scan.read])
    parts = [pa.schema([field.with_nullable(True) for field in schema]).empty_table()]
    for slice_ in scan.slices:
        if scan.reader is not None and slice_.logs:
            parts += slice_by_position(scan.reader, slice_, scan.read)
        else:
            assert slice_.base is not None
            parts += base_batches(scan.state.storage, slice_.base, schema)
    rows = pa.concat_tables([part.cast(parts[0].schema) for part in parts])
    kept = scan.matching_rows(rows)
    return kept.select(list(scan.columns)).cast(pa.schema([scan.schema.field(name) for name in scan.columns]))


def slice_by_position(reader: SliceReader, slice_: FileSlice, columns: Sequence[str]) -> list[pa.Table]:
    """The rows of a slice with logs, in parts."""
    changes = SliceChanges(reader, slice_, columns)
    parts = list(changes.rows())
    again = SliceChanges(reader, slice_, ())
    assert again.positions().tolist() == changes.replaced.tolist()
    if slice_.base is not None:
        names = columns if reader.stored is None or COMMIT_TIME in columns else [*columns, COMMIT_TIME]
        target = pa.schema([reader.schema.field(name) for name in names])
        stored = pa.concat_tables([target.empty_table(), *base_batches(reader.storage, slice_.base, target)])
        stays = np.ones(stored.num_rows, np.bool_)
        stays[changes.replaced] = False
        stored = stored.filter(pa.array(stays))
        parts.append((stored if reader.stored is None else stored.filter(reader.stored)).select(list(columns)))
    return parts
