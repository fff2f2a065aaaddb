"""The rows of a merge by a join of its source with the table. Where the key alone tells the pairs, there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hoodie.conditional.clauses import Act, MergeClause, MergeRequest, When
from hoodie.conditional.names import assignments
from hoodie.conditional.shape import TableShape
from hoodie.expressions.text import tick
from hoodie.model.meta import META_COLUMNS
from hoodie.spark.merge.assign import first_that_holds
from hoodie.spark.merge.columns import as_column, holds

Values = Mapping[str, Any]


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
    """

    types: Mapping[str, DataType]
    keys: tuple[str, ...]
    partitions: tuple[str, ...]
    plain: bool
    is_global: bool
    exact: bool
    one_text: bool = True
    shared: Mapping[str, SharedTexts] | None = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The user's, in order; () of a table that has none yet."""
        return tuple(self.types)

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that say which row is meant."""
        return self.keys if self.is_global else tuple(dict.fromkeys([*self.keys, *self.partitions]))


def shape_of(write: Write, keygen: KeyGenerator, columns: StructType) -> TableShape:
    fields, is_global = keygen.partition_fields, write.index.is_global
    by_file = isinstance(write.index.look_up, ByFile) and not is_global
    types = {field.name: field.dataType for field in columns}
    shape = TableShape(
        types,
        tuple(keygen.record_keys),
        tuple(field.name for field in fields),
        all(field.kind is FieldKind.SIMPLE for field in fields),
        is_global,
        by_file and write.state.config.type is TableType.COPY_ON_WRITE,
        shared=shared_texts(keygen, types, is_global=is_global),
    )
    return replace(shape, one_text=equal_values_share_a_text(types, shape.identity))


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
        clauses = request.about(when)
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
    for name, value in clause.values.items():
        column = column_of(name, shape.columns, request.target_name)
        refuse_set_key(column, value, equal, request.source_name, request.target_name, shape)


def refuse_set_key(
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


# --- by a join ---

_SOURCE, _TARGET, _CLAUSE = "_hoodie_from_source", "_hoodie_from_target", "_hoodie_clause"


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """The rows that clauses are about, each with the number of its clause, and what the clauses assign.

    frame   columns of source and table by their names; `clause` numbers `request.clauses`
    values  of each clause: column of the table -> value; nothing of one that deletes
    """

    frame: DataFrame
    clause: Column
    values: tuple[Values, ...]


def join_rows(request: MergeRequest, shape: TableShape, target: DataFrame) -> JoinedRows:
    """The pairs, and with clauses about these the rows without a partner.

    target  rows of the table with meta columns
    """
    source = request.source.withColumn(_SOURCE, F.lit(True)).alias(request.source_name)
    table = target.withColumn(_TARGET, F.lit(True)).alias(request.target_name)
    keeps_source, keeps_table = bool(request.about(When.NOT_MATCHED)), bool(request.about(When.BY_SOURCE))
    kind = {(False, False): "inner", (True, False): "left", (False, True): "right", (True, True): "full"}
    joined = source.join(table, _condition(request, shape), kind[keeps_source, keeps_table])
    both, from_source, from_table = (
        F.col(_SOURCE).isNotNull() & F.col(_TARGET).isNotNull(),
        F.col(_TARGET).isNull(),
        F.col(_SOURCE).isNull(),
    )
    about = {When.MATCHED: both, When.NOT_MATCHED: from_source, When.BY_SOURCE: from_table}
    choices = [
        (about[clause.when] & holds(clause.condition), F.lit(number)) for number, clause in enumerate(request.clauses)
    ]
    rows = joined.withColumn(_CLAUSE, first_that_holds(choices)).where(F.col(_CLAUSE).isNotNull())
    columns = shape.columns or tuple(name for name in request.columns if name not in META_COLUMNS)
    values: list[Values] = []
    for clause in request.clauses:
        if clause.act is Act.DELETE:
            values.append({})
            continue
        given = assignments(clause, columns, request.target_name, request.source_name, request.columns)
        values.append({name: given.get(name, _unassigned(clause, request, name)) for name in columns})
    return JoinedRows(rows, F.col(_CLAUSE), tuple(values))


def _unassigned(clause: MergeClause, request: MergeRequest, column: str) -> str | None:
    return None if clause.act is Act.INSERT else f"{tick(request.target_name)}.{tick(column)}"


def _condition(request: MergeRequest, shape: TableShape) -> Column:
    if request.condition is not None:
        return as_column(request.condition)
    found = F.lit(True)
    for name in shape.identity:
        path = ".".join(map(tick, name.split(".")))
        found = found & F.expr(f"{tick(request.source_name)}.{path} = {tick(request.target_name)}.{path}")
    return found
