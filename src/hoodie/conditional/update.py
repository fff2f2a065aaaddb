"""Update and delete by condition, of rows that this process reads: file by file, so that few are in memory."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.conditional.keys import OLD_KEY, OLD_PATH, MergedKeys
from hoodie.conditional.rows import (
    ComputedRows,
    TableCall,
    assigned_terms,
    column_values,
    condition_term,
    keyed_schema,
    scanned_tables,
    target_scan,
)
from hoodie.conditional.shape import assigned_columns, joined_schema
from hoodie.conditional.target import MergeTarget, run_attempts
from hoodie.errors import InvalidInput
from hoodie.expressions.scope import Scope
from hoodie.expressions.terms import Block, Term, is_true
from hoodie.keygen.arrow_keys import RowKeys
from hoodie.merge.rows import ROW_ACTION, RowAction
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.reading.filters.selection import condition_of
from hoodie.schema.schema import with_meta_fields
from hoodie.table.settings import Settings
from hoodie.writing.result import WriteResult
from hoodie.writing.write import as_update


def update(call: TableCall, condition: Any, values: Mapping[str, Any], settings: Settings, name: str) -> WriteResult:
    """Set columns of the rows for which a condition holds; None: of all.

    Raises  InvalidInput, SchemaMismatch, MissingPackage: nothing has changed; WriteConflict; UnsupportedTable
    """
    if not values:
        raise InvalidInput("the update sets no column")
    return run_attempts(call.storage, settings, lambda target: _update(call, target, condition, values, name))


def delete_where(call: TableCall, condition: Any, settings: Settings, name: str) -> WriteResult:
    """Delete the rows for which a condition holds; None: all. Raises as `update`"""
    return run_attempts(call.storage, settings, lambda target: _delete(call, target, condition, name))


def _scope(call: TableCall, target: MergeTarget, name: str) -> Scope:
    return Scope({name: with_meta_fields(target.declared or pa.schema([]))}, call.frames)


def _update(call: TableCall, target: MergeTarget, condition: Any, values: Mapping[str, Any], name: str) -> WriteResult:
    with target.phases.time("check"):
        condition = condition_of(condition, with_meta_fields(target.declared or pa.schema([])), nulls=False)
        columns = list(target.shape.columns)
        assigned = assigned_columns(values, target.shape, name)
        scope = _scope(call, target, name)
        term = condition_term(condition, scope)
        terms = assigned_terms(assigned, target.declared, scope)
        schema = joined_schema(target.declared, list(assigned), columns)
        assert schema is not None  # a column was found
        named = [column for value in (term, *terms.values()) for _, column in value.columns]
        scan = target_scan(target, condition, scope, name, [*columns, *named])

    def rows() -> Iterator[pa.Table]:
        for table in scanned_tables(scan):
            chosen = _matching_rows(table, term, name)
            if chosen.num_rows:
                yield _updated(chosen, terms, schema, name)

    make_keys = MergedKeys.of(columns, target.keygen, target.shape, assigned)
    updated_rows = ComputedRows(rows(), make_keys, keyed_schema([*schema, pa.field(ROW_ACTION, pa.int8())]))
    return call.write(target, updated_rows, schema, scan.state, as_update)


def _matching_rows(table: pa.Table, term: Term, name: str) -> pa.Table:
    keep = is_true(term.run(Block.of({name: table})), table.num_rows)
    return table if keep.all() else table.filter(pa.array(keep))


def _updated(rows: pa.Table, terms: Mapping[str, Term], schema: pa.Schema, name: str) -> pa.Table:
    block = Block.of({name: rows})
    columns = [
        column_values(terms[field.name], block, field) if field.name in terms else rows.column(field.name)
        for field in schema
    ]
    action = pa.array(np.full(rows.num_rows, int(RowAction.WRITE), np.int8))
    old = [rows.column(RECORD_KEY), rows.column(PARTITION_PATH)]
    return pa.Table.from_arrays([*columns, action, *old], [*schema.names, ROW_ACTION, OLD_KEY, OLD_PATH])


def _delete(call: TableCall, target: MergeTarget, condition: Any, name: str) -> WriteResult:
    with target.phases.time("check"):
        # A table without columns, whatever the condition names, has no row that it holds for.
        if target.declared is None:
            condition = "false"
        condition = condition_of(condition, with_meta_fields(target.declared or pa.schema([])))
        scope = _scope(call, target, name)
        term = condition_term(condition, scope)
        columns = [column for _, column in term.columns]
        scan = target_scan(target, condition, scope, name, columns)

    def keys() -> Iterator[pa.Table]:
        for table in scanned_tables(scan):
            rows = _matching_rows(table, term, name).select([RECORD_KEY, PARTITION_PATH])
            if target.write.index.is_global and rows.num_rows:  # the index says where they are
                empty = pa.array([""] * rows.num_rows, pa.string())
                rows = rows.set_column(1, PARTITION_PATH, empty)
            if rows.num_rows:
                yield rows

    deleted_keys = ComputedRows(keys(), RowKeys((), None), keyed_schema(()))
    return call.write(target, deleted_keys, None, scan.state, lambda write: write)
