"""How far a stream of a table's changes has come, and how far it may go next.

A micro-batch is an incremental query of (start, end]; which rows that gives, `hoodie.reading.changes.plan` says.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from hoodie.config.read import HolePolicy, IncrementalOptions, ReadSettings
from hoodie.errors import InvalidInput
from hoodie.reading.changes.plan import commits_between
from hoodie.storage.protocol import redacted_path
from hoodie.table.state import TableState
from hoodie.timeline.points import Point
from hoodie.view.incremental import EARLIEST, LATEST, is_word

POLICY = "hoodie.read.timeline.holes.resolution.policy"
VERSION = "hoodie.datasource.read.incr.table.version"
_INSTANT = "instant"


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """How far a stream has come.

    position  of the last commit that was taken; "" before all
    first     the position where the stream began. Spark keeps the end of the first micro-batch but not its start, and
              asks for that again when it repeats the batch: "latest" would be another one then
    order     what positions are: "instant", or "completion" where ranges are about when commits were completed
    table     name of the table
    path      of the table
    """

    position: str
    first: str
    order: str
    table: str
    path: str

    def as_json(self) -> dict[str, str]:
        """What a checkpoint holds."""
        return asdict(self)

    def counted(self, how: IncrementalOptions) -> IncrementalOptions:
        """The options of a stream that goes on from here: by instants still where its table was upgraded since."""
        return how.by_instant() if self.order == _INSTANT else how


def read_offset(fields: Mapping[str, object], state: TableState, how: IncrementalOptions) -> StreamOffset:
    """The offset of a checkpoint. Raises InvalidInput when it is of another table, source or policy."""
    try:
        offset = StreamOffset(**{name: str(fields[name]) for name in StreamOffset.__dataclass_fields__})
    except KeyError as missing:
        raise InvalidInput(
            f"the checkpoint's offset {dict(fields)} is not of a stream of hudi: it has no {missing}. Take a "
            "checkpoint folder of its own for each query"
        ) from None
    now = _offset(state, offset.counted(how), "", "")
    if (offset.table, offset.path) != (now.table, now.path):
        raise InvalidInput(
            f"the checkpoint is of table {offset.table!r} at {offset.path}, and the stream reads {now.table!r} at "
            f"{now.path}. Take a new checkpoint folder. If it is the same table in a new place, begin there with "
            f"hoodie.datasource.streaming.startOffset={offset.position or EARLIEST}"
        )
    if offset.order != now.order:
        raise InvalidInput(
            f"the checkpoint counts by {offset.order}, and {POLICY}, {VERSION} or the table's version say to count by "
            f"{now.order}: set the options as they were; or, where the table was downgraded, take a new checkpoint "
            f"folder and begin with hoodie.datasource.streaming.startOffset={offset.position or EARLIEST}"
        )
    return offset


def first_offset(state: TableState, start: Point, how: IncrementalOptions) -> StreamOffset:
    """Where a new stream begins.

    start   an instant, a point in time, "earliest" or "latest"
    Raises  InvalidInput; InstantNotFound
    """
    if is_word(start, LATEST):
        newest = next_offset(state, _offset(state, how, "", ""), how, with_archived=False).position
        return _offset(state, how, newest, newest)
    commits = commits_between(state, start, None, how)
    return _offset(state, how, commits.begin, commits.begin)


def next_offset(
    state: TableState,
    start: StreamOffset,
    how: IncrementalOptions,
    most: int = 0,
    up_to: StreamOffset | None = None,
    *,
    with_archived: bool = True,
) -> StreamOffset:
    """The end of the next micro-batch; `start` when there is nothing new.

    most           commits that it takes at most; 0: all
    up_to          where the stream ends, whatever is committed later; None: nowhere
    with_archived  look for commits since `start` that left the timeline, too
    Raises         HollowCommit, where the options say so
    """
    if up_to is not None and up_to.position <= start.position:
        return start
    end = None if up_to is None else up_to.position
    begin = start.position or EARLIEST
    commits = commits_between(state, begin, end, how, with_archived=with_archived)
    if not commits.commits:
        return start
    last = commits.commits[min(most or len(commits.commits), len(commits.commits)) - 1]
    return replace(start, position=commits.position(last))


def begin_of(start: StreamOffset, end: StreamOffset) -> str:
    """The position after which a micro-batch begins."""
    return end.first if start.position == start.first else start.position


def range_settings(settings: ReadSettings) -> ReadSettings:
    """Those of reading a range that was chosen before: a commit that is pending in it by now is an error."""
    if settings.incremental.holes is not HolePolicy.BLOCK:
        return settings
    return replace(settings, incremental=replace(settings.incremental, holes=HolePolicy.FAIL))


def _offset(state: TableState, how: IncrementalOptions, position: str, first: str) -> StreamOffset:
    order = "completion" if how.by_completion(state.timeline.layout) else _INSTANT
    return StreamOffset(position, first, order, state.config.name, redacted_path(state.storage.root).rstrip("/"))
