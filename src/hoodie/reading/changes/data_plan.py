"""A read of change data that has been planned: which files tell, for each commit and file group, what became of rows.

Source: docs/format/cdc.md 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hoodie.config.read import DEFAULT_READ, ChangeImages, ReadSettings
from hoodie.config.table import LoggedImages, TableConfig
from hoodie.errors import HistoryGone, InvalidOption, UnsupportedTable
from hoodie.merge.log_scan import Committed
from hoodie.merge.row_changes import AFTER, BEFORE, OP, image_type
from hoodie.model.files import FileGroupId, parse_data_file
from hoodie.reading.changes.plan import commits_between, read_commits
from hoodie.reading.complete_view import refuse_lost_commit
from hoodie.reading.slices.reader import SliceReader, slice_reader
from hoodie.reading.table_schema import read_schema
from hoodie.reading.time_travel import paths_in
from hoodie.storage.protocol import split
from hoodie.table.state import TableState, on_newest
from hoodie.timeline.cleanings import cleanings
from hoodie.timeline.points import Point
from hoodie.timeline.timeline import Timeline
from hoodie.view.change_data import ChangeStep, GoneFile, ImagesIn, change_steps, touched_partitions
from hoodie.view.load import load_view
from hoodie.view.slices import FileSystemView

TS = "ts_ms"
#: The columns of change data whose images are JSON.
CHANGE_COLUMNS = pa.schema([pa.field(name, pa.string()) for name in (OP, TS, BEFORE, AFTER)])


@dataclass(frozen=True, slots=True, eq=False)
class ChangeReader:
    """How the files of change data are read. Pickles: it goes to executors.

    slices     how the table's slices are read now
    image      the type of a row before or after a change
    as_text    whether images are given as JSON
    completed  commits of the timeline
    instants   all its instants
    first      blocks of older instants count: their commits are archived
    completions  layout 2: when commits were completed, by their time. That is the order in which they changed rows
    """

    slices: SliceReader
    image: pa.StructType
    as_text: bool
    completed: frozenset[str]
    instants: frozenset[str]
    first: str
    completions: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """`op`, `ts_ms`, which is the instant of the commit, `before` and `after`."""
        if self.as_text:
            return CHANGE_COLUMNS
        return pa.schema([*list(CHANGE_COLUMNS)[:2], pa.field(BEFORE, self.image), pa.field(AFTER, self.image)])

    def committed_before(self, instant: str) -> Committed:
        """The blocks that a reader saw just before a commit."""
        end = self._position(instant)
        return self._blocks(frozenset(time for time in self.completed if self._position(time) < end), self.first)

    def committed_by(self, instant: str) -> Committed:
        """The blocks that one commit wrote."""
        return self._blocks(frozenset({instant}), "")

    def _position(self, instant: str) -> str:
        return self.completions.get(instant, instant)

    def _blocks(self, completed: frozenset[str], first: str) -> Committed:
        # A rollback's block counts whenever it was, so the scan goes to the end.
        latest = max(self.instants, default="")
        inflight = self.instants - completed
        return replace(self.slices.committed, completed=completed, latest=latest, first_active=first, inflight=inflight)


@dataclass(frozen=True, slots=True, eq=False)
class ChangeData:
    """What a read of change data is made of: for each file group that changed, its steps, oldest first."""

    state: TableState
    groups: tuple[tuple[ChangeStep, ...], ...]
    reader: ChangeReader
    begin: str
    end: str

    def __str__(self) -> str:
        return f"change data in ({self.begin or 'earliest'}, {self.end}] of {self.state.config.name}"


def plan_change_data(
    state: TableState, begin: Point, end: Point | None = None, settings: ReadSettings = DEFAULT_READ
) -> ChangeData:
    """Which files hold the changes of the commits in (begin, end].

    begin, end  as of `plan_changes`
    settings    `ChangeDataOptions` and `IncrementalOptions` among others
    Raises      InvalidOption on a pattern of paths; UnsupportedTable on a table without change data, unless the options
                say to compute it; HistoryGone when
                commits are archived, or files are gone that images are in; as `plan_changes` of a malformed range;
                HollowCommit

    The range's commits and the folders of the partitions that they wrote to are looked at.
    """
    image_settings = settings.change_data
    if settings.incremental.path_glob:
        raise InvalidOption(
            "hoodie.datasource.read.incr.path.glob: change data is of all files; filter it by the partition columns"
        )
    _require_change_data(state.config, image_settings.infer)
    return on_newest(state, lambda state: _change_data(state, begin, end, settings))


def _change_data(state: TableState, begin: Point, end: Point | None, settings: ReadSettings) -> ChangeData:
    span = commits_between(state, begin, end, settings.incremental)
    refuse_lost_commit(state, settings, span.end)
    # However the range is counted, this is the order in which they changed rows.
    in_order = (
        sorted(span.commits, key=lambda instant: instant.completed) if span.timeline.layout == 2 else span.commits
    )
    commits = read_commits(state.storage, span.timeline, in_order)
    partitions = touched_partitions(commits)
    view = FileSystemView(span.timeline)
    if partitions:
        view = load_view(state.storage, span.timeline, state.config, partitions)
    steps, missing = change_steps(view, commits, _images_in(state.config.logged_images))
    missing += _cleaned_before(state, view, steps)
    if missing:
        problem = f"{len(missing)} files with their images are gone, such as {missing[0].name}: cleaned away or lost"
        raise HistoryGone(span.begin, span.end, problem, max(file.instant for file in missing), images=True)
    as_text = settings.change_data.images is ChangeImages.JSON
    groups = tuple(tuple(steps[group]) for group in sorted(steps))
    return ChangeData(state, groups, _reader(state, view.timeline, as_text, settings), span.begin, span.end)


def _cleaned_before(
    state: TableState, view: FileSystemView, steps: Mapping[FileGroupId, Sequence[ChangeStep]]
) -> list[GoneFile]:
    """The files of the slices that overwrites took away and cleaning removed, where an older slice is still there: of a
    savepoint, say. No statistic of the overwrite names them."""
    taken = {group: of_group[-1] for group, of_group in steps.items() if of_group[-1].takes_away}
    if not taken:
        return []
    missing, paths = [], paths_in(view)
    first = min(step.instant for step in taken.values())
    for cleaning in cleanings(state.storage, state.config, state.timeline, first):
        for file in (parse_data_file(*split(path), 0) for path in sorted(cleaning.files - paths)):
            if file is None or (step := taken.get(file.group)) is None or step.before is None:
                continue
            base = file.base_instant
            if step.before.base_instant < base < step.instant:
                missing.append(GoneFile(step.instant, file.name))
    return missing


def _reader(state: TableState, timeline: Timeline, as_text: bool, settings: ReadSettings) -> ChangeReader:
    schema = read_schema(state)
    visible = timeline.visible()
    return ChangeReader(
        slice_reader(state, schema, None, settings),
        image_type(schema),
        as_text,
        visible.completed,
        frozenset(instant.requested for instant in timeline.instants) | timeline.history.keys(),
        visible.first,
        timeline.completions() if timeline.layout == 2 else {},
    )


def _images_in(logged: LoggedImages) -> ImagesIn:
    return ImagesIn(logged is not LoggedImages.OP_KEY_ONLY, logged is LoggedImages.DATA_BEFORE_AFTER)


def _require_change_data(config: TableConfig, infer: bool) -> None:
    if not config.meta_fields:
        raise UnsupportedTable(
            f"{config.name} stores no commit times (hoodie.populate.meta.fields=false): what changed is not known"
        )
    if not config.cdc and not infer:
        raise UnsupportedTable(
            f"{config.name}: no change data is logged (hoodie.table.cdc.enabled=false). hoodie.read.cdc.infer=true "
            "computes it by comparing file slices"
        )
