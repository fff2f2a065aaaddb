"""Tables whose columns Hudi has altered with schema-on-read: how files of each version have the columns of now.

Hudi reads a file by the version that the commit of its instant names, else by the newest one up to the instant; columns
are matched by their ids. Source: docs/format/table-and-timeline.md (`.hoodie/.schema`), tests/fixtures/schema_on_read.
"""

from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa

from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile
from hoodie.formats.timeline.internal_schema import (
    LATEST_SCHEMA,
    SCHEMA_COMMIT,
    SCHEMA_FOLDER,
    InternalSchema,
    Kind,
    Repeated,
    SchemaRecord,
    decode_history,
    decode_version,
)
from hoodie.model.commit import CommitMetadata
from hoodie.model.instant import Instant
from hoodie.schema.conform import FileColumn, with_column_history
from hoodie.storage.protocol import Storage
from hoodie.timeline.load import read_commit, with_history
from hoodie.timeline.timeline import Timeline


def with_columns_written(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    instant: Instant,
    commit: CommitMetadata,
    schema: pa.Schema,
) -> pa.Schema:
    """The columns that a commit declares, each with how older files have it.

    Nothing is read unless the table was altered.

    schema  the user's columns, by the commit's own schema
    Raises  CorruptFile; also when the table's history of columns is missing: files would be read as nulls
    """
    text = commit.extra.get(LATEST_SCHEMA)
    if not text:
        return schema
    now = decode_version(text, timeline.path(instant))
    path = history_path(storage, config, timeline, now.version)
    versions = decode_history(storage.read(path), path)  # oldest first
    if len(versions) == 1:
        return schema
    exceptions = _exceptions(storage, timeline, versions)
    columns = {column.name: column for column in now.record.columns}
    fields = []
    for field in schema:
        column = columns.get(field.name)
        if column is not None:
            written = [
                (schema.version, _written(column.id, column.kind, field.name, schema.record)) for schema in versions
            ]
            field = with_column_history(field, _changes(written), exceptions)
        fields.append(field)
    return pa.schema(fields)


def history_path(storage: Storage, config: TableConfig, timeline: Timeline, version: int) -> str:
    """The newest file with the versions of a table's columns that no failed write left behind.

    version  of the columns now
    Raises   CorruptFile when there is none
    """
    try:
        names = [entry.name for entry in storage.list(SCHEMA_FOLDER)]
    except FileNotFoundError:
        names = []
    instants = [name.removesuffix(SCHEMA_COMMIT) for name in names if name.endswith(SCHEMA_COMMIT)]
    visible = with_history(storage, config, timeline, instants).visible()
    completed = [instant for instant in instants if visible.committed(instant)]
    if not completed:
        problem = f"the table's columns were altered (version {version}), and no history of them is there"
        raise CorruptFile(SCHEMA_FOLDER, problem, None, "Restore the folder from a copy of the table.")
    return f"{SCHEMA_FOLDER}/{max(completed)}{SCHEMA_COMMIT}"


def _exceptions(storage: Storage, timeline: Timeline, versions: Sequence[InternalSchema]) -> dict[str, int]:
    """The instants whose commit names another version than the newest one up to the instant: it began before an ALTER
    that was completed first, as a compaction that was planned before it."""
    numbers = [schema.version for schema in versions]
    exceptions = {}
    for instant in timeline.commits:
        with suppress(FileNotFoundError):  # archived meanwhile: the history has it
            text = read_commit(storage, timeline, instant).extra.get(LATEST_SCHEMA)
            if text:
                own = decode_version(text, timeline.path(instant)).version
                if own != max((number for number in numbers if number <= int(instant.requested)), default=0):
                    exceptions[instant.requested] = own
    return exceptions


def _written(id_: int, kind: Kind, name: str, then: SchemaRecord) -> FileColumn | None:
    """How files whose columns were `then` have a column; None: as it is now, or not at all, as their columns tell."""
    old = next((column for column in then.columns if column.id == id_), None)
    if old is None:
        return FileColumn(None) if any(column.name == name for column in then.columns) else None
    return _differing(kind, old.kind, old.name, name)


def _differing(now: Kind, then: Kind, old_name: str, name: str) -> FileColumn | None:
    if isinstance(now, SchemaRecord) and isinstance(then, SchemaRecord):
        children = ((child.name, _written(child.id, child.kind, child.name, then)) for child in now.columns)
        fields = {child: written for child, written in children if written is not None}
        return FileColumn(old_name, fields=fields) if fields or old_name != name else None
    if isinstance(now, Repeated) and isinstance(then, Repeated):
        item = _differing(now.item, then.item, "", "")
        return FileColumn(old_name, item=item) if item is not None or old_name != name else None
    retyped = now != then
    return FileColumn(old_name, retyped) if retyped or old_name != name else None


def _changes(history: Sequence[tuple[int, FileColumn | None]]) -> list[tuple[int, FileColumn | None]]:
    """The versions that differ from the one before."""
    return [part for at, part in enumerate(history) if at == 0 or part[1] != history[at - 1][1]]
