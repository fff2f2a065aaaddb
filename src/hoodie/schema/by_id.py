"""A table's columns with their ids, and what ALTER TABLE does to them: pure rules, in the form that Hudi's files have.

A version is the JSON object that `latest_schema` holds: each column has an id, which stays when it is renamed, moved or
gets another type, and no later column has it again.

Source: docs/format/commit-metadata.md (`latest_schema`); pinned by the tables in tests/fixtures/schema_on_read, whose
versions the real Hudi made of the same statements.
"""

import copy
import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from hoodie.errors import SchemaMismatch
from hoodie.schema.conform import WRITTEN
from hoodie.schema.schema import COMMENT, bad_names, stored_form, with_comment, with_meta_fields
from hoodie.schema.types import TIMESTAMP, is_list, list_of, map_of, read_by_spark, spark_name

#: A version, a column or a type, as JSON has it.
Node: TypeAlias = dict[str, Any]
_Path: TypeAlias = tuple[str, ...]

_WORDS = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    TIMESTAMP: "timestamp",
    pa.null(): "",  # a type that Hudi has no word for
}
_KINDS = {word: kind for kind, word in _WORDS.items()}
_DECIMAL = re.compile(r"decimal\((\d+), (\d+)\)")
_NUMBERS = ("int", "long", "float", "double")


@dataclass(frozen=True, slots=True)
class Position:
    """Where a column goes: before all others of its struct, or behind one of them."""

    first: bool = False
    after: str = ""


# --- changes ---


@dataclass(frozen=True, slots=True)
class Add:
    """path     of the new column; all but its last part are there
    column   its type, nullability and comment"""

    path: _Path
    column: pa.Field
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    path: _Path


@dataclass(frozen=True, slots=True)
class Rename:
    path: _Path
    name: str


@dataclass(frozen=True, slots=True)
class Retype:
    path: _Path
    kind: pa.DataType


@dataclass(frozen=True, slots=True)
class Comment:
    path: _Path
    text: str


@dataclass(frozen=True, slots=True)
class TakeNulls:
    """Have a column take nulls."""

    path: _Path


@dataclass(frozen=True, slots=True)
class Move:
    path: _Path
    position: Position


Change = Add | Drop | Rename | Retype | Comment | TakeNulls | Move


def first_version(columns: pa.Schema, *, strict: bool = True) -> Node:
    """The columns of a table that was not altered before, with ids: version 0.

    columns  the user's
    strict   the version is for Hudi; else a column of a type that Hudi keeps no id for is there as well, and stays as
             it is
    Raises   SchemaMismatch on such a type, where it is strict
    """
    ids = itertools.count()
    fields = _columns([_with_known_type(field, strict=strict) for field in with_meta_fields(columns)], ids, "")
    return {"max_column_id": next(ids) - 1, "version_id": 0, "type": "record", "fields": fields}


def changed(version: Node, change: Change, pinned: Collection[str], last: Collection[str] = ()) -> Node:
    """The version after a change; its number stays the old one's.

    pinned  columns of the key, the partitions and the ordering, which keep their name and type
    last    columns that stay behind those that are added without a position
    Raises  SchemaMismatch on a column that is not there, or is there already, on a name that no writer takes, and on a
            change that Hudi does not allow
    """
    version = copy.deepcopy(version)
    if isinstance(change, Add):
        _add(version, change, last)
        return version
    siblings = _siblings(version, change.path)
    column = _sibling(siblings, change.path)
    if isinstance(change, Retype) and column["type"] == _word_or_none(change.kind):
        return version
    if change.path[0] in pinned and isinstance(change, (Drop, Rename, Retype)):
        raise SchemaMismatch(
            f"column {_dotted(change.path)} is one of the table's record key, partitions or ordering, which keep their "
            "name and type"
        )
    match change:
        case Drop():
            siblings.remove(column)
            if not siblings:
                raise SchemaMismatch(f"column {_dotted(change.path)} is the only field of its struct: drop that")
        case Rename(name=name):
            _refuse_name(siblings, name, change.path)
            column["name"] = name
        case Retype(kind=kind):
            column["type"] = _retyped(column["type"], kind, change.path)
        case Comment(text=text):
            column.pop("doc", None)
            if text:
                column["doc"] = text
        case TakeNulls():
            column["optional"] = True
        case Move(position=position):
            siblings.remove(column)
            _put(siblings, column, position, change.path)
    return version


def columns_of_version(version: Node, before: Node, columns: pa.Schema) -> pa.Schema:
    """The user's columns of a version. What the columns of the version before say beside their type stays.

    columns  those of `before`
    """
    old_fields = dict(_fields_by_id(before["fields"], list(with_meta_fields(columns))))
    types = {node["id"]: node["type"] for node in before["fields"]}
    fields = []
    for node in version["fields"]:
        if _is_meta(node):
            continue
        if types.get(node["id"]) == node["type"]:
            same = old_fields[node["id"]].with_name(node["name"]).with_nullable(node["optional"])
            fields.append(_with_marks(same, same, node))
        else:
            fields.append(_field(node, old_fields))
    return pa.schema(fields)


