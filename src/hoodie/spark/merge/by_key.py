"""What source rows are for that a write's look-up pairs with those of the table, as columns of Spark's."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from hoodie.conditional.by_key import ACTIONS
from hoodie.conditional.clauses import Act, MergeClause, MergeRequest, When
from hoodie.conditional.key_texts import SharedTexts
from hoodie.conditional.keys import IN_DOUBT
from hoodie.conditional.shape import TableShape, equated
from hoodie.spark.merge.assign import equal_alike, first_that_holds
from hoodie.spark.merge.columns import as_column
from hoodie.spark.types import to_spark


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
    if equal is None or not shape.keys or not (shape.plain and shape.one_text) or request.about(When.BY_SOURCE):
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
    types = {field.name.lower(): field.dataType for field in to_spark(shape.schema)}
    pairs = [(types.get(table), given.get(source)) for table, source in (equated(request, shape) or {}).items()]
    return all(column is None or value is None or equal_alike(column, value) for column, value in pairs)


def action_of(request: MergeRequest, keys: Mapping[str, object], shape: TableShape) -> Column:
    """`RowAction` of a source row, by what its clauses say of it in either case; null: it has no effect.

    keys  column of the key or partition path -> its value. A row with a null there, or a number that the column cannot
          hold, equals no row of the table; one with a value of `TableShape.shared` is `IN_DOUBT`
    """
    values = {name: as_column(value) for name, value in keys.items()}
    types = {field.name: field.dataType for field in to_spark(shape.schema)}

    def outcome(matched: Act | None, fresh: Act | None) -> Column:
        action = ACTIONS.get((matched, fresh))
        return F.lit(None if action is None else int(action))

    def if_matched(matched: Act | None) -> Column:
        return _first(request.about(When.NOT_MATCHED), lambda fresh: outcome(matched, fresh))

    # What is inserted takes the place of a row of its key, should there be one: the condition is not about that row.
    alone = _first(request.about(When.NOT_MATCHED), lambda fresh: outcome(fresh and Act.UPDATE, fresh))
    fits = [value.try_cast(types[name]) if name in types else value for name, value in values.items()]
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
