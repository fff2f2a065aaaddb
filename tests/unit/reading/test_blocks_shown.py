"""What may be kept of logs that were read at an earlier moment: held against scans of the same blocks at both."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from hypothesis import event, given
from hypothesis import strategies as st

from hoodie.formats.log.blocks import BlockKind, BlockMap, HeaderKey
from hoodie.merge.log_scan import Committed, blocks_to_merge
from hoodie.model.instant import Action, Instant, State
from hoodie.reading.slices.log_scanner import logs_shown_since
from hoodie.view.published import PublishedNames

INSTANTS = "123456789"


@dataclass(frozen=True)
class Block:
    header: BlockMap
    kind: BlockKind = BlockKind.AVRO_DATA


class Stage(Enum):
    ABSENT = 0  # not begun yet
    PENDING = 1
    COMPLETED = 2
    GONE = 3  # rolled back or restored: its files with it


def of_instant(instant: str) -> Block:
    return Block(BlockMap(((HeaderKey.INSTANT_TIME, instant),)))


def published(instant: str, *names: str) -> PublishedNames:
    return PublishedNames(Instant(instant, Action.DELTA_COMMIT, State.COMPLETED), {"p": names})


def reader_at(stages: dict[str, Stage], archived: str) -> Committed:
    """What a reader sees of a timeline from which completed instants before one were archived."""
    done = {instant for instant, stage in stages.items() if stage is Stage.COMPLETED and instant >= archived}
    pending = {instant for instant, stage in stages.items() if stage is Stage.PENDING}
    newest = max(done | pending, default="")
    return Committed(completed=frozenset(done), latest=newest, first_active=min(done, default=""), inflight=pending)


@st.composite
def two_moments(draw: st.DrawFn) -> tuple[Committed, Committed, list[str], list[PublishedNames]]:
    """The timeline then and now, which instant wrote which of a slice's files, and the commits that are known."""
    begun = draw(st.integers(0, 9))
    then = {
        instant: draw(st.sampled_from([Stage.PENDING, Stage.COMPLETED, Stage.GONE])) if number < begun else Stage.ABSENT
        for number, instant in enumerate(INSTANTS)
    }
    now = {instant: draw(st.sampled_from([s for s in Stage if s.value >= then[instant].value])) for instant in INSTANTS}
    cuts = sorted(draw(st.tuples(st.sampled_from(INSTANTS), st.sampled_from(INSTANTS))))
    there = [instant for instant in INSTANTS if now[instant] is not Stage.GONE]
    writers = draw(st.lists(st.sampled_from(there), max_size=5)) if there else []
    # Files of writes that began after the timeline was listed come last: they took a later version.
    writers.sort(key=lambda instant: then[instant] is Stage.ABSENT)
    known = [
        published(instant, *(str(file) for file, writer in enumerate(writers) if writer == instant))
        for instant in INSTANTS
        if now[instant] is Stage.COMPLETED and (instant >= cuts[1] or draw(st.booleans()))
    ]
    return reader_at(then, cuts[0]), reader_at(now, cuts[1]), writers, known


def seen(files: Sequence[str], reader: Committed) -> list[str]:
    return [block.header.instant for block in blocks_to_merge(map(of_instant, files), reader).blocks]


@given(two_moments())
def test_files_that_no_new_commit_wrote_show_the_same_blocks(
    case: tuple[Committed, Committed, list[str], list[PublishedNames]],
) -> None:
    then, now, writers, commits = case
    shown = logs_shown_since(then, now, commits)
    kept = shown is not None and not any(("p", str(file)) in shown for file in range(len(writers)))
    event(f"kept: {kept and bool(writers)}")
    if kept:
        assert seen(writers, then) == seen(writers, now)


def test_a_commit_shows_the_files_that_it_wrote_and_no_others() -> None:
    then, now = (Committed(completed=frozenset(done), latest=max(done)) for done in ("12", "123"))
    assert logs_shown_since(then, now, [published("2", "a"), published("3", "b", "c")]) == {("p", "b"), ("p", "c")}
    assert logs_shown_since(then, then, []) == frozenset()


def test_nothing_is_kept_where_a_commit_is_not_known_or_went() -> None:
    then, now = (Committed(completed=frozenset(done), latest=max(done)) for done in ("12", "123"))
    assert logs_shown_since(then, now, [published("2", "a")]) is None
    assert logs_shown_since(now, then, [published("2", "a"), published("3", "b")]) is None


def test_a_write_that_was_pending_then_and_is_archived_by_now_is_not_known() -> None:
    then = Committed(completed=frozenset("13"), latest="3", inflight=frozenset("2"))
    now = Committed(completed=frozenset("3"), latest="3", first_active="3")
    assert now.shows("2")
    assert not then.shows("2")
    assert logs_shown_since(then, now, [published("3", "c")]) is None