def needs_ids(change: Change, columns: pa.Schema) -> bool:
    """Whether files of before the change are read right only by a reader that knows the ids."""
    if isinstance(change, (Comment, TakeNulls)):
        return False
    if isinstance(change, Add):
        return len(change.path) > 1 or change.position is not None
    if isinstance(change, Retype) and len(change.path) == 1 and change.path[0] in columns.names:
        return not read_by_spark(columns.field(change.path[0]).type, change.kind)
    return True


# --- ids ---


def _with_known_type(field: pa.Field, *, strict: bool) -> pa.Field:
    """The field, its type null if there is no word for it."""
    if not strict:
        try:
            _type(field.type, itertools.count(), field.name)
        except SchemaMismatch:
            return field.with_type(pa.null())
    return field


def _columns(fields: list[pa.Field], ids: Iterator[int], path: str) -> list[Node]:
    """Columns with ids: those of one level first, then those within each."""
    numbers = [next(ids) for _ in fields]
    return [_column(field, number, ids, path) for field, number in zip(fields, numbers, strict=True)]


def _column(field: pa.Field, number: int, ids: Iterator[int], path: str) -> Node:
    node: Node = {"id": number, "name": field.name, "optional": field.nullable}
    node["type"] = _type(field.type, ids, f"{path}{field.name}")
    if comment := (field.metadata or {}).get(COMMENT):
        node["doc"] = comment.decode()
    if _is_meta(node):
        node["doc"] = ""
    return node


def _type(kind: pa.DataType, ids: Iterator[int], path: str) -> str | Node:
    if pa.types.is_struct(kind):
        return {"type": "record", "fields": _columns(list(kind), ids, f"{path}.")}
    if is_list(kind):
        number = next(ids)
        element = _type(kind.value_type, ids, f"{path}.element")
        optional = kind.value_field.nullable
        return {"type": "array", "element_id": number, "element": element, "element_optional": optional}
    if pa.types.is_map(kind):
        key, value = next(ids), next(ids)
        node = {"type": "map", "key_id": key, "key": "string", "value_id": value}
        return {
            **node,
            "value": _type(kind.item_type, ids, f"{path}.value"),
            "value_optional": kind.item_field.nullable,
        }
    return _word(kind, path)


def _word(kind: pa.DataType, path: str) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if kind not in _WORDS:
        raise SchemaMismatch(
            f"column {path} is {spark_name(kind)}, which Hudi keeps no id for: columns of a table that has one can be "
            "added at the end, widened and commented on"
        )
    return _WORDS[kind]


def _is_meta(node: Node) -> bool:
    return str(node["name"]).startswith("_hoodie_") and node["id"] < 5


# --- places ---


def _dotted(path: _Path) -> str:
    return ".".join(path)


def _siblings(version: Node, path: _Path) -> list[Node]:
    """The columns among which a path's last part is one. Raises SchemaMismatch when there is no such struct"""
    node: Any = version
    for depth, name in enumerate(path[:-1]):
        if node["type"] == "record":
            node = _sibling(node["fields"], path[: depth + 1])["type"]
        elif node["type"] == "array" and name == "element":
            node = node["element"]
        elif node["type"] == "map" and name == "value":
            node = node["value"]
        else:
            node = None
        if not isinstance(node, dict):
            raise SchemaMismatch(f"{_dotted(path[: depth + 1])} is no struct, and has no field {path[-1]}")
    if node["type"] != "record":
        raise SchemaMismatch(f"{_dotted(path[:-1])} is no struct, and has no field {path[-1]}")
    fields: list[Node] = node["fields"]
    return fields


def _sibling(siblings: list[Node], path: _Path) -> Node:
    for node in siblings:
        if node["name"].lower() == path[-1].lower() and not (len(path) == 1 and _is_meta(node)):
            return node
    names = ", ".join(node["name"] for node in siblings if not (len(path) == 1 and _is_meta(node)))
    raise SchemaMismatch(f"the table has no column {_dotted(path)}: there are {names}")


def _refuse_name(siblings: list[Node], name: str, path: _Path) -> None:
    """Raises SchemaMismatch on a name that another column has, or that no writer takes"""
    if any(node["name"].lower() == name.lower() for node in siblings):
        raise SchemaMismatch(f"the table has a column {_dotted((*path[:-1], name))} already")
    problems = list(bad_names([name], "".join(f"{part}." for part in path[:-1])))
    if problems:
        raise SchemaMismatch("; ".join(problems))


