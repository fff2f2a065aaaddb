"""A table's columns by their ids, as Hudi keeps them for tables whose columns were altered with schema-on-read.

Each ALTER of Hudi's makes a version, whose number is its instant; version 0 is what was before the first. The newest
file of `.hoodie/.schema` has all of them, the commits the one that they wrote by.

Source: docs/format/commit-metadata.md (`latest_schema`), docs/format/table-and-timeline.md (`.hoodie/.schema`);
pinned by the tables in tests/fixtures/schema_on_read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from hoodie.errors import CorruptFile

#: Key of a commit's extra metadata: the version that it wrote by, as JSON.
LATEST_SCHEMA = "latest_schema"
#: Where the histories are, as `<instant>.schemacommit`.
SCHEMA_FOLDER = ".hoodie/.schema"
SCHEMA_COMMIT = ".schemacommit"


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """A column, or a field of a struct: its id stays when it is renamed, moved or gets another type."""

    id: int
    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class SchemaRecord:
    columns: tuple[SchemaColumn, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    """A list, or a map with text keys."""

    item: Kind


#: The type of a column: of a leaf Hudi's word for it.
Kind: TypeAlias = "str | SchemaRecord | Repeated"


@dataclass(frozen=True, slots=True)
class InternalSchema:
    version: int
    record: SchemaRecord


def decode_version(text: str, path: str) -> InternalSchema:
    """One version, as `LATEST_SCHEMA` has it.

    path    of the file that has it, for errors
    Raises  CorruptFile
    """
    return _version(_parsed(text, path), path)


def decode_history(data: bytes, path: str) -> tuple[InternalSchema, ...]:
    """All versions, oldest first, as a file of `SCHEMA_FOLDER` has them. Raises CorruptFile"""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise CorruptFile(path, f"not a history of columns: {error}") from error
    top = _parsed(text, path)
    items = top.get("schemas")
    if not isinstance(items, list) or not items:
        raise CorruptFile(path, "not a history of columns: expected a list under 'schemas'")
    return tuple(sorted((_version(item, path) for item in items), key=lambda schema: schema.version))


def _parsed(text: str, path: str) -> dict[str, Any]:
    try:
        top = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(path, f"its internal schema is no JSON: {error}") from error
    if not isinstance(top, dict):
        raise CorruptFile(path, "its internal schema is no JSON object")
    return top


def _version(node: Any, path: str) -> InternalSchema:
    number = node.get("version_id") if isinstance(node, dict) else None
    kind = _kind(node, path)
    if not isinstance(number, int) or not isinstance(kind, SchemaRecord):
        raise CorruptFile(path, "an internal schema without version or columns")
    return InternalSchema(number, kind)


def _kind(node: Any, path: str) -> Kind:
    if isinstance(node, str):
        return node
    word = node.get("type") if isinstance(node, dict) else None
    if word == "record":
        return SchemaRecord(tuple(_columns(node.get("fields"), path)))
    if word == "array":
        return Repeated(_kind(node.get("element"), path))
    if word == "map":
        return Repeated(_kind(node.get("value"), path))
    raise CorruptFile(path, f"an internal schema with the type {word!r}")


def _columns(fields: Any, path: str) -> Iterator[SchemaColumn]:
    for field in fields if isinstance(fields, list) else ():
        id_, name = (field.get("id"), field.get("name")) if isinstance(field, dict) else (None, None)
        if not isinstance(id_, int) or not isinstance(name, str):
            raise CorruptFile(path, "an internal schema with a column that has no id or no name")
        yield SchemaColumn(id_, name, _kind(field.get("type"), path))
