"""Rows that say nothing of some columns: where the table has their key, the stored values stay there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput
from hoodie.merge.rows import as_array
from hoodie.merge.rules import Choice, Combine, Combined, MergeRule


def keeping(rule: MergeRule, missing: Sequence[str]) -> MergeRule:
    """The rule for a batch that lacks columns: incoming rows get the stored values there before they are compared, so
    that what wins, and a row made of two, is a whole row.

    missing  of the table's columns, nested ones dotted, none in lists or maps; none: the rule as it is
    Raises   InvalidInput for a rule that decides by one of them, keeps no row, or is the user's own
    """
    if not missing:
        return rule
    if rule.merger is not None:
        raise InvalidInput(
            f'missing="keep" has no meaning here: the merger {rule.name} makes each value of a stored and an incoming '
            "one. Give the batch all columns of the table"
        )
    if rule.deletes.always:
        raise InvalidInput(f'missing="keep" keeps nothing here: {rule.name} deletes every row that it meets')
    events = [rule.sequence, *([rule.deletes.column] if rule.deletes.required else [])]
    if lacking := [name for name in events if name in missing]:
        raise InvalidInput(
            f'missing="keep" cannot keep {", ".join(map(repr, lacking))}: by it {rule.name} decides what a row is, and '
            "the stored value is an older event's. Give the batch the column"
        )
    return replace(rule, keeps=tuple(missing), combine_with=partial(_keep, rule.combine_with))


def _keep(combine: Combine, rule: MergeRule, stored: pa.Table, incoming: pa.Table) -> Combined:
    whole = with_kept(stored, incoming, rule.keeps)
    outcome = combine(rule, stored, whole)
    taken = outcome.choice == Choice.TAKE
    if not taken.any():
        return outcome
    choice = np.where(taken, Choice.MERGED, outcome.choice).astype(np.int8)
    return Combined(choice, outcome.rows(stored, whole).filter(pa.array(choice == Choice.MERGED)))


def with_kept(stored: pa.Table, incoming: pa.Table, kept: Sequence[str]) -> pa.Table:
    """The incoming rows, with the values of the stored ones in some columns.

    stored  aligned with `incoming`, row by row, and of the same column types
    kept    columns, those within structs dotted. A struct that is null in either row keeps nothing
    """
    columns = []
    for field in incoming.schema:
        below = _below(field.name, kept)
        if field.name in kept:
            columns.append(stored.column(field.name))
        elif below:
            columns.append(
                _kept_fields(as_array(stored.column(field.name)), as_array(incoming.column(field.name)), below)
            )
        else:
            columns.append(incoming.column(field.name))
    return pa.Table.from_arrays(columns, schema=incoming.schema)


def _kept_fields(stored: pa.StructArray, incoming: pa.StructArray, kept: Sequence[str]) -> pa.StructArray:
    children = []
    for position, field in enumerate(incoming.type):
        before, after, below = pc.struct_field(stored, field.name), incoming.field(position), _below(field.name, kept)
        if field.name in kept:
            children.append(before)
        else:
            children.append(_kept_fields(before, after, below) if below else after)
    return pa.StructArray.from_arrays(children, fields=list(incoming.type), mask=incoming.is_null())


def _below(name: str, kept: Sequence[str]) -> list[str]:
    return [path.removeprefix(f"{name}.") for path in kept if path.startswith(f"{name}.")]
