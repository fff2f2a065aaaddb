"""Change data: what became of each row in a range of commits, with the row before and after, as Arrow.

Source: docs/format/cdc.md 4 and 5.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from hoodie.merge.row_changes import AFTER, BEFORE, OP
from hoodie.merge.rows import as_array
from hoodie.reading.changes.base import base_changes
from hoodie.reading.changes.data_plan import ChangeData, ChangeReader
from hoodie.reading.changes.json_text import json_text
from hoodie.reading.changes.log import log_changes
from hoodie.reading.filters.selection import Filters, RowFilter, check_columns, kept_rows, read_filter, selected_columns
from hoodie.view.change_data import ChangeStep


def change_data_batches(plan: ChangeData) -> Iterator[pa.RecordBatch]:
    """The rows of a read, file group by file group, in each in the order of the commits.

    Raises  CorruptFile, CorruptLogBlock; FileNotFoundError when a file was cleaned away meanwhile
    """
    for steps in plan.groups:
        for rows in group_changes(plan.reader, steps):
            yield from rows.to_batches()


@dataclass(frozen=True, slots=True, eq=False)
class SelectedChanges:
    """Which columns and rows of change data are wanted."""

    schema: pa.Schema
    keep: RowFilter | None = None

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The columns and rows wanted of batches that have all."""
        for batch in batches:
            yield kept_rows(batch, self.keep.expression if self.keep else None).select(self.schema.names)


def select_changes(
    schema: pa.Schema, columns: Sequence[str] | None = None, filters: Filters | None = None
) -> SelectedChanges:
    """Raises InvalidInput on an unknown column or a malformed filter.

    schema  of the change data; columns and filters are over it
    """
    names = selected_columns(columns, schema.names)
    rows = read_filter(filters, schema)
    check_columns([*names, *(rows.columns if rows else ())], schema)
    return SelectedChanges(pa.schema([schema.field(name) for name in names]), rows)


def group_changes(reader: ChangeReader, steps: Sequence[ChangeStep]) -> Iterator[pa.Table]:
    """What became of the rows of one file group, in the columns of `ChangeReader.schema`.

    steps  of the group, oldest first

    Held are the rows that the commits wrote to logs, and the stored rows of their keys; of a base file that is compared
    with the one before its keys and its changed rows.
    """
    for is_log, together in groupby(steps, lambda step: bool(step.logs)):
        if is_log:
            for instant, changes in log_changes(reader, list(together)):
                yield _in_read_columns(reader, instant, changes)
            continue
        for step in together:
            for changes in base_changes(reader, step):
                yield _in_read_columns(reader, step.instant, changes)


def _in_read_columns(reader: ChangeReader, instant: str, changes: pa.Table) -> pa.Table:
    """Changes in the columns of the read."""
    before, after = as_array(changes.column(BEFORE)), as_array(changes.column(AFTER))
    if reader.as_text:
        before, after = json_text(before), json_text(after)
    columns = [changes.column(OP), pa.repeat(instant, changes.num_rows), before, after]
    return pa.Table.from_arrays(columns, schema=reader.schema)
