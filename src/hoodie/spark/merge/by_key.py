"""From a merge to the rows of one write by the key alone: the write's own look-up finds the pairs, and the table is not
read at all.

So it goes where the condition says that the key columns are equal, the key tells which row these mean (`key_texts`),
and the clauses ask for the source's columns only.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from hoodie.merge.row_action import RowAction
from hoodie.model.meta import META_COLUMNS
from hoodie.spark.columns import tick
from hoodie.spark.merge.assign import assignments, equal_alike, first_that_holds
from hoodie.spark.merge.clauses import Act, MergeClause, MergeRequest, When, as_column
from hoodie.spark.merge.expressions import about_source_only, same_expression
from hoodie.spark.merge.key_texts import SharedTexts
from hoodie.spark.merge.plan import TableShape, Values, equated

#: What a source row is for, by what the clauses do with it when it matches, and when it does not.
_ACTIONS = {
    (Act.UPDATE, Act.INSERT): RowAction.WRITE,
    (Act.UPDATE, None): RowAction.UPDATE,
    (Act.DELETE, Act.INSERT): RowAction.REPLACE,
    (Act.DELETE, None): RowAction.DELETE,
    (None, Act.INSERT): RowAction.INSERT,
}

#: In place of a `RowAction`: the row's key does not say which row of the table its columns equal.
IN_DOUBT = -1


@dataclass(frozen=True, slots=True)
class ByKeyPlan:
    """A merge whose pairs the write's own look-up finds.

    values   of each column of the table, for rows that update or are inserted
    action   `RowAction` of a source row, or `IN_DOUBT`; null: it has no effect. None: each updates or is inserted, as
             by an upsert
    whole    the values are the source's columns of these names, in any case
    deletes  all that source rows do is delete; the values are those of the key columns
    """

    values: Values
    action: Column | None
    whole: bool = False
    deletes: bool = False


def plan_by_key(request: MergeRequest, shape: TableShape) -> ByKeyPlan | None:
    """How the merge goes by the key alone; None: it needs the table's rows."""
    equal = equated(request, shape)
    if equal is None or not (shape.plain and shape.one_text) or request.about(When.BY_SOURCE):
        return None
    if {name.lower() for name in shape.identity} != equal.keys() or any("." in name for name in shape.identity):
        return None
    if not _same_where_equal(request, shape, equal):
        return None
    columns = shape.columns or tuple(name for name in request.source.columns if name not in META_COLUMNS)
    identity = [name for name in shape.identity if name in columns]
    if len(identity) < len(shape.identity):
        return None
    upserts = _is_plain_upsert(request)
    if upserts and all(clause.values is None for clause in request.clauses):
        if any(table != source for table, source in equal.items()):
            return None  # the key would come of other columns than those that are equal
        clause = request.clauses[0]
        whole = assignments(clause, columns, request.target_name, request.source_name, request.source.columns)
        return ByKeyPlan(whole, None, whole=True)
    image = _one_image(request, shape, columns, identity, equal)
    deletes = _is_plain_delete(request)
    if image is None or not (upserts or deletes or shape.exact):
        return None
    if upserts:
        return ByKeyPlan(image, None)
    if shape.shared is None:
        return None
    return ByKeyPlan(image, _action(request, {name: image[name] for name in identity}, shape), deletes=deletes)


def _same_where_equal(request: MergeRequest, shape: TableShape, equal: Mapping[str, str]) -> bool:
    """Whether the source's values that equal a row's make its key: 1.0 equals 1, and 1.5 does not."""
    given = {field.name.lower(): field.dataType for field in request.source.schema}
    types = {name.lower(): kind for name, kind in shape.types.items()}
    pairs = [(types.get(table), given.get(source)) for table, source in equal.items()]
    return all(column is None or value is None or equal_alike(column, value) for column, value in pairs)


