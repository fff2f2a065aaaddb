"""Plans a read of a table into a `ScanPlan`.

What the read needs to know is learned here, once: the files that readers of the instant take, whether all of them are
there and were not cleaned, the table's columns, how logs are merged.

Source: docs/format/table-services.md 8 (queries).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from hoodie.config.read import DEFAULT_READ, ReadSettings
from hoodie.errors import InvalidInput
from hoodie.model.meta import COMMIT_TIME
from hoodie.reading.changes.plan import plan_changes
from hoodie.reading.column_statistics import slices_with_statistics
from hoodie.reading.complete_view import listed_view
from hoodie.reading.filters.predicate import ANY, Tests, passing_both
from hoodie.reading.filters.selection import Filters, RowFilter, check_columns, read_filter, selected_columns, texts
from hoodie.reading.scan import ScanKind, ScanPlan
from hoodie.reading.slices.column_types import mislabelled_files
from hoodie.reading.slices.reader import slice_reader
from hoodie.reading.table_schema import read_schema
from hoodie.schema.schema import every_column
from hoodie.table.state import TableState, on_newest
from hoodie.timeline.archive import archived_commits
from hoodie.timeline.points import Point, query_instant
from hoodie.view.published import read_optimized_files, snapshot_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a read asks for.

    kind        a snapshot with `as_of` is one as of that instant
    columns     names of top-level columns, in the order wanted; None: all, meta columns first where the table has them
                and `meta` says so
    partitions  partition paths to look at, others are not listed; None: all. Not for changes
    filters     rows to keep; may name columns that are not among `columns`
    as_of       a point in time (`query_instant`), inclusive; None: now
    begin, end  of changes: see `plan_changes`
    cdc         of changes: each change of each row, as `plan_change_data` has it; columns and filters are of its own
    """

    kind: ScanKind | str = ScanKind.SNAPSHOT
    columns: Sequence[str] | None = None
    partitions: Collection[str] | None = None
    filters: Filters | None = None
    as_of: Point | None = None
    begin: Point | None = None
    end: Point | None = None
    cdc: bool = False
    meta: bool = True


def plan_read(
    state: TableState,
    read: Read,
    settings: ReadSettings = DEFAULT_READ,
    *,
    for_spark: bool = False,
    tests: Tests = ANY,
) -> ScanPlan:
    """Plan a read of a table's rows.

    settings    `hoodie.*` options of reads
    for_spark   find out which base files Spark's own Parquet reader would read as other values; what that costs: see
                `mislabelled`
    tests       of rows that the caller drops itself, with those of the filters. Not for changes
    Raises      InvalidInput on an unknown column or kind, a malformed filter or instant, and as of an instant before
                the first commit, or whose files were cleaned; UnsupportedTable when there is no rule to merge the
                table's rows; MissingFile when a file is gone that a commit published; CorruptFile; as `plan_changes`
    """
    read = replace(read, partitions=None if read.partitions is None else _paths(read.partitions))
    kind = _kind(read)
    if kind is ScanKind.CHANGES:
        scan = on_newest(state, lambda state: _plan_changes(state, read, settings))
    else:
        scan = on_newest(state, lambda state: _plan_state(state, kind, read, settings, tests))
    if for_spark and scan.base_files:
        scan = replace(scan, mislabelled=mislabelled_files(scan.state, scan.base_files, scan.schema, scan.read))
    return replace(scan, settings=settings)


