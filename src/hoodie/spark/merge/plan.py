"""The rows of a merge by a join of its source with the table. Where the key alone tells the pairs, there is none, and
each source row says what it is for.
"""

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hoodie.conditional.by_key import ACTIONS
from hoodie.conditional.clauses import Act, MergeClause, MergeRequest, When, assignments
from hoodie.conditional.keys import IN_DOUBT
from hoodie.conditional.shape import SharedTexts, TableShape
from hoodie.expressions.text import three_valued, tick
from hoodie.spark.merge.assign import as_column, condition_holds, first_that_holds
from hoodie.spark.types import to_spark

_Values = Mapping[str, Any]

_SOURCE, _TARGET, _CLAUSE = "_hoodie_from_source", "_hoodie_from_target", "_hoodie_clause"


@dataclass(frozen=True, slots=True)
class JoinedFrame:
    """The rows that clauses are about, each with the number of its clause, and what the clauses assign.

    frame   columns of source and table by their names; `clause` numbers `request.clauses`
    values  of each clause: column of the table -> value; nothing of one that deletes
    """

    frame: DataFrame
    clause: Column
    values: tuple[_Values, ...]


def join_rows(request: MergeRequest, shape: TableShape, target: DataFrame) -> JoinedFrame:
    """The pairs, and with clauses about these the rows without a partner.

    target  rows of the table with meta columns
    """
    source = request.source.withColumn(_SOURCE, F.lit(True)).alias(request.source_name)
    table = target.withColumn(_TARGET, F.lit(True)).alias(request.target_name)
    keeps_source, keeps_table = bool(request.clauses_of(When.NOT_MATCHED)), bool(request.clauses_of(When.BY_SOURCE))
    kind = {(False, False): "inner", (True, False): "left", (False, True): "right", (True, True): "full"}
    joined = source.join(table, _condition(request, shape), kind[keeps_source, keeps_table])
    both, from_source, from_table = (
        F.col(_SOURCE).isNotNull() & F.col(_TARGET).isNotNull(),
        F.col(_TARGET).isNull(),
        F.col(_SOURCE).isNull(),
    )
    about = {When.MATCHED: both, When.NOT_MATCHED: from_source, When.BY_SOURCE: from_table}
    choices = [
        (about[clause.when] & condition_holds(clause.condition), F.lit(number))
        for number, clause in enumerate(request.clauses)
    ]
    rows = joined.withColumn(_CLAUSE, first_that_holds(choices)).where(F.col(_CLAUSE).isNotNull())
    types = request.types_of(shape.types)
    values: list[_Values] = []
    for clause in request.clauses:
        if clause.act is Act.DELETE:
            values.append({})
            continue
        clause_values = assignments(clause, request, types)
        values.append({name: clause_values.get(name, _unassigned(clause, request, name)) for name in types})
    return JoinedFrame(rows, F.col(_CLAUSE), tuple(values))


def _unassigned(clause: MergeClause, request: MergeRequest, column: str) -> str | None:
    return None if clause.act is Act.INSERT else f"{tick(request.target_name)}.{tick(column)}"


def _condition(request: MergeRequest, shape: TableShape) -> Column:
    if request.condition is not None:
        condition = request.condition
        return as_column(three_valued(condition) if isinstance(condition, str) else condition)
    condition = F.lit(True)
    for name in shape.identity:
        path = ".".join(map(tick, name.split(".")))
        condition = condition & F.expr(f"{tick(request.source_name)}.{path} = {tick(request.target_name)}.{path}")
    return condition


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
        return _first_value(request.clauses_of(When.NOT_MATCHED), lambda fresh: outcome(matched, fresh))

    # What is inserted takes the place of a row of its key, should there be one: the condition is not about that row.
    # None of its values stays: where some would, only a join does that.
    in_place = F.lit(IN_DOUBT) if keeps else outcome(Act.UPDATE, Act.INSERT)
    alone = _first_value(request.clauses_of(When.NOT_MATCHED), lambda fresh: in_place if fresh else outcome(None, None))
    fits = [value.try_cast(types[name]) if name in types else value for name, value in values.items()]
    pairs = functools.reduce(operator.and_, (value.isNotNull() for value in fits))
    choices = [(~pairs, alone)]
    if doubts := [doubt for name, value in values.items() for doubt in _doubts(value, (shape.shared or {}).get(name))]:
        choices.append((functools.reduce(operator.or_, doubts), F.lit(IN_DOUBT)))
    return first_that_holds(choices, _first_value(request.clauses_of(When.MATCHED), if_matched)).cast("byte")


def _doubts(value: Column, shared: SharedTexts | None) -> list[Column]:
    if shared is None:
        return []
    return [value.isin(*shared.values), *(value.contains(part) for part in shared.holding)]


def _first_value(clauses: Sequence[MergeClause], value: Callable[[Act | None], Column]) -> Column:
    """The value of what the first clause does whose condition holds; of None where none does."""
    expression: Column | None = None
    for clause in clauses:
        act_value = value(clause.act)
        if clause.condition is None:  # the last one
            return act_value if expression is None else expression.otherwise(act_value)
        condition = as_column(clause.condition)
        expression = F.when(condition, act_value) if expression is None else expression.when(condition, act_value)
    return value(None) if expression is None else expression.otherwise(value(None))
