"""What a merge needs to know of its table, and what it may not ask for.

Record key and partition path, by which rows are looked up, are texts. Equal values may have two of them (0.0 and -0.0),
and different values one (null and '' in a partition path): of such columns the merge's condition itself decides, by a
join, and not the look-up of a write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyarrow import types as arrow

from hoodie.conditional.clauses import Act, MergeClause, MergeRequest, When, path_of, values_by_column
from hoodie.config.table import TableType
from hoodie.errors import InvalidInput
from hoodie.expressions.text import equal_columns, equalities, same_expression
from hoodie.index.contract import ByFile
from hoodie.keygen.arrow_keys import is_text
from hoodie.keygen.keygen import EMPTY_KEY_PART, NULL_KEY_PART, NULL_PARTITION, FieldKind, KeyGenerator
from hoodie.merge.rules import MergeRule
from hoodie.model.meta import IS_DELETED
from hoodie.writing.write import Write


@dataclass(frozen=True, slots=True)
class SharedTexts:
    """Values of a text column whose key or path other values have, too, or that no key can be made of.

    values  these
    holding  all that contain one of these
    """

    values: tuple[str, ...] = ()
    holding: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableShape:
    """What a merge needs to know of a table.

    types       of the user's columns, by their names, in order; {} of a table that has none yet
    keys        columns of the record key; none where the table makes keys itself
    partitions  columns of the partition path
    plain       the partition path is made of the values of these columns as they are
    is_global   the index finds a key in any partition
    exact       a hit of the index is a row of the table for certain: a Copy-on-Write table whose files are asked
    one_text    values of `identity` that are equal have one key and path
    shared      values of `identity` whose key or path others have, too; None: any may be one
    ordering    columns that are compared to tell which of two rows is the later one
    deciding    other columns by which the rule tells what becomes of a row; None: stored values cannot stay in a row of
                the source, as the rule makes one row of two, or none
    """

    types: Mapping[str, pa.DataType]
    keys: tuple[str, ...]
    partitions: tuple[str, ...]
    plain: bool
    is_global: bool
    exact: bool
    one_text: bool = True
    shared: Mapping[str, SharedTexts] | None = field(default_factory=dict)
    ordering: frozenset[str] = frozenset()
    deciding: frozenset[str] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The user's columns."""
        return pa.schema(list(self.types.items()))

    @property
    def columns(self) -> tuple[str, ...]:
        """The user's, in order; () of a table that has none yet."""
        return tuple(self.types)

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that say which row is meant."""
        return self.keys if self.is_global else tuple(dict.fromkeys([*self.keys, *self.partitions]))


def shape_of(write: Write, keygen: KeyGenerator, columns: pa.Schema) -> TableShape:
    fields, is_global = keygen.partition_fields, write.index.is_global
    by_file = isinstance(write.index.look_up, ByFile) and not is_global
    types = {field.name: field.type for field in columns}
    shape = TableShape(
        types,
        tuple(keygen.record_keys),
        tuple(field.name for field in fields),
        all(field.kind is FieldKind.SIMPLE for field in fields),
        is_global,
        by_file and write.state.config.type is TableType.COPY_ON_WRITE,
        shared=shared_texts(keygen, types, is_global=is_global),
        ordering=frozenset(name.partition(".")[0] for name in write.rule.ordering),
        deciding=_deciding(write.rule),
    )
    return replace(shape, one_text=equal_values_share_a_text(types, shape.identity))


def _deciding(rule: MergeRule) -> frozenset[str] | None:
    if rule.merger is not None or rule.deletes.always or not rule.takes_whole_rows:
        return None
    return frozenset(name.partition(".")[0] for name in (rule.sequence, *rule.deletes.columns, IS_DELETED) if name)


def equal_values_share_a_text(types: Mapping[str, pa.DataType], identity: tuple[str, ...]) -> bool:
    """Whether values that SQL finds equal have one text. Then a row that is to be written whichever clause is about it
    may go by the key: where the condition finds no pair and the key has a row, that row is written as well.

    types     of the table's columns
    identity  the columns that the condition compares
    """
    return not any(name in types and arrow.is_floating(types[name]) for name in identity)


def shared_texts(
    keygen: KeyGenerator, types: Mapping[str, pa.DataType], *, is_global: bool
) -> Mapping[str, SharedTexts] | None:
    """The values of each column that the look-up cannot tell apart; None: of some column it can tell none.

    types      of the table's columns; {} of a table without rows, which the look-up knows all about
    is_global  the partition says nothing about which row is meant
    """
    shared: dict[str, SharedTexts] = {}
    keys = keygen.record_keys
    paths = () if is_global else tuple(field.name for field in keygen.partition_fields)
    if any(name in types and not _is_told(name, types[name], keygen) for name in (*keys, *paths)):
        return None
    if keygen.writes_pairs and any(mark in name for name in keys for mark in ",:"):
        return None
    for name in (*keys, *paths):
        if name not in types or not is_text(types[name]):
            continue
        values, holding = [""], list[str]()
        if name in keys and keygen.writes_pairs:
            values += [EMPTY_KEY_PART, NULL_KEY_PART]
            holding += [f",{other}:" for other in keys[1:]]
        if name in paths:
            values.append(NULL_PARTITION)
            if len(paths) > 1 and not keygen.url_encode:
                holding.append("/")
        shared[name] = SharedTexts(tuple(values), tuple(holding))
    return shared


def _is_told(name: str, kind: pa.DataType, keygen: KeyGenerator) -> bool:
    """Whether all values of a column have a text of their own, but for those of `SharedTexts`."""
    if arrow.is_timestamp(kind):  # else they are cut to milliseconds, or the clocks of a zone go back
        return name not in keygen.in_millis and not keygen.consistent_timestamps
    plain = (arrow.is_integer, arrow.is_boolean, arrow.is_date, arrow.is_decimal)
    return is_text(kind) or any(is_plain(kind) for is_plain in plain)


def check_request(request: MergeRequest, shape: TableShape) -> None:
    """Refuse a merge that cannot be meant. Raises InvalidInput"""
    if not request.clauses:
        raise InvalidInput("the merge has no clause: say what becomes of rows that match, or do not")
    if request.condition is None and not shape.keys:
        raise InvalidInput(
            "the table has no record key that says which rows match: give the merge a condition, such as "
            f'"{request.target_name}.id = {request.source_name}.id"'
        )
    if request.source_name.lower() == request.target_name.lower():
        raise InvalidInput(f"the source and the table have one name, {request.source_name!r}: give one another")
    for when in When:
        clauses = request.clauses_of(when)
        for clause in clauses[:-1]:
            if clause.condition is None:
                raise InvalidInput(
                    f"a clause of WHEN {when.value.upper()} without a condition must be the last of them"
                )
    for clause in request.clauses:
        _refuse_set_keys(clause, request, shape)


def _refuse_set_keys(clause: MergeClause, request: MergeRequest, shape: TableShape) -> None:
    if clause.act is not Act.UPDATE or clause.values is None or not shape.columns:
        return
    equal = equated(request, shape) or {}
    pairs = _equalities(request)
    keys = {name.partition(".")[0] for name in shape.keys}
    for name, value in clause.values.items():
        column = path_of(name, shape.columns, request.target_name)[0]
        if column not in keys and column.lower() not in equal and isinstance(request.condition, str):
            continue  # of the partition, perhaps: the rows of the join show whether it is another one (`MergedKeys`)
        if any(column.lower() == own and same_expression(value, f"{request.source_name}.{o}") for own, o in pairs):
            continue
        _refuse_set_key(column, value, equal, request.source_name, request.target_name, shape)


def assigned_columns(values: Mapping[str, Any], shape: TableShape, name: str) -> dict[str, Any]:
    """Column of the table -> its value, of the columns that an update sets.

    name    of the table in the update
    Raises  InvalidInput naming a column that is not there, is set twice, or that a row is found by
    """
    assigned = values_by_column(values, shape.types, name)
    for column, value in assigned.items():
        _refuse_set_key(column, value, {}, "", name, shape)
    return assigned


def _refuse_set_key(
    column: str, value: object, equal: Mapping[str, str], source: str, target: str, shape: TableShape
) -> None:
    """Raises InvalidInput when a clause sets what a row is found by to another value."""
    roots = {name.partition(".")[0] for name in shape.keys}
    movable = {name.partition(".")[0] for name in shape.partitions} if not shape.is_global else set()
    if column not in roots | movable:
        return
    itself = same_expression(value, f"{target}.{column}") or same_expression(value, column)
    other = equal.get(column.lower())
    if itself or (other is not None and same_expression(value, f"{source}.{other}")):
        return
    what = "record key" if column in roots else "partition"
    advice = "" if column in roots else ", or write the table with a global index, which moves rows"
    raise InvalidInput(
        f"column {column!r} is of the {what}, which an update cannot change: delete the row and insert it again{advice}"
    )


def equated(request: MergeRequest, shape: TableShape) -> dict[str, str] | None:
    """The columns of table -> source that the condition says are equal, in lower case; None when it says more."""
    if request.condition is None:
        return {name.lower(): name.lower() for name in shape.identity}
    if not isinstance(request.condition, str):
        return None
    return equal_columns(request.condition, request.source_name, request.target_name)


def _equalities(request: MergeRequest) -> set[tuple[str, str]]:
    condition = request.condition
    return equalities(condition, request.source_name, request.target_name) if isinstance(condition, str) else set()


def joined_schema(table: pa.Schema | None, assigned: Sequence[str], columns: Sequence[str]) -> pa.Schema | None:
    """The columns of the rows as Arrow has them: those of the table, nullable where clauses assign them."""
    if table is None:
        return None
    return pa.schema([f.with_nullable(True) if f.name in assigned else f for f in table if f.name in columns])