def _plan_state(state: TableState, kind: ScanKind, read: Read, settings: ReadSettings, tests: Tests) -> ScanPlan:
    """The rows at one moment."""
    moment = None if read.as_of is None else query_instant(read.as_of, state.config.timezone)
    taken = read_optimized_files(moment) if kind is ScanKind.READ_OPTIMIZED else snapshot_files(moment)
    listing = listed_view(state, read.partitions, taken, settings, moment)
    state, view = listing.state, listing.view
    schema = read_schema(state, view, moment)
    names, columns, rows = _selected(schema, read)
    tests = tests if rows is None else passing_both(rows.tests, tests)
    statistics = None
    if listing.metadata is not None:
        merged = not settings.mergers.mergers  # a user's own may make other values
        statistics = partial(slices_with_statistics, listing.metadata, schema=schema, merged=merged)
    scan = ScanPlan(
        kind,
        state,
        schema,
        names,
        columns,
        tuple(taken(view)),
        folders=None if read.partitions is None else frozenset(read.partitions),
        filter=None if rows is None else rows.expression,
        as_of=moment,
        view=view,
        view_as_of=moment,
        listed=listing.metadata is not None,
        statistics=statistics,
    ).with_tests(tests)
    if not scan.log_slices:
        return scan
    timeline = view.timeline  # with the history of the files there are
    if moment is not None and moment < timeline.first_commit and state.config.was_upgraded:
        # Names of logs of before the upgrade do not have the instants of their blocks.
        commits = archived_commits(state.storage, state.config)
        history = {instant.requested: instant.completed for instant, _ in commits}
        timeline = replace(timeline, history={**timeline.history, **history})
    then = replace(state, timeline=timeline)
    return replace(scan, reader=replace(slice_reader(then, schema, moment, settings), tests=scan.tests))


def _plan_changes(state: TableState, read: Read, settings: ReadSettings) -> ScanPlan:
    """The rows that a range of commits wrote. Their commit times are read as well, to tell them from the others."""
    assert read.begin is not None  # `_kind` saw to it
    plan = plan_changes(state, read.begin, read.end, settings)
    names, columns, rows = _selected(plan.schema, read)
    return ScanPlan(
        ScanKind.CHANGES,
        plan.state,
        plan.schema,
        names,
        tuple(dict.fromkeys([*columns, COMMIT_TIME])),
        plan.slices,
        folders=None if plan.whole else frozenset(group.partition for group in plan.view.groups),
        filter=None if rows is None else rows.expression,
        tests=ANY if rows is None else rows.tests,
        times=plan.times,
        reader=plan.reader,
        view=plan.view,
        view_as_of=plan.as_of,
    )


def _kind(read: Read) -> ScanKind:
    """The kind of a read, seen to fit what else is asked."""
    try:
        kind = ScanKind(read.kind)
    except ValueError as problem:
        raise InvalidInput(f"kind {read.kind!r}: expected one of {', '.join(ScanKind)}") from problem
    if kind is ScanKind.CHANGES:
        if read.begin is None:
            raise InvalidInput("changes need begin: an instant, which is not included, or 'earliest'")
        if read.partitions is not None or read.as_of is not None:
            raise InvalidInput("changes take begin and end, no partitions and no as_of")
        return kind
    if read.begin is not None or read.end is not None:
        raise InvalidInput(f"begin and end are for changes, this is a read of kind {kind}: take as_of")
    if kind is ScanKind.AS_OF and read.as_of is None:
        raise InvalidInput("a read of kind as_of needs as_of: an instant, which is included")
    return ScanKind.AS_OF if kind is ScanKind.SNAPSHOT and read.as_of is not None else kind


def _paths(partitions: Collection[str]) -> tuple[str, ...]:
    paths = texts(partitions)
    if paths is None:
        raise InvalidInput(f"partitions={partitions!r}: expected partition paths in a list, such as ['2024-01-31']")
    return paths


def _selected(schema: pa.Schema, request: Read) -> tuple[tuple[str, ...], tuple[str, ...], RowFilter | None]:
    """The columns wanted, those that are read, and the filter. Raises InvalidInput."""
    names = selected_columns(request.columns, every_column(schema, request.meta))
    rows = read_filter(request.filters, schema)
    read = tuple(dict.fromkeys([*names, *(rows.columns if rows else ())]))
    check_columns(read, schema)
    return names, read, rows
