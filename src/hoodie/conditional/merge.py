"""A merge of rows that this process holds: by the key alone where that tells the pairs, else by a join."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.conditional.by_key import ACTIONS, ByKeyPlan, plan_by_key
from hoodie.conditional.clauses import Act, MergeClause, MergeRequest, When, check_names
from hoodie.conditional.join import JoinedRows, joined_rows
from hoodie.conditional.keys import IN_DOUBT, OLD_KEY, OLD_PATH, CertainKeys, MergedKeys
from hoodie.conditional.rows import (
    ComputedRows,
    TableCall,
    assigned_terms,
    column_values,
    condition_term,
    keyed_schema,
    normal_frame,
)
from hoodie.conditional.shape import TableShape, check_request, equated, joined_schema
from hoodie.conditional.target import MergeTarget, keeping_columns, run_attempts
from hoodie.expressions.casts import kernel_of
from hoodie.expressions.scope import Scope
from hoodie.expressions.terms import Block, Mask, is_true, spread
from hoodie.expressions.typed import equal_alike
from hoodie.keygen.arrow_keys import RowKeys
from hoodie.keygen.generated_keys import NewKeys
from hoodie.merge.rows import ROW_ACTION, RowAction
from hoodie.table.settings import Settings
from hoodie.writing.batch.arrow import require_columns
from hoodie.writing.result import WriteResult
from hoodie.writing.write import as_merge

_NO_EFFECT = -2


def merge(call: TableCall, request: MergeRequest, settings: Settings) -> WriteResult:
    """Carry a merge out, as one commit.

    returns  counts of rows: `inserted`, `updated`, `deleted`, and `copied` along in rewritten base files
    Raises   InvalidInput, SchemaMismatch, KeyMatchedTwice, MissingPackage: nothing has changed; WriteConflict: another
             writer was faster; UnsupportedTable
    """
    check_names(request.columns, request.source_name)

    def attempt(target: MergeTarget) -> WriteResult:
        return _merge(call, target, replace(request, source=normal_frame(request.source, target.declared)))

    return run_attempts(call.storage, settings, attempt)


def _merge(call: TableCall, target: MergeTarget, request: MergeRequest) -> WriteResult:
    shape = target.shape
    with target.phases.time("check"):
        check_request(request, shape)
        plan = plan_by_key(request, shape, _same_where_equal(request, shape))
        rows_and_schema = None if plan is None else _rows_by_key(call, target, request, plan)
    if rows_and_schema is not None:
        assert plan is not None
        if plan.keeps:
            target = replace(target, write=keeping_columns(target.write))
        return call.write(target, *rows_and_schema, adapt=partial(as_merge, keeps=plan.keeps))
    with target.phases.time("check"):
        joined = joined_rows(call, target, request)
        rows, columns = _rows_by_join(target, request, joined)
    return call.write(target, rows, columns, joined.state)


def _same_where_equal(request: MergeRequest, shape: TableShape) -> bool:
    """Whether the source's values that equal a row's make its key: 1.0 equals 1, and 1.5 does not."""
    kinds = {field.name.lower(): field.type for field in request.source.schema}
    types = {name.lower(): kind for name, kind in shape.types.items()}
    pairs = [(types.get(table), kinds.get(source)) for table, source in (equated(request, shape) or {}).items()]
    return all(column is None or value is None or equal_alike(column, value) for column, value in pairs)


# --- by the key ---


def _rows_by_key(
    call: TableCall, target: MergeTarget, request: MergeRequest, plan: ByKeyPlan
) -> tuple[ComputedRows, pa.Schema | None] | None:
    """The source's rows as the clauses make them, with what each is for; None: of some the key does not tell which row
    of the table they equal."""
    scope = Scope({request.source_name: request.source.schema}, call.frames)
    block = Block.of({request.source_name: request.source})
    if plan.decides:
        actions = _actions(request, plan, target.shape, scope, block)
        if (actions == IN_DOUBT).any():
            return None
        block = block.take(pa.array(np.flatnonzero(actions != _NO_EFFECT)))
        actions = actions[actions != _NO_EFFECT]
    fields = _fields(target, list(plan.values))
    terms = assigned_terms(plan.values, target.declared, scope)
    schema = (
        pa.schema([field.with_type(terms[field.name].kind) for field in fields]) if target.declared is None else fields
    )
    keygen = target.keygen
    if plan.deletes and target.shape.is_global:  # a global index says where the keys are
        keygen = replace(keygen, partition_fields=())
    require_columns(schema, keygen, (), target.write.state.config.name)
    arrays = [column_values(terms[field.name], block, field) for field in schema]
    names = list(schema.names)
    if plan.decides:
        arrays, names = [*arrays, pa.array(actions.astype(np.int8))], [*names, ROW_ACTION]
    rows = pa.Table.from_arrays(arrays, names)
    row_columns = () if plan.deletes else tuple(names)
    make_keys = CertainKeys(RowKeys(row_columns, keygen)) if plan.decides else RowKeys(row_columns, keygen)
    columns = [] if plan.deletes else [*schema, *([pa.field(ROW_ACTION, pa.int8())] if plan.decides else [])]
    keyed_rows = ComputedRows(iter([rows]), make_keys, keyed_schema(columns))
    return keyed_rows, None if plan.deletes else joined_schema(target.declared, list(plan.values), names) or schema


def _fields(target: MergeTarget, names: Sequence[str]) -> pa.Schema:
    if target.declared is None:
        return pa.schema([pa.field(name, pa.null()) for name in names])
    assigned = joined_schema(target.declared, names, names)
    assert assigned is not None
    return pa.schema([assigned.field(name) for name in names])


def _actions(request: MergeRequest, plan: ByKeyPlan, shape: TableShape, scope: Scope, block: Block) -> Any:
    """int8[n]: `RowAction` of each source row, by what its clauses say of it in either case; `_NO_EFFECT`, `IN_DOUBT`.

    A row with a null in its key, or a number that the column cannot hold, equals no row of the table.
    """
    matched = _first_act(request.clauses_of(When.MATCHED), scope, block)
    fresh = _first_act(request.clauses_of(When.NOT_MATCHED), scope, block)
    terms = assigned_terms({name: plan.values[name] for name in plan.identity}, None, scope)
    keys = {name: spread(term.run(block), block.length) for name, term in terms.items()}
    pairs, doubts = np.ones(block.length, np.bool_), np.zeros(block.length, np.bool_)
    for name, values in keys.items():
        fitting = values
        if name in shape.types and (kernel := kernel_of(values.type, shape.types[name])) is not None:
            fitting = kernel(values)
        pairs &= np.asarray(fitting.is_valid())
        doubts |= _doubted(values, shape, name)
    actions = np.full(block.length, _NO_EFFECT, np.int8)
    acts: list[Act | None] = [None, Act.UPDATE, Act.DELETE, Act.INSERT]
    for at, first in enumerate(acts):
        for place, second in enumerate(acts):
            action = ACTIONS.get((first, second))
            if action is not None:
                actions[pairs & (matched == at) & (fresh == place)] = int(action)
    # What is inserted takes the place of a row of its key, should there be one: the condition is not about that row.
    alone = ~pairs & (fresh == acts.index(Act.INSERT))
    actions[~pairs] = _NO_EFFECT
    actions[alone] = IN_DOUBT if plan.keeps else int(RowAction.WRITE)  # none of its values stays
    actions[pairs & doubts] = IN_DOUBT
    return actions


def _doubted(values: pa.Array, shape: TableShape, name: str) -> Mask:
    shared = (shape.shared or {}).get(name)
    doubts: Mask = np.zeros(len(values), np.bool_)
    if shared is None or not pa.types.is_string(values.type):
        return doubts
    doubts |= is_true(pc.is_in(values, value_set=pa.array(shared.values, pa.string())), len(values))
    for part in shared.holding:
        doubts |= is_true(pc.match_substring(values, part), len(values))
    return doubts


def _first_act(clauses: Sequence[MergeClause], scope: Scope, block: Block) -> Any:
    """int8[n]: what the first clause does whose condition holds; 0: none, 1 updates, 2 deletes, 3 inserts."""
    numbers = {Act.UPDATE: 1, Act.DELETE: 2, Act.INSERT: 3}
    acts = np.zeros(block.length, np.int8)
    rest = np.ones(block.length, np.bool_)
    for clause in clauses:
        takes = rest & is_true(condition_term(clause.condition, scope).run(block), block.length)
        acts[takes] = numbers[clause.act]
        rest &= ~takes
    return acts


# --- by a join ---


def _rows_by_join(
    target: MergeTarget, request: MergeRequest, joined: JoinedRows
) -> tuple[ComputedRows, pa.Schema | None]:
    columns = joined.schema
    assigned = {name for clause in request.clauses if clause.act is not Act.DELETE for name in columns.names}
    require_columns(columns, target.keygen, (), target.write.state.config.name)
    merged = MergedKeys.of(columns.names, target.keygen, target.shape, assigned)
    make_keys = NewKeys(merged).of_task(0) if target.keygen.makes_new_keys else merged
    schema = joined_schema(target.declared, list(assigned), columns.names) or columns
    rows = ComputedRows(_tables(joined, schema), make_keys, keyed_schema([*schema, pa.field(ROW_ACTION, pa.int8())]))
    return rows, schema


def _tables(joined: JoinedRows, schema: pa.Schema) -> Iterator[pa.Table]:
    for part in joined.parts:
        names: Mapping[str, pa.Array] = part.columns
        yield pa.Table.from_arrays(
            [*(names[name] for name in schema.names), part.action, part.old_key, part.old_path],
            [*schema.names, ROW_ACTION, OLD_KEY, OLD_PATH],
        )
