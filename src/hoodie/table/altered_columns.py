"""Tables whose columns Hudi has altered with schema-on-read: how files of each version have the columns of now.

Hudi reads a file by the version that the commit of its instant names, else by the newest one up to the instant; columns
are matched by their ids. Source: docs/format/table-and-timeline.md (`.hoodie/.schema`), tests/fixtures/schema_on_read.
"""

from collections.abc import Sequence
from contextlib import suppress

import pyarrow as pa

from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile
from hoodie.formats.avro.schema import user_columns
from hoodie.formats.timeline.internal_schema import (
    LATEST_SCHEMA,
    SCHEMA_COMMIT,
    SCHEMA_FOLDER,
    decode_history,
    decode_version,
)
from hoodie.model.commit import CommitMetadata
from hoodie.model.instant import Instant
from hoodie.schema.by_id import Node, first_version
from hoodie.schema.conform import FileColumn, with_column_history
from hoodie.storage.protocol import Storage
from hoodie.timeline.completions import with_history
from hoodie.timeline.load import read_commit
from hoodie.timeline.timeline import Timeline

_RESTORE = f"Restore {SCHEMA_FOLDER} from a copy of the table; or `hoodie check --repair` writes it anew, if it can."


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
    try:
        versions = decode_history(storage.read(path), path)  # oldest first
    except CorruptFile as damage:
        raise CorruptFile(path, damage.problem, None, _RESTORE) from damage
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
    files = _history_files(storage, config, timeline)
    if not files:
        problem = f"the table's columns were altered (version {version}), and no history of them is there"
        raise CorruptFile(SCHEMA_FOLDER, problem, None, _RESTORE)
    return files[max(files)]


def _history_files(storage: Storage, config: TableConfig, timeline: Timeline) -> dict[str, str]:
    """Paths of the files with versions that no failed write left behind, by instant."""
    try:
        names = [entry.name for entry in storage.list(SCHEMA_FOLDER)]
    except FileNotFoundError:
        names = []
    files = {name.removesuffix(SCHEMA_COMMIT).partition("_")[0]: name for name in names if name.endswith(SCHEMA_COMMIT)}
    visible = with_history(storage, config, timeline, list(files), rows=False).visible()
    return {instant: f"{SCHEMA_FOLDER}/{name}" for instant, name in files.items() if visible.committed(instant)}


def rebuilt_history(storage: Storage, config: TableConfig, timeline: Timeline, text: str) -> tuple[str, list[Node]]:
    """Where the history of a table's columns belongs, and its versions, newest first: those that its other files and
    the commits on the timeline have, and the columns of before the first ALTER.

    text    the version of now, as the newest commit has it
    Raises  CorruptFile where nothing has one of them
    """
    now, files = decode_version(text, LATEST_SCHEMA), _history_files(storage, config, timeline)
    versions: dict[int, Node] = {now["version_id"]: now}
    damaged = set(files)  # Hudi writes a file with each commit since the first ALTER
    for instant, path in files.items():
        with suppress(CorruptFile):
            versions |= {version["version_id"]: version for version in decode_history(storage.read(path), path)}
            damaged.remove(instant)
    commits = [(commit.requested, read_commit(storage, timeline, commit)) for commit in reversed(timeline.commits)]
    for instant, commit in commits:
        if own := commit.extra.get(LATEST_SCHEMA):
            version = decode_version(own, SCHEMA_FOLDER)
            versions.setdefault(version["version_id"], version)
            damaged.discard(instant)
    first = min(number for number in versions if number)
    before = (commit.schema for instant, commit in commits if int(instant) < first and commit.schema)
    if 0 not in versions and (schema := next(before, None)) is not None:
        versions[0] = first_version(user_columns(schema, SCHEMA_FOLDER))
    if lacking := {0, *map(int, damaged)} - versions.keys():
        problem = f"neither another file nor a commit on the timeline has version {min(lacking)} of the columns"
        raise CorruptFile(SCHEMA_FOLDER, problem)
    number = str(now["version_id"])
    newest = max(files, default=number)
    path = files[newest] if newest >= number and files else f"{SCHEMA_FOLDER}/{number}{SCHEMA_COMMIT}"
    return path, [versions[key] for key in sorted(versions, reverse=True)]


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
