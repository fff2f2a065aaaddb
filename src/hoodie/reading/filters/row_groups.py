"""Which row groups of a base file a filter can find rows in, by the statistics in its footer."""

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.reading.filters.predicate import ANY, Bounds, Tests, may_pass, widened_bounds
from hoodie.reading.slices.column_types import FileColumns


def row_groups(
    parquet: pq.ParquetFile, target: pa.Schema, types: FileColumns, tests: Tests, part: range | None = None
) -> list[int]:
    """The numbers of the row groups to read.

    target  the table's columns: a statistic counts only where the file's column has the type of the table's
    types   how the file's values differ from their labels: where they do, no statistic counts
    part    bytes of the file in which they begin; None: anywhere
    """
    every = [group for group in range(parquet.num_row_groups) if part is None or _begin(parquet, group) in part]
    if tests == ANY or types:
        return every
    stored = parquet.schema_arrow
    places = {parquet.schema.column(at).path: at for at in range(len(parquet.schema))}

    def bounds_in(group: int, name: str) -> Bounds | None:
        at, field = places.get(name), target.get_field_index(name)
        if at is None or field < 0 or stored.field(name).type != target.field(field).type:
            return None
        statistics = parquet.metadata.row_group(group).column(at).statistics
        if statistics is None:
            return None
        nulls = statistics.null_count if statistics.has_null_count else None
        if not statistics.has_min_max:
            return Bounds(nulls=nulls)
        try:
            low, high = statistics.min, statistics.max
        except (OverflowError, ValueError):  # a date or time beyond Python's calendar
            return Bounds(nulls=nulls)
        if low != low or high != high:  # NaN, in files of writers that count it
            return Bounds(nulls=nulls)
        kind = target.field(field).type
        if pa.types.is_floating(kind):
            return Bounds(*widened_bounds(low, high, kind), nulls, exact=False)
        return Bounds(low, high, nulls)

    return [group for group in every if may_pass(tests, lambda name, group=group: bounds_in(group, name))]  # type: ignore[misc]


def fetched_together(
    parquet: pq.ParquetFile, groups: Sequence[int], columns: Collection[str], most: int
) -> Iterator[list[int]]:
    """The row groups in runs of about `most` bytes of the columns: a run is fetched whole, with few requests.

    columns  names of top-level columns
    """
    names = set(columns)
    places = [at for at in range(len(parquet.schema)) if parquet.schema.column(at).path.partition(".")[0] in names]
    run: list[int] = []
    size = 0
    for group in groups:
        metadata = parquet.metadata.row_group(group)
        bytes_ = sum(metadata.column(at).total_compressed_size for at in places)
        if run and size + bytes_ > most:
            yield run
            run, size = [], 0
        run.append(group)
        size += bytes_
    if run:
        yield run


def _begin(parquet: pq.ParquetFile, group: int) -> int:
    """Where a row group's bytes begin: with the pages of its first column."""
    first = parquet.metadata.row_group(group).column(0)
    dictionary, data = first.dictionary_page_offset or 0, first.data_page_offset
    return int(dictionary if 0 < dictionary < data else data)
