"""The changes of commits that wrote to logs: what their rows and deletes did to the merged rows of the slice.

Source: docs/format/cdc.md 4, case D.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.merge.base import inserts, merge_base
from hoodie.merge.log_merge import LogMerge, Versions
from hoodie.merge.log_scan import Committed
from hoodie.merge.row_changes import added_changes, images, removed_changes, updated_changes
from hoodie.merge.rows import as_array, as_mask, nullable
from hoodie.model.files import FileSlice, LogFile
from hoodie.model.meta import COMMIT_TIME, RECORD_KEY
from hoodie.reading.changes.base import last_places
from hoodie.reading.changes.data_plan import ChangeReader
from hoodie.reading.changes.json_text import json_text
from hoodie.reading.slices.log_scanner import PlacedBlock, find_blocks
from hoodie.reading.slices.projection import MergeColumns, merge_columns
from hoodie.reading.slices.reader import base_batches, block_versions, rule_of_blocks
from hoodie.view.change_data import ChangeStep


def log_changes(reader: ChangeReader, steps: Sequence[ChangeStep]) -> Iterator[tuple[str, pa.Table]]:
    """Changes (`row_changes.changes_schema`) of commits that wrote to logs of one file group, each with its instant.

    Raises  as `find_blocks` and `block_versions`
    """
    for _, run in groupby(steps, lambda step: None if step.before is None else step.before.base_instant):
        yield from _log_run(reader, list(run))


def _log_run(reader: ChangeReader, run: Sequence[ChangeStep]) -> Iterator[tuple[str, pa.Table]]:
    """The changes of commits that wrote to the logs of one slice: how the merged rows of their keys differ.

    Each time all logs up to the commit are folded, and then merged with the base file, as a snapshot has them: a late
    row in a log may lose against one in an earlier log.
    """
    first = run[0]
    written = [_blocks(reader, step.logs, reader.committed_by(step.instant)) for step in run]
    before: list[PlacedBlock] = []
    if first.before is not None:
        before = _blocks(reader, first.before.logs, reader.committed_before(first.instant))
    reader = replace(reader, slices=replace(reader.slices, rule=rule_of_blocks(reader.slices.rule, [before, *written])))
    slices = reader.slices
    needed = merge_columns(slices.schema, slices.rule, None, slices.keygen)
    log = LogMerge(needed.schema, slices.rule)
    versions = [_versions(reader, needed, log, blocks) for blocks in written]
    keys = [pa.chunked_array([_keys(part.rows) for part in parts], pa.string()).unique() for parts in versions]
    every = pa.concat_arrays(keys).unique()
    earlier = [_of_keys(part, every) for part in _versions(reader, needed, log, before)]
    for part in earlier:
        log.add(part)
    base = pa.concat_tables([nullable(needed.schema).empty_table(), *_base_rows(reader, needed, first.before, every)])
    old = _state(reader, base, log)
    place = partial(_place, reader, first.opened)
    in_order = [(place(log_), part) for log_, part in zip(_logs_of(before, first), earlier, strict=True)]
    for step, blocks, parts, touched in zip(run, written, versions, keys, strict=True):
        new_ones = [(place(log_), part) for log_, part in zip(_logs_of(blocks, step), parts, strict=True)]
        late = bool(in_order) and any(order < in_order[-1][0] for order, _ in new_ones)
        in_order = sorted([*in_order, *new_ones], key=lambda placed: placed[0])
        if late:  # a slower writer's, which readers merge before those of faster ones
            log = LogMerge(needed.schema, slices.rule)
        for part in [part for _, part in in_order] if late else parts:
            log.add(part)
        new = _state(reader, base, log)
        for changes in _differences(reader, old, new, touched):
            yield step.instant, changes
        old = new


def _place(reader: ChangeReader, opened: str, log: LogFile) -> tuple[bool, tuple[str, int, str, bool]]:
    """Where readers merge a log. opened: the instant of the group's pending compaction, which leaves later logs to the
    slice after it"""
    completed = reader.completions.get(log.base_instant, log.base_instant)
    return bool(opened) and completed >= opened, log.order


def _logs_of(blocks: Sequence[PlacedBlock], step: ChangeStep) -> list[LogFile]:
    """The log file of each block."""
    logs = {log.path: log for log in (*step.logs, *(step.before.logs if step.before else ()))}
    return [logs[block.path] for block in blocks]


def _blocks(reader: ChangeReader, logs: Sequence[LogFile], committed: Committed) -> list[PlacedBlock]:
    """The blocks of logs that count, in their order. Skipped bytes are warned about."""
    blocks, report = find_blocks(reader.slices.storage, logs, committed)
    for damage in report.damaged:
        warnings.warn(damage, stacklevel=2)
    return list(blocks)


def _versions(
    reader: ChangeReader, needed: MergeColumns, log: LogMerge, blocks: Sequence[PlacedBlock]
) -> list[Versions]:
    return [block_versions(reader.slices.storage, block, needed, log) for block in blocks]


def _of_keys(versions: Versions, keys: pa.Array) -> Versions:
    return versions.filter(as_mask(pc.is_in(versions.rows.column(RECORD_KEY), value_set=keys)))


def _base_rows(
    reader: ChangeReader, needed: MergeColumns, slice_: FileSlice | None, keys: pa.Array
) -> Iterator[pa.Table]:
    if slice_ is None or slice_.base is None:
        return
    for raw in base_batches(reader.slices.storage, slice_.base, needed.stored):
        rows = needed.keyed(raw)
        yield rows.filter(pc.is_in(rows.column(RECORD_KEY), value_set=keys)).cast(nullable(needed.schema))


def _state(reader: ChangeReader, base: pa.Table, log: LogMerge) -> pa.Table:
    """The rows that base file and logs make together; the log goes on."""
    folded, rule = log.take(), reader.slices.rule
    log.add(folded)
    incoming = folded.incoming(rule)
    merged = merge_base(base, incoming, rule)
    matched = np.zeros(incoming.num_rows, np.bool_)
    matched[merged.matched] = True
    new = inserts(incoming, matched, rule).rows
    return pa.concat_tables([merged.rows.cast(base.schema), new.cast(base.schema)]).combine_chunks()


def _differences(reader: ChangeReader, old: pa.Table, new: pa.Table, keys: pa.Array) -> Iterator[pa.Table]:
    """What became of the rows of some keys."""
    was, now = last_places(keys, old), last_places(keys, new)
    yield removed_changes(old.take(was.filter(now.is_null()).drop_null()), reader.image)
    both = pc.and_(was.is_valid(), now.is_valid())
    before, after = old.take(was.filter(both)), new.take(now.filter(both))
    differ = pc.not_equal(before.column(COMMIT_TIME), after.column(COMMIT_TIME))
    if not reader.slices.rule.takes_whole_rows:  # a row may be made of both, and keep the time of the one
        texts = [json_text(images(rows, reader.image)) for rows in (before, after)]
        differ = pc.or_(differ, pc.not_equal(*texts))
    yield updated_changes(before.filter(differ), after.filter(differ), reader.image)
    yield added_changes(new.take(now.filter(was.is_null()).drop_null()), reader.image)


def _keys(rows: pa.Table) -> pa.Array:
    return as_array(rows.column(RECORD_KEY))
