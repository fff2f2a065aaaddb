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
from hoodie.spark.merge.assign import as_column, equal_after_cast, first_that_holds
from hoodie.spark.types import to_spark


def same_where_equal(request: MergeRequest, shape: TableShape) -> bool:
    """Whether the source's values that equal a row's make its key: 1.0 equals 1, and 1.5 does not."""
    given = {field.name.lower(): field.dataType for field in request.source.schema}
    types = {field.name.lower(): field.dataType for field in to_spark(shape.schema)}
    pairs = [(types.get(table), given.get(source)) for table, source in (equated(request, shape) or {}).items()]
    return all(column is None or value is None or equal_after_cast(column, value) for column, value in pairs)


def row_action(request: MergeRequest, keys: Mapping[str, object], shape: TableShape, *, keeps: bool = False) -> Column:
    """`RowAction` of a source row, by what its clauses say of it in either case; null: it has no effect.

    keeps stored values stay in some columns of rows that update
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
    # None of its values stays: where some would, only a join does that.
    in_place = F.lit(IN_DOUBT) if keeps else outcome(Act.UPDATE, Act.INSERT)
    alone = _first(request.about(When.NOT_MATCHED), lambda fresh: in_place if fresh else outcome(None, None))
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
