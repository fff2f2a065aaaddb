"""A table's columns by their ids, as Hudi keeps them for tables whose columns were altered with schema-on-read.

Each ALTER of Hudi's makes a version, whose number is its instant; version 0 is what was before the first. The newest
file of `.hoodie/.schema` has all of them, the commits the one that they wrote by.

Source: docs/format/commit-metadata.md (`latest_schema`), docs/format/table-and-timeline.md (`.hoodie/.schema`);
pinned by the tables in tests/fixtures/schema_on_read.
"""

import json
from collections.abc import Sequence
from typing import Any

from hoodie.errors import CorruptFile
from hoodie.schema.by_id import Node

#: Key of a commit's extra metadata: the version that it wrote by, as JSON.
LATEST_SCHEMA = "latest_schema"
#: Where the histories are, as `<instant>.schemacommit`, or `<instant>_<completion>.schemacommit` by Hudi 1.x.
SCHEMA_FOLDER = ".hoodie/.schema"
SCHEMA_COMMIT = ".schemacommit"


def decode_version(text: str, path: str) -> Node:
    """One version, as `LATEST_SCHEMA` has it.

    path    of the file that has it, for errors
    Raises  CorruptFile
    """
    return _checked_version(_parsed(text, path), path)


def decode_history(data: bytes, path: str) -> list[Node]:
    """All versions, oldest first, as a file of `SCHEMA_FOLDER` has them. Raises CorruptFile"""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise CorruptFile(path, f"not a history of columns: {error}") from error
    versions = _parsed(text, path).get("schemas")
    if not isinstance(versions, list) or not versions:
        raise CorruptFile(path, "not a history of columns: expected a list under 'schemas'")
    return sorted(
        (_checked_version(version, path) for version in versions), key=lambda version: int(version["version_id"])
    )


def encode_history(versions: Sequence[Node]) -> bytes:
    """Versions, newest first, as a file of `SCHEMA_FOLDER` has them."""
    return json.dumps({"schemas": versions}, separators=(",", ":")).encode()


def _parsed(text: str, path: str) -> Node:
    try:
        top = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(path, f"its internal schema is no JSON: {error}") from error
    if not isinstance(top, dict):
        raise CorruptFile(path, "its internal schema is no JSON object")
    return top


def _checked_version(version: Any, path: str) -> Node:
    _check_type(version, path)
    if version["type"] != "record" or not isinstance(version.get("version_id"), int):
        raise CorruptFile(path, "an internal schema without version or columns")
    checked: Node = version
    return checked


def _check_type(node: Any, path: str) -> None:
    word = node.get("type") if isinstance(node, dict) else None
    if word == "record" and isinstance(node.get("fields"), list):
        for field in node["fields"]:
            id_, name = (field.get("id"), field.get("name")) if isinstance(field, dict) else (None, None)
            if not isinstance(id_, int) or not isinstance(name, str):
                raise CorruptFile(path, "an internal schema with a column that has no id or no name")
            if not isinstance(field.get("type"), str):
                _check_type(field.get("type"), path)
    elif word in ("array", "map"):
        item = node.get("element" if word == "array" else "value")
        if not isinstance(item, str):
            _check_type(item, path)
    else:
        raise CorruptFile(path, f"an internal schema with the type {word!r}")
