"""Rows of a batch that lacks columns whose stored values stay (`MergeRule.keeps`), as tasks write them.

A rewrite of a base file merges them with the rows that it reads anyway. A log takes whole rows only, so that every
reader understands it: what is appended is made of the rows that a snapshot has of the same keys.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import SchemaMismatch
from hoodie.lookup.point_read import read_slice
from hoodie.merge.base import Incoming
from hoodie.merge.keep import with_kept
from hoodie.merge.rows import Mask, as_array, nullable, pick
from hoodie.merge.rules import MergeRule
from hoodie.model.files import FileSlice
from hoodie.model.meta import RECORD_KEY
from hoodie.plan.write import TaskKind, WritePlan, WriteTask
from hoodie.view.load import load_view
from hoodie.view.slices import merged_slices
from hoodie.writing.base_file_writer import WriteSpec
from hoodie.writing.job import WriteJob


def before_the_merge(spec: WriteSpec, rule: MergeRule) -> WriteSpec:
    """The write as its rows come in: kept columns are null until they meet the stored row."""
    return replace(spec, schema=nullable(spec.schema)) if rule.keeps else spec


def after_the_merge(rows: pa.Table, spec: WriteSpec, rule: MergeRule) -> pa.Table:
    """The rows that met no stored one, in the columns of the write.

    Raises SchemaMismatch when the table takes no nulls where they have some
    """
    if not rule.keeps:
        return rows
    _refuse_nulls(rows, spec, rule)
    return pa.Table.from_arrays(rows.columns, schema=spec.schema)


def with_stored_values(spec: WriteSpec, rule: MergeRule, task: WriteTask, incoming: Incoming) -> Incoming:
    """Rows for a log as whole rows: those whose key a snapshot has with its values in the kept columns.

    Raises SchemaMismatch as `after_the_merge`, of the others
    """
    if not rule.keeps:
        return incoming
    rows = incoming.rows
    slice_ = spec.compacting.get(task.group, task.slice)
    if slice_ is not None and (slice_.base is not None or slice_.logs):
        assert spec.stored is not None  # a write that keeps values has a reader
        stored, _ = read_slice(spec.storage, spec.stored, slice_, incoming.keys, spec.schema)
        rows = _filled(rows, incoming.keys, stored, rule)
    deletes = rule.is_delete(rows)
    written = ~(deletes if incoming.deleted is None else deletes | incoming.deleted)
    _refuse_nulls(rows if written.all() else rows.filter(pa.array(written)), spec, rule)
    return replace(incoming, rows=rows)


def _filled(rows: pa.Table, keys: pa.Array, stored: pa.Table, rule: MergeRule) -> pa.Table:
    at = pc.index_in(keys, value_set=as_array(stored.column(RECORD_KEY)).cast(keys.type))
    hit: Mask = at.is_valid().to_numpy(zero_copy_only=False)
    if not hit.any():
        return rows
    before = stored.take(at.drop_null()).cast(rows.schema)
    whole = with_kept(before, rows.filter(pa.array(hit)), rule.keeps)
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


def with_compacting_slices(job: WriteJob, plan: WritePlan) -> WriteJob:
    """The job, with what tasks read of file groups under a pending compaction: their logs go to a slice that has no
    base file yet. One listing of the partitions of such groups; none where there are none."""
    if not job.checked.rule.keeps or not job.state.timeline.pending_compactions:
        return job
    groups = {task.group for task in plan.tasks if task.kind is TaskKind.APPEND and _without_base(task.slice)}
    if not groups:
        return job
    state = job.state
    view = load_view(state.storage, state.timeline, state.config, {group.partition for group in groups})
    slices = {group: slice_ for group, slice_ in merged_slices(view).items() if group in groups}
    return replace(job, spec=replace(job.spec, compacting=slices))


def _without_base(slice_: FileSlice | None) -> bool:
    return slice_ is not None and slice_.base is None
