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
    decode_history,
    decode_version,
)
from hoodie.model.commit import CommitMetadata
from hoodie.model.instant import Instant
from hoodie.schema.by_id import Node
from hoodie.schema.conform import FileColumn, with_column_history
from hoodie.storage.protocol import Storage
from hoodie.timeline.completions import with_history
from hoodie.timeline.load import read_commit
from hoodie.timeline.timeline import Timeline

_RESTORE = f"Restore {SCHEMA_FOLDER} from a copy of the table."


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
    Raises  CorruptFile; also when the table's history of columns, or its newest file, is missing: files would be read
            as nulls
    """
    text = commit.extra.get(LATEST_SCHEMA)
    if not text:
        return schema
    now = decode_version(text, timeline.path(instant))
    path = history_path(storage, config, timeline, now["version_id"])
    versions = decode_history(storage.read(path), path)  # oldest first
    if now["version_id"] not in {version["version_id"] for version in versions}:
        problem = f"it lacks version {now['version_id']} of the columns, which {timeline.path(instant)} names"
        raise CorruptFile(path, problem, None, _RESTORE)
    if len(versions) == 1:
        return schema
    exceptions = _exceptions(storage, timeline, versions)
    columns = {column["name"]: column for column in now["fields"]}
    fields = []
    for field in schema:
        column = columns.get(field.name)
        if column is not None:
            written = [(version["version_id"], _written_column(column, version)) for version in versions]
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
    files = {name.removesuffix(SCHEMA_COMMIT).partition("_")[0]: name for name in names if name.endswith(SCHEMA_COMMIT)}
    visible = with_history(storage, config, timeline, list(files), rows=False).visible()
    completed = [instant for instant in files if visible.committed(instant)]
    if not completed:
        problem = f"the table's columns were altered (version {version}), and no history of them is there"
        raise CorruptFile(SCHEMA_FOLDER, problem, None, _RESTORE)
    return f"{SCHEMA_FOLDER}/{files[max(completed)]}"


def _exceptions(storage: Storage, timeline: Timeline, versions: Sequence[Node]) -> dict[str, int]:
    """The instants whose commit names another version than the newest one up to the instant: it began before an ALTER
    that was completed first, as a compaction that was planned before it."""
    numbers = [version["version_id"] for version in versions]
    exceptions = {}
    for instant in timeline.commits:
        with suppress(FileNotFoundError):  # archived meanwhile: the history has it
            text = read_commit(storage, timeline, instant).extra.get(LATEST_SCHEMA)
            if text:
                own = decode_version(text, timeline.path(instant))["version_id"]
                if own != max((number for number in numbers if number <= int(instant.requested)), default=0):
                    exceptions[instant.requested] = own
    return exceptions


def _written_column(column: Node, then: Node) -> FileColumn | None:
    """How files whose columns were those of `then`, a version or a struct, have a column; None: as it is now, or not at
    all, as their columns tell."""
    old = next((other for other in then["fields"] if other["id"] == column["id"]), None)
    if old is None:
        return FileColumn(None) if any(other["name"] == column["name"] for other in then["fields"]) else None
    return _differing(column["type"], old["type"], old["name"], column["name"])


def _differing(now: str | Node, then: str | Node, old_name: str, name: str) -> FileColumn | None:
    renamed = old_name != name
    if isinstance(now, str) or isinstance(then, str):
        return FileColumn(old_name, now != then) if now != then or renamed else None
    if now["type"] == then["type"] == "record":
        children = ((child["name"], _written_column(child, then)) for child in now["fields"])
        fields = {child: written for child, written in children if written is not None}
        return FileColumn(old_name, fields=fields) if fields or renamed else None
    if "record" in (now["type"], then["type"]):
        return FileColumn(old_name, True)
    item = _differing(_item(now), _item(then), "", "")
    return FileColumn(old_name, item=item) if item is not None or renamed else None


def _item(repeated: Node) -> str | Node:
    """The type of a list's elements, or of a map's values."""
    item: str | Node = repeated["element" if repeated["type"] == "array" else "value"]
    return item


def _changes(history: Sequence[tuple[int, FileColumn | None]]) -> list[tuple[int, FileColumn | None]]:
    """The versions that differ from the one before."""
    return [part for at, part in enumerate(history) if at == 0 or part[1] != history[at - 1][1]]