def _one_image(
    request: MergeRequest, shape: TableShape, columns: Sequence[str], identity: Sequence[str], equal: Mapping[str, str]
) -> Values | None:
    """What a source row becomes in the table, whichever clause is about it; None: that is not known of it alone."""
    known = {name.lower() for name in shape.columns}
    if not all(c.condition is None or _of_source(c.condition, request, known) for c in request.clauses):
        return None
    image: dict[str, Any] | None = None
    for clause in request.clauses:
        if clause.act is Act.DELETE:
            continue
        values = assignments(clause, columns, request.target_name, request.source_name, request.source.columns)
        if clause.act is Act.INSERT:
            values = {name: values.get(name) for name in columns}
        else:
            for name in shape.identity:
                values.setdefault(name, f"{tick(request.source_name)}.{tick(equal[name.lower()])}")
            if values.keys() != set(columns):
                return None  # columns of the table's row would stay
        if not all(_of_source(value, request, known) for value in values.values()):
            return None
        if not all(same_expression(values[name], f"{request.source_name}.{equal[name.lower()]}") for name in identity):
            return None
        if image is not None and not all(same_expression(image[name], values[name]) for name in columns):
            return None
        image = values
    if image is None:  # nothing but deletes: the key columns are all that is needed
        named = {name.lower(): name for name in request.source.columns}
        source = tick(request.source_name)
        image = {
            name: f"{source}.{tick(named.get(equal[name.lower()], equal[name.lower()]))}" for name in shape.identity
        }
    return image


def _of_source(value: object, request: MergeRequest, columns: set[str]) -> bool:
    if isinstance(value, str):
        return about_source_only(value, request.source_name, request.target_name, columns)
    return not hasattr(value, "cast")  # what a Column names is not known


def _is_plain_upsert(request: MergeRequest) -> bool:
    if any(clause.condition is not None for clause in request.clauses):
        return False
    return {(c.when, c.act) for c in request.clauses} == {(When.MATCHED, Act.UPDATE), (When.NOT_MATCHED, Act.INSERT)}


def _is_plain_delete(request: MergeRequest) -> bool:
    return all(clause.act is Act.DELETE for clause in request.clauses)


def _action(request: MergeRequest, keys: Mapping[str, object], shape: TableShape) -> Column:
    """`RowAction` of a source row, by what its clauses say of it in either case; null: it has no effect.

    keys  column of the key or partition path -> its value. A row with a null there, or a number that the column cannot
          hold, equals no row of the table; one with a value of `TableShape.shared` is `IN_DOUBT`
    """
    values = {name: as_column(value) for name, value in keys.items()}

    def outcome(matched: Act | None, fresh: Act | None) -> Column:
        action = _ACTIONS.get((matched, fresh))
        return F.lit(None if action is None else int(action))

    def if_matched(matched: Act | None) -> Column:
        return _first(request.about(When.NOT_MATCHED), lambda fresh: outcome(matched, fresh))

    # What is inserted takes the place of a row of its key, should there be one: the condition is not about that row.
    alone = _first(request.about(When.NOT_MATCHED), lambda fresh: outcome(fresh and Act.UPDATE, fresh))
    fits = [value.try_cast(shape.types[name]) if name in shape.types else value for name, value in values.items()]
    pairs = functools.reduce(operator.and_, (value.isNotNull() for value in fits))
    choices = [(~pairs, alone)]
    if doubts := [doubt for name, value in values.items() for doubt in _doubts(value, (shape.shared or {}).get(name))]:
        choices.append((functools.reduce(operator.or_, doubts), F.lit(IN_DOUBT)))
    return first_that_holds(choices, _first(request.about(When.MATCHED), if_matched)).cast("byte")


def _doubts(value: Column, shared: SharedTexts | None) -> list[Column]:
    if shared is None:
        return []
    return [value.isin(*shared.values), *(value.contains(part) for part in shared.holding)]


def _first(clauses: Sequence[MergeClause], value: Callable[[Act | None], Column]) -> Column:
    """The value of what the first clause does whose condition holds; of None where none does."""
    found: Column | None = None
    for clause in clauses:
        made = value(clause.act)
        if clause.condition is None:  # the last one
            return made if found is None else found.otherwise(made)
        condition = as_column(clause.condition)
        found = F.when(condition, made) if found is None else found.when(condition, made)
    return value(None) if found is None else found.otherwise(value(None))
