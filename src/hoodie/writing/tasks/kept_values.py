"""Rows of a batch that lacks columns whose stored values stay (`MergeRule.keeps`), as tasks write them.

A rewrite of a base file merges them with the rows that it reads anyway. A log takes whole rows only, so that every
reader understands it: what is appended is made of the rows that a snapshot has of the same keys.
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatch
from hoodie.merge.base import Incoming
from hoodie.merge.rows import Mask, as_array, nullable, pick
from hoodie.merge.rules import MergeRule, with_stored_columns
from hoodie.model.meta import RECORD_KEY
from hoodie.plan.write import WriteTask
from hoodie.writing.tasks.base_file import WriteSpec


def before_the_merge(spec: WriteSpec) -> WriteSpec:
    """The write as its rows come in: kept columns are null until they meet the stored row."""
    return replace(spec, schema=nullable(spec.schema))


def after_the_merge(rows: pa.Table, spec: WriteSpec, rule: MergeRule) -> pa.Table:
    """The rows that met no stored one, in the columns of the write.

    Raises SchemaMismatch when the table takes no nulls where they have some
    """
    _refuse_nulls(rows, spec, rule)
    return pa.Table.from_arrays(rows.columns, schema=spec.schema)


def with_stored_values(spec: WriteSpec, rule: MergeRule, task: WriteTask, incoming: Incoming) -> Incoming:
    """Rows for a log as whole rows: those whose key a snapshot has with its values in the kept columns.

    Raises SchemaMismatch as `after_the_merge`, of the others
    """
    rows = incoming.rows
    if task.slice is not None:
        assert spec.stored is not None  # a write that keeps values has a reader
        rows = _filled(rows, incoming.keys, spec.stored.of(task.slice, incoming.keys, spec.schema), rule)
    deletes = rule.is_delete(rows)
    written = ~(deletes if incoming.deleted is None else deletes | incoming.deleted)
    if written.all():
        return replace(incoming, rows=after_the_merge(rows, spec, rule))
    _refuse_nulls(rows.filter(pa.array(written)), spec, rule)
    return replace(incoming, rows=rows)


def _filled(rows: pa.Table, keys: pa.Array, stored: pa.Table, rule: MergeRule) -> pa.Table:
    at = pc.index_in(keys, value_set=as_array(stored.column(RECORD_KEY)).cast(keys.type))
    hit: Mask = at.is_valid().to_numpy(zero_copy_only=False)
    if not hit.any():
        return rows
    before = stored.take(at.drop_null()).cast(rows.schema)
    whole = with_stored_columns(before, rows.filter(pa.array(hit)), rule.keeps)
    source = np.arange(len(keys))
    source[hit] = len(keys) + np.arange(whole.num_rows)
    return pick([rows, whole], source)


def _refuse_nulls(rows: pa.Table, spec: WriteSpec, rule: MergeRule) -> None:
    for name in (name for name in rule.keeps if name in spec.schema.names):
        count = rows.column(name).null_count
        if count and not spec.schema.field(name).nullable:
            raise SchemaMismatch(
                f"column {name!r} takes no nulls and is missing in the batch, which has {count} new keys: no stored "
                "value can stay there. Give the batch the column. Nothing was written"
            )
