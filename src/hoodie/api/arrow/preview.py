"""What a notebook shows of a table and of rows: a line, and the first rows."""

from collections.abc import Iterator

import pyarrow as pa

from hoodie.config.options import Options
from hoodie.config.read import ReadSettings
from hoodie.display.summary import ResultSummary, ShownColumn, count_text, summary
from hoodie.errors import HoodieError
from hoodie.keygen.time_units import partition_names
from hoodie.model.meta import META_COLUMNS
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.reading.stream import count_rows, scan_batches
from hoodie.schema.python_values import python_values
from hoodie.schema.types import spark_name
from hoodie.storage.protocol import Storage, redacted_path
from hoodie.table.state import load_state

#: Rows that are shown of a table, and files up to which the footers of all are read for the number of its rows.
_ROWS, _FILES = 10, 100


def table_summary(storage: Storage, options: Options) -> ResultSummary:
    """Name, key, columns, number of rows, newest commit and first rows. For a table that cannot be read, the reason."""
    try:
        return _table_summary(storage, options)
    except HoodieError as problem:
        return summary(f"{redacted_path(storage.root)}: {problem}")


def _table_summary(storage: Storage, options: Options) -> ResultSummary:
    state = load_state(storage)
    settings = ReadSettings.read(options)
    scan = plan_read(state, Read(), settings)
    names = [name for name in scan.columns if name not in META_COLUMNS]
    commits, config = state.timeline.commits, state.config
    partitions = partition_names(config.partition_by, config.properties)
    parts = [
        f"{config.name}: {config.type}, key {', '.join(config.record_key)}",
        *([f"partitioned by {', '.join(partitions)}"] if partitions else []),
        *([f"ordered by {', '.join(config.ordering)}"] if config.ordering else []),
        count_text(len(names), "column"),
    ]
    if scan.log_slices or len(scan.slices) > _FILES:  # the number would cost reading them
        parts.append(f"{count_text(len(scan.base_files), 'base file')}, {count_text(len(scan.log_files), 'log file')}")
    else:
        parts.append(count_text(count_rows(scan), "row"))
    parts.append(f"newest commit {max(commit.requested for commit in commits)}" if commits else "no commit yet")
    shown = plan_read(state, Read(columns=names), settings) if names else None
    schema = pa.schema([scan.schema.field(name) for name in names])
    batches = iter(()) if shown is None else scan_batches(shown)
    return rows_summary(", ".join(parts), schema, batches)


def rows_summary(title: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> ResultSummary:
    """The first rows, below the names and types of their columns."""
    columns = [ShownColumn(f"{field.name} {spark_name(field.type)}") for field in schema]
    rows: list[list[str | None]] = []
    for batch in batches:
        first = map(python_values, batch.slice(0, _ROWS - len(rows)).columns)
        rows += [[None if cell is None else str(cell) for cell in row] for row in zip(*first, strict=True)]
        if len(rows) >= _ROWS:
            break
    return summary(title, columns, rows)
