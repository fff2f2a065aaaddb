"""From a merge to the rows of one write by the key alone: the write's own look-up finds the pairs, and the table is not
read at all.

So it goes where the condition says that the key columns are equal, the key tells which row these mean (`shared_texts`),
and the clauses ask for the source's columns only. Columns that updates do not set keep the stored row's value, which
tasks have at hand where they write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie.conditional.clauses import Act, MergeRequest, When, assignments
from hoodie.conditional.shape import TableShape, equated
from hoodie.expressions.text import about_source_only, same_expression, tick
from hoodie.expressions.typed import StructValue
from hoodie.merge.rows import RowAction

#: What a source row is for, by what the clauses do with it when it matches, and when it does not.
ACTIONS: Mapping[tuple[Act | None, Act | None], RowAction] = {
    (Act.UPDATE, Act.INSERT): RowAction.WRITE,
    (Act.UPDATE, None): RowAction.UPDATE,
    (Act.DELETE, Act.INSERT): RowAction.REPLACE,
    (Act.DELETE, None): RowAction.DELETE,
    (None, Act.INSERT): RowAction.INSERT,
}


@dataclass(frozen=True, slots=True)
class ByKeyPlan:
    """A merge whose pairs the write's own look-up finds.

    values    of each column of the table, for rows that update or are inserted
    identity  the columns by which the look-up finds a row, where each row has an action of its own
    decides   the clauses say of each source row what it is for; else each updates or is inserted, as by an upsert
    whole     the values are the source's columns of these names, in any case
    deletes   all that source rows do is delete; the values are those of the key columns
    keeps     columns that updates do not set: the values that a row has in them stay. Without an insert they are not
              among `values`
    """

    values: Mapping[str, Any]
    identity: tuple[str, ...]
    decides: bool = False
    whole: bool = False
    deletes: bool = False
    keeps: tuple[str, ...] = ()


def plan_by_key(request: MergeRequest, shape: TableShape, same: bool) -> ByKeyPlan | None:
    """How the merge goes by the key alone; None: it needs the table's rows.

    same  the source's values that equal a row's make its key: 1.0 equals 1, and 1.5 does not
    """
    equal = equated(request, shape)
    if equal is None or not shape.keys or not (shape.plain and shape.one_text) or request.clauses_of(When.BY_SOURCE):
        return None
    if {name.lower() for name in shape.identity} != equal.keys() or any("." in name for name in shape.identity):
        return None
    if not same:
        return None
    types = request.types_of(shape.types)
    identity = [name for name in shape.identity if name in types]
    if len(identity) < len(shape.identity):
        return None
    upserts = _is_plain_upsert(request)
    if upserts and all(clause.values is None for clause in request.clauses):
        if any(table != source for table, source in equal.items()):
            return None  # the key would come of other columns than those that are equal
        clause = request.clauses[0]
        whole = assignments(clause, request, types)
        return ByKeyPlan(whole, (), whole=True)
    image = _one_image(request, shape, types, identity, equal)
    deletes = all(clause.act is Act.DELETE for clause in request.clauses)
    if image is None or not (upserts or deletes or shape.exact):
        return None
    values, keeps = image
    if keeps and not _can_keep(request, shape, keeps):
        return None
    if upserts and not keeps:
        return ByKeyPlan(values, ())
    if shape.shared is None:
        return None
    return ByKeyPlan(values, tuple(identity), decides=True, deletes=deletes, keeps=keeps)


def _can_keep(request: MergeRequest, shape: TableShape, keeps: Sequence[str]) -> bool:
    """Whether stored values stay in columns as in a row of the join: not where the rule decides by one, and an inserted
    row has a value there that it decides by."""
    if shape.is_global or shape.deciding is None or not shape.deciding.isdisjoint(keeps):
        return False
    inserts = any(clause.act is Act.INSERT for clause in request.clauses)
    return not inserts or shape.ordering.isdisjoint(keeps)


def _one_image(
    request: MergeRequest,
    shape: TableShape,
    types: Mapping[str, pa.DataType],
    identity: Sequence[str],
    equal: Mapping[str, str],
) -> tuple[Mapping[str, Any], tuple[str, ...]] | None:
    """What a source row becomes in the table, whichever clause is about it, and the columns that keep a stored row's
    values; None: that is not known of it alone."""
    table_columns = {name.lower() for name in shape.columns}
    if not all(c.condition is None or _of_source(c.condition, request, table_columns) for c in request.clauses):
        return None
    updated: dict[str, Any] | None = None
    inserted: dict[str, Any] | None = None
    for clause in request.clauses:
        if clause.act is Act.DELETE:
            continue
        values = assignments(clause, request, types)
        if clause.act is Act.INSERT:
            values = {name: values.get(name) for name in types}
        else:
            for name in shape.identity:
                values.setdefault(name, f"{tick(request.source_name)}.{tick(equal[name.lower()])}")
        if not all(_of_source(value, request, table_columns) for value in values.values()):
            return None
        if not all(same_expression(values[name], f"{request.source_name}.{equal[name.lower()]}") for name in identity):
            return None
        before = inserted if clause.act is Act.INSERT else updated
        if before is not None and not _same_values(before, values):
            return None
        if clause.act is Act.INSERT:
            inserted = values
        else:
            updated = values
    if updated is None and inserted is None:  # nothing but deletes: the key columns are all that is needed
        named = {name.lower(): name for name in request.columns}
        source = tick(request.source_name)
        return {
            name: f"{source}.{tick(named.get(equal[name.lower()], equal[name.lower()]))}" for name in shape.identity
        }, ()
    if updated is None or inserted is None:
        values = updated or inserted or {}
    elif _same_values({name: inserted[name] for name in updated}, updated):
        values = inserted
    else:
        return None
    keeps = () if updated is None else tuple(name for name in types if name not in updated)
    return {name: values[name] for name in types if name in values}, keeps


def _same_values(values: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    return values.keys() == others.keys() and all(same_expression(values[name], others[name]) for name in values)


def _of_source(value: object, request: MergeRequest, columns: set[str]) -> bool:
    if isinstance(value, str):
        return about_source_only(value, request.source_name, request.target_name, columns)
    # What a Column names is not known; a struct of which fields are set has the stored ones.
    return not (isinstance(value, StructValue) or hasattr(value, "cast"))


def _is_plain_upsert(request: MergeRequest) -> bool:
    if any(clause.condition is not None for clause in request.clauses):
        return False
    return {(c.when, c.act) for c in request.clauses} == {(When.MATCHED, Act.UPDATE), (When.NOT_MATCHED, Act.INSERT)}
