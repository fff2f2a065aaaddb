"""What a table is and how large, as a value to look at."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from hoodie.config.read import ReadSettings
from hoodie.keygen.time_units import partition_names
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.schema.schema import without_meta_fields
from hoodie.schema.types import spark_name
from hoodie.table.state import TableState


@dataclass(frozen=True, slots=True)
class TableDetail:
    """A table as it is now. Files and bytes are those that a snapshot reads; older versions are not among them.

    schema        the user's columns
    version       of the format: hoodie.table.version
    ordering      columns that tell the newer of two versions of a row
    commits       completed ones of the active timeline; archived ones are not counted
    last_commit   instant; "" without one
    pending       instants that are not completed, oldest first
    properties    hoodie.properties as it stands
    """

    name: str
    path: str
    table_type: str
    version: int
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: tuple[str, ...]
    schema: pa.Schema
    partitions: int
    base_files: int
    log_files: int
    bytes: int
    commits: int
    first_commit: str
    last_commit: str
    pending: tuple[str, ...]
    properties: Mapping[str, str]

    def __repr__(self) -> str:
        return f"TableDetail({self.name!r}, {self.table_type}, {self.base_files} base files, {self.bytes} bytes)"

    def __str__(self) -> str:
        columns = ", ".join(f"{field.name} {spark_name(field.type)}" for field in self.schema)
        return "\n".join(
            [
                f"{self.name}: {self.table_type}, table version {self.version}, at {self.path}",
                f"key {', '.join(self.record_key) or 'none'}; "
                f"partitioned by {', '.join(self.partition_by) or 'nothing'}; "
                f"ordered by {', '.join(self.ordering) or 'nothing'}",
                f"columns: {columns}",
                f"{self.partitions} partitions, {self.base_files} base files, {self.log_files} log files, "
                f"{self.bytes} bytes",
                f"{self.commits} commits, the last at {self.last_commit or 'none'}; {len(self.pending)} pending",
            ]
        )


def detail(state: TableState, reading: ReadSettings) -> TableDetail:
    """The table of a state. All partitions are listed. Raises as `plan_read`."""
    scan = plan_read(state, Read(), reading)
    state, config = scan.state, scan.state.config
    commits = [instant.requested for instant in state.timeline.commits]
    return TableDetail(
        config.name,
        state.storage.root,
        str(config.type.value),
        config.version,
        config.record_key,
        partition_names(config.partition_by, config.properties),
        config.ordering,
        without_meta_fields(scan.schema),
        len(scan.partitions),
        len(scan.base_files),
        len(scan.log_files),
        scan.bytes,
        len(commits),
        commits[0] if commits else "",
        commits[-1] if commits else "",
        tuple(instant.requested for instant in state.timeline.pending()),
        dict(config.properties),
    )
