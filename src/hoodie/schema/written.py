"""Where the columns of a table are in files that were written before its columns were renamed, retyped or replaced.

A field of a table's schema carries this in its metadata, and so takes it along to the tasks that read files.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

#: Field metadata: how files of each version of the table's columns have the field.
WRITTEN = b"hoodie.written"


@dataclass(frozen=True, slots=True)
class Written:
    """How a file has a column.

    name     its name there; None: the file does not have it, even if another column there has the name that it has now
    retyped  its values have another type there
    fields   of a struct, by their names now: those that the file has in another way
    item     of a list's elements or a map's values; None: as they are now
    """

    name: str | None
    retyped: bool = False
    fields: Mapping[str, Written] = field(default_factory=dict)
    item: Written | None = None


#: A version of the columns, an instant as a number, and how its files have a column; None: as it is now.
History = Sequence[tuple[int, Written | None]]


def with_history(column: pa.Field, history: History, exceptions: Mapping[str, int]) -> pa.Field:
    """The field of a table, with how files have it.

    history     oldest first, at least one
    exceptions  instants whose files are of another version than the newest one up to the instant
    returns     the field itself where all versions have it as it is now
    """
    if all(written is None for _, written in history):
        return column
    parts = {"versions": [[version, _encoded(written)] for version, written in history], "exceptions": {**exceptions}}
    text = json.dumps(parts, separators=(",", ":"))
    return column.with_metadata({**(column.metadata or {}), WRITTEN: text.encode()})


def written_columns(schema: pa.Schema, instant: str) -> dict[str, Written]:
    """The columns of a table that a file of some instant has in another way, by their names now.

    schema   columns of the table, as a read has them
    instant  that wrote the file or log block
    """
    return {
        column.name: written
        for column in schema
        if (text := (column.metadata or {}).get(WRITTEN)) and (written := _at(json.loads(text), instant)) is not None
    }


def _at(parts: Mapping[str, Any], instant: str) -> Written | None:
    versions: list[list[Any]] = parts["versions"]
    number = parts["exceptions"].get(instant, int(instant) if instant.isdigit() else 0)
    at = bisect_right([version for version, _ in versions], number) - 1
    return _decoded(versions[max(at, 0)][1])


def _encoded(written: Written | None) -> list[Any] | None:
    if written is None:
        return None
    fields = {name: _encoded(child) for name, child in written.fields.items()}
    return [written.name, written.retyped, fields, _encoded(written.item)]


def _decoded(node: list[Any] | None) -> Written | None:
    if node is None:
        return None
    name, retyped, fields, item = node
    children = {key: child for key, value in fields.items() if (child := _decoded(value)) is not None}
    return Written(name, retyped, children, _decoded(item))