def _put(siblings: list[Node], column: Node, position: Position | None, path: _Path) -> None:
    if position is None:
        siblings.append(column)
    elif position.after:
        other = _sibling(siblings, (*path[:-1], position.after))
        siblings.insert(siblings.index(other) + 1, column)
    elif len(path) == 1:
        raise SchemaMismatch(f"column {path[0]} cannot be the first: Hudi's own columns are. AFTER a column it can be")
    else:
        siblings.insert(0, column)


def _add(version: Node, change: Add, last: Collection[str]) -> None:
    siblings = _siblings(version, change.path)
    _refuse_name(siblings, change.path[-1], change.path)
    ids = itertools.count(version["max_column_id"] + 1)
    parent = "".join(f"{name}." for name in change.path[:-1])
    field = change.column.with_name(change.path[-1]).with_nullable(True)
    stored_form(pa.schema([field]))
    column = _column(field, next(ids), ids, parent)
    version["max_column_id"] = next(ids) - 1
    if change.position is not None or len(change.path) > 1:
        _put(siblings, column, change.position, change.path)
        return
    at = len(siblings)
    while siblings[at - 1]["name"] in last:
        at -= 1
    siblings.insert(at, column)


# --- types ---


def _word_or_none(kind: pa.DataType) -> str | None:
    """Hudi's word for a type; None: it has none."""
    return _word(kind, "") if kind in _WORDS or pa.types.is_decimal(kind) else None


def _retyped(old: str | Node, kind: pa.DataType, path: _Path) -> str | Node:
    new = None if pa.types.is_nested(kind) else _word(kind, _dotted(path))
    if not isinstance(old, str) or new is None:
        raise SchemaMismatch(
            f"column {_dotted(path)}: of structs, lists and maps the fields get other types one by one"
        )
    if new == old or not _allowed(old, new):
        raise SchemaMismatch(
            f"column {_dotted(path)} is {spark_name(_kind(old))} and cannot become {spark_name(kind)}: int, bigint, "
            "float and double become wider ones, decimals or string; decimals become wider ones or string; dates string"
        )
    return new


def _allowed(old: str, new: str) -> bool:
    """Hudi's rule, without text that becomes dates, decimals or bytes: not every text is one."""
    decimal, wider = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    if old in _NUMBERS:
        larger = _NUMBERS[_NUMBERS.index(old) + 1 :]
        return new in (*larger, "string") or wider is not None
    if decimal:
        digits = [(int(part[1]) - int(part[2]), int(part[2])) for part in (decimal, wider) if part]
        return new == "string" or (len(digits) == 2 and digits[1] >= digits[0] and digits[1][1] >= digits[0][1])
    return new == "string" and old == "date"


def _kind(node: str | Node, old_fields: Mapping[int, pa.Field] | None = None) -> pa.DataType:
    old_fields = old_fields or {}
    if isinstance(node, str):
        if decimal := _DECIMAL.fullmatch(node):
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        if node not in _KINDS:
            raise SchemaMismatch(f"the table has a column of Hudi's type {node}, which is not altered here")
        return _KINDS[node]
    if node["type"] == "record":
        return pa.struct([_field(child, old_fields) for child in node["fields"]])
    if node["type"] == "array":
        return list_of(pa.field("element", _kind(node["element"], old_fields), node["element_optional"]))
    return map_of(pa.field("value", _kind(node["value"], old_fields), node["value_optional"]))


def _field(node: Node, old_fields: Mapping[int, pa.Field]) -> pa.Field:
    """A column of a version; what its field of before says of it beside name and type stays."""
    field = pa.field(node["name"], _kind(node["type"], old_fields), node["optional"])
    return _with_marks(field, old_fields.get(node["id"]), node)


def _with_marks(field: pa.Field, old: pa.Field | None, node: Node) -> pa.Field:
    """The field with what is said of it beside its type: as of `old`, and the comment of its node."""
    marks = {} if old is None else {key: value for key, value in (old.metadata or {}).items() if key != WRITTEN}
    return with_comment(field.with_metadata(marks), node.get("doc") or "")


def _fields_by_id(nodes: list[Node], fields: list[pa.Field]) -> Iterator[tuple[int, pa.Field]]:
    by_name = {field.name: field for field in fields}
    for node in nodes:
        field = by_name.get(node["name"])
        if field is not None:
            yield node["id"], field
            yield from _inner_fields(node["type"], field.type)


def _inner_fields(node: str | Node, kind: pa.DataType) -> Iterator[tuple[int, pa.Field]]:
    if isinstance(node, str):
        return
    if node["type"] == "record" and pa.types.is_struct(kind):
        yield from _fields_by_id(node["fields"], list(kind))
    elif node["type"] == "array" and is_list(kind):
        yield from _inner_fields(node["element"], kind.value_type)
    elif node["type"] == "map" and pa.types.is_map(kind):
        yield from _inner_fields(node["value"], kind.item_type)
