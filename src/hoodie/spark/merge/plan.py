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
from hoodie.spark.merge.assign import as_column, condition_holds, first_that_holds

Values = Mapping[str, Any]

_SOURCE, _TARGET, _CLAUSE = "_hoodie_from_source", "_hoodie_from_target", "_hoodie_clause"


@dataclass(frozen=True, slots=True)
class JoinedFrame:
    """The rows that clauses are about, each with the number of its clause, and what the clauses assign.

    frame   columns of source and table by their names; `clause` numbers `request.clauses`
    values  of each clause: column of the table -> value; nothing of one that deletes
    """

    frame: DataFrame
    clause: Column
    values: tuple[Values, ...]


def join_rows(request: MergeRequest, shape: TableShape, target: DataFrame) -> JoinedFrame:
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
        (about[clause.when] & condition_holds(clause.condition), F.lit(number))
        for number, clause in enumerate(request.clauses)
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
    return JoinedFrame(rows, F.col(_CLAUSE), tuple(values))


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
