"""The names of the timeline's files, which names are not the timeline's, and what is in the files of a commit.

Source: docs/format/table-and-timeline.md 5.2, 5.3 and 9.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from hoodie.config.table import PROPERTIES_FOLDER, TableConfig, TimelineZone
from hoodie.errors import CorruptFile
from hoodie.formats.timeline.commit_json import decode_commit, encode_commit, encode_inflight
from hoodie.model.commit import CommitMetadata
from hoodie.model.instant import Action, Instant, State
from hoodie.model.table_version import VERSIONS, TableVersion

_NAMES = {
    1: re.compile(r"(?P<time>\d+)(?P<action>\.\w+)(?P<state>\.\D+)?", re.ASCII),
    2: re.compile(r"(?P<time>\d+)(?:_(?P<completed>\d+))?(?P<action>\.\w+)(?P<state>\.\D+)?", re.ASCII),
}
# What Hudi writes on HDFS before it renames: the name with a UUID behind.
_HALF_WRITTEN = re.compile(r"\d+(_\d+)?\.[a-z.]+\.[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_STATES = {".requested": State.REQUESTED, ".inflight": State.INFLIGHT, None: State.COMPLETED}

#: The action under which a pending one completes.
COMPLETES_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}


def comparable_action(action: Action) -> Action:
    """The word that all states of an instant share."""
    return COMPLETES_AS.get(action, action)


def instant_file_name(instant: Instant, layout: int = 1) -> str:
    """The name of an instant's file, without folder.

    layout  1: `<time>.<action>`; 2: a completed one is `<time>_<completed>.<action>`
    """
    if instant.state is State.COMPLETED:
        time = f"{instant.requested}_{instant.completed}" if layout == 2 else instant.requested
        return f"{time}.{comparable_action(instant.action)}"
    if instant.action is Action.COMMIT and instant.state is State.INFLIGHT:
        return f"{instant.requested}.inflight"
    return f"{instant.requested}.{instant.action}.{instant.state.name.lower()}"


@dataclass(frozen=True, slots=True)
class TimelineLayout:
    """Where the instants of a table lie and what their files are called: what a writer needs of them. Pickles.

    version  of the table
    folder   of the active timeline, relative to the base path
    zone     in which completion times are given
    """

    version: TableVersion = VERSIONS[6]
    folder: str = PROPERTIES_FOLDER
    zone: TimelineZone = TimelineZone.UTC

    @property
    def stamps_completion(self) -> bool:
        """Whether the name of a completed instant says when that was; commits are Avro then, else JSON."""
        return self.version.layout == 2

    def path(self, instant: Instant) -> str:
        """The path of an instant's file, relative to the base path; of a completed one with its completion time."""
        return f"{self.folder}/{instant_file_name(instant, self.version.layout)}"

    def parse(self, name: str) -> Instant | None:
        """The instant of a file in the folder. Raises and returns as `parse_name`."""
        return parse_name(name, self.version.layout, self.folder)


#: The layout of table version 6.
LAYOUT_1 = TimelineLayout()


def layout_of(config: TableConfig) -> TimelineLayout:
    """The layout of a table's timeline."""
    return TimelineLayout(VERSIONS[config.version], config.timeline_folder, config.timezone)


#: Names of timeline files whose instants are remembered, of all tables.
_REMEMBERED = 2_000


def parse_name(name: str, layout: int, folder: str) -> Instant | None:
    """The instant of a file in the timeline's folder; None for a known companion.

    Companions: names that do not start with a digit (hoodie.properties, checksums, temporary files) and Hudi's half
    written ones on HDFS. A completed instant of layout 2 whose name has no completion time keeps it "".

    Raises CorruptFile on any other name: what looks like an instant must not be ignored.
    """
    if not name[:1].isdigit():
        return None
    instant = _parsed(name, layout)
    if instant is None:
        if _HALF_WRITTEN.fullmatch(name):
            return None
        raise CorruptFile(
            f"{folder}/{name}",
            "looks like an instant, but its kind is unknown",
            advice="If it does not belong to the table, move it away; else read it with the library that wrote it.",
        )
    return instant


@lru_cache(_REMEMBERED)
def _parsed(name: str, layout: int) -> Instant | None:
    """A writer lists its timeline several times a commit, and all names but a few are those of the listing before."""
    match = _NAMES[layout].fullmatch(name)
    return _instant(match) if match else None


def _instant(match: re.Match[str]) -> Instant | None:
    groups = match.groupdict()
    time, word, suffix, completed = groups["time"], groups["action"], groups["state"], groups.get("completed") or ""
    if word == ".inflight" and suffix is None and not completed:
        return Instant(time, Action.COMMIT, State.INFLIGHT)
    if suffix not in _STATES or word[1:] not in _WORDS:
        return None
    action, state = Action(word[1:]), _STATES[suffix]
    completes_otherwise = action in COMPLETES_AS
    no_such_state = (
        (state is State.COMPLETED and completes_otherwise)
        or (state is State.INFLIGHT and action is Action.COMMIT)  # it is `<time>.inflight`
        or (state is State.REQUESTED and action is Action.SAVEPOINT)
        or (state is not State.COMPLETED and completed)
    )
    return None if no_such_state else Instant(time, action, state, completed)


_WORDS = frozenset(action.value for action in Action)


#: How an Avro container begins; other commit files are JSON.
AVRO_MAGIC = b"Obj\x01"


def completed_content(metadata: CommitMetadata, action: Action, layout: TimelineLayout) -> bytes:
    """The content of a completed commit, delta commit or replace commit.

    action  of the instant, pending or completed
    """
    if not layout.stamps_completion:
        return encode_commit(metadata)
    from hoodie.formats.timeline.commit_avro import encode_avro_commit

    return encode_avro_commit(metadata, replacing=comparable_action(action) is Action.REPLACE_COMMIT)


def inflight_content(profile: CommitMetadata, layout: TimelineLayout) -> bytes:
    """The content of an inflight write: its workload profile (`inflight_profile`)."""
    if not layout.stamps_completion:
        return encode_inflight(profile)
    from hoodie.formats.timeline.commit_avro import encode_avro_commit

    return encode_avro_commit(profile)


def commit_content(data: bytes, path: str, instant: Instant) -> CommitMetadata:
    """The metadata in the file of a completed or inflight write, in whichever form it is.

    path    of the file, for errors
    Raises  CorruptFile
    """
    if not data.startswith(AVRO_MAGIC):
        return decode_commit(data, path)
    from hoodie.formats.timeline.commit_avro import decode_avro_commit

    replacing = instant.state is State.COMPLETED and comparable_action(instant.action) is Action.REPLACE_COMMIT
    return decode_avro_commit(data, path, replacing)
