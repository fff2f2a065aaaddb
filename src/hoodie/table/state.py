"""A table as it is at one moment: settings, timeline, schema, and the slices of partitions when asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from typing import TypeVar

import pyarrow as pa

from hoodie.config.read import ReadSettings
from hoodie.config.table import TableConfig, from_properties
from hoodie.display.short import Short
from hoodie.errors import CorruptFile, DamagedLog, ListingStale, MissingFile, MissingFileIgnored, WriteConflict
from hoodie.formats.avro.schema import user_columns
from hoodie.formats.parquet.base_footer import read_footer
from hoodie.formats.parquet.stored_types import with_newer_units
from hoodie.formats.timeline.internal_schema import LATEST_SCHEMA
from hoodie.keygen.keygen import KeyGenerator, Kind, following_stored_keys, key_generator, number_time_columns
from hoodie.model.commit import CommitMetadata, Operation
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.model.instant import Action, Instant
from hoodie.schema.schema import ALSO_TEXT
from hoodie.storage.protocol import Entry, Storage, in_threads, meanwhile
from hoodie.table.altered_columns import with_columns_written
from hoodie.table.properties import load_properties
from hoodie.table.replacement import NOT_YET, WAITING, settings_in_force
from hoodie.timeline.load import list_timeline, load_timeline, read_commit
from hoodie.timeline.timeline import Timeline, TimelineLayout, layout_of
from hoodie.view.load import Folders, load_view, require_rows
from hoodie.view.published import Missing, missing_for_writers
from hoodie.view.slices import FileSystemView, committed_slices, latest_base_files, latest_slices

T = TypeVar("T")
Slices = Mapping[str, Sequence[FileSlice]]

#: Operations that rewrite rows as they are: their commit does not say what the table's columns are.
KEEPS_SCHEMA = frozenset({Operation.CLUSTER, Operation.COMPACT, Operation.LOG_COMPACT, Operation.INDEX})
BaseFiles = Mapping[str, Sequence[BaseFile]]

#: Commits that are looked at, at most, to learn how large a record is: a write must not cost more as history grows.
_LEARN_FROM = 10


@dataclass(frozen=True, slots=True, repr=False)
class TableFiles(Short):
    """What a writer sees of a table, by partition path.

    slices  what it adds to, one a file group
    bases   where it looks keys up: the newest base file of each group that has one. While a compaction of the group is
            pending that is not the slice's, which has none yet.
    compacted  those of `bases` that a compaction made, with the logs of their slices; without logs they are left out
    unmarked   partitions that lost their metafile, which the write restores
    """

    slices: Slices = field(default_factory=dict)
    bases: BaseFiles = field(default_factory=dict)
    compacted: Mapping[BaseFile, tuple[LogFile, ...]] = field(default_factory=dict)
    unmarked: frozenset[str] = frozenset()

    @property
    def groups(self) -> dict[FileGroupId, FileSlice]:
        """The slices by file group."""
        return {slice_.group: slice_ for part in self.slices.values() for slice_ in part}


@dataclass(frozen=True, repr=False)
class TableState(Short):
    """Settings and timeline of a table, loaded together."""

    storage: Storage
    config: TableConfig
    timeline: Timeline

    @cached_property
    def layout(self) -> TimelineLayout:
        """Where its instants lie, and what writers call their files."""
        return layout_of(self.config)

    def reload(self) -> TableState:
        """The state now."""
        return load_state(self.storage)

    def look_again(self) -> TableState:
        """The state now, a moment after it was loaded. What the timeline said of instants that are not completed twice
        is not asked for again, so that it costs what has changed."""
        return load_state(self.storage, self.timeline)

    def commits(self) -> Iterator[CommitMetadata]:
        """What commits did, newest first; each is read when it is asked for.

        Raises FileNotFoundError at one that went away since the timeline was loaded
        """
        return (read_commit(self.storage, self.timeline, instant) for instant in reversed(self.timeline.commits))

    def recent_commits(self, count: int = _LEARN_FROM) -> Iterator[CommitMetadata]:
        """As `commits`, of so many of the newest, those left out that went away: enough to learn from."""
        for instant in list(reversed(self.timeline.commits))[:count]:
            with suppress(FileNotFoundError):
                yield read_commit(self.storage, self.timeline, instant)

    def view(self, partitions: Iterable[str] | None = None, folders: Folders | None = None) -> FileSystemView:
        """The files of some partitions, None: of all, one listing each. Arguments and errors as of `load_view`"""
        return load_view(self.storage, self.timeline, self.config, partitions, folders)

    def slices(self, partitions: Collection[str] | None = None) -> Slices:
        """The file slices that a writer adds to, by partition path; None: of all partitions. One listing each.

        They are those that are there: whether published files are missing is not looked at.
        """
        return self._files(self.view(partitions)).slices

    def files(self, partitions: Collection[str] | None = None, reading: ReadSettings | None = None) -> TableFiles:
        """What a writer sees of some partitions; None: of all. One listing each, and the commits of the timeline that
        this process has not read yet.

        reading  nothing is to be written: settings of the read, which may say to go on without missing files
        Raises   MissingFile when a file is gone that a commit published there: rows would be lost, or written twice;
                 WriteConflict when that was so, and is no more: cleaning or another writer was at work meanwhile
        """
        view = self.view(partitions)
        self.require_complete(view, partitions, reading)
        return self._files(view)

    def groups(self, partitions: Collection[str] | None = None) -> dict[str, list[str]]:
        """The file ids of some partitions, by partition path, for those who take them all away; None: of all. Those
        whose files are missing are among them."""
        view = self.view(partitions)
        file_ids = {part: [s.group.file_id for s in slices] for part, slices in self._files(view).slices.items()}
        for file in self.missing(view, partitions):
            ids = file_ids.setdefault(file.group.partition, [])
            if file.group.file_id not in ids:
                ids.append(file.group.file_id)
        return file_ids

    def missing(self, view: FileSystemView, partitions: Collection[str] | None = None) -> list[Missing]:
        """The published files that a writer would build on, and that are not there, by path; by all commits of the
        timeline. partitions: those that the view is of"""
        return missing_for_writers(self.storage, self.config, view, partitions)

    def require_complete(
        self, view: FileSystemView, partitions: Collection[str] | None = None, reading: ReadSettings | None = None
    ) -> None:
        """See that the files that a writer builds on are there, in a view of some partitions. Raises as `files`."""
        lost = self.missing(view, partitions)
        if not lost:
            return
        now = self.reload()
        if now.timeline != self.timeline:
            view = now.view(partitions)
            still = now.missing(view, partitions)
            if not still:
                raise WriteConflict(
                    f"{lost[0].path} went away while the table was looked at: cleaning or another writer was at work; "
                    "try again"
                )
            lost = still
        tell_of_missing(self.storage, lost, reading)

    def _files(self, view: FileSystemView) -> TableFiles:
        slices: dict[str, list[FileSlice]] = {}
        for group, slice_ in latest_slices(view).items():
            slices.setdefault(group.partition, []).append(slice_)
        bases: dict[str, list[BaseFile]] = {}
        for group, base in latest_base_files(view).items():
            bases.setdefault(group.partition, []).append(base)
        compacted = self._compacted(view, bases) if self.config.merge_on_read else {}
        return TableFiles(slices, bases, compacted, view.unmarked)

    def _compacted(self, view: FileSystemView, bases: BaseFiles) -> dict[BaseFile, tuple[LogFile, ...]]:
        visible, latest = view.timeline.visible(), latest_slices(view)
        others = {i.requested for i in self.timeline.completed({Action.DELTA_COMMIT, Action.REPLACE_COMMIT})}
        logs = {}
        for base in (base for part in bases.values() for base in part):
            # What an instant before the timeline was, nobody says.
            if base.instant not in others and visible.committed(base.instant):
                slice_ = latest.get(base.group)
                if slice_ is None or slice_.base_instant != base.instant:  # a pending compaction has opened another
                    slices = committed_slices(view, base.group)
                    slice_ = next((one for one in slices if one.base_instant == base.instant), None)
                if slice_ is not None and slice_.logs:
                    logs[base] = slice_.logs
        return logs


def on_newest(state: TableState, look: Callable[[TableState], T], load: Callable[[], TableState] | None = None) -> T:
    """What a look at a table says; at a newer state of it where others archived commits that it was about to read.

    load    gives the state then; None: `reload`
    Raises  as `look`; FileNotFoundError where the timeline is as it was
    """
    while True:
        try:
            return look(state)
        except FileNotFoundError:
            newer = (load or state.reload)()
            if newer.timeline == state.timeline:
                raise
            state = newer


def load_state(storage: Storage, before: Timeline | None = None) -> TableState:
    """The table as it is now.

    before  its timeline as it was loaded earlier in this call
    Raises  TableNotFound; CorruptFile; UnsupportedTable when the table is of a kind that cannot be read
    """
    listed: list[Entry] | None = None
    if storage.remote:  # a table of version 8 or later has its timeline elsewhere: that one is listed then
        with meanwhile(storage, lambda: list_timeline(storage)) as listing:
            properties = load_properties(storage)
            listed = listing()
    else:
        properties = load_properties(storage)
    config = from_properties(properties)
    if WAITING not in properties:
        require_rows(storage, config)
        timeline = load_timeline(storage, config, listed, before)
        if listed is not None and _replaced_since(config, timeline):
            timeline = load_timeline(storage, config, before=before)
        return TableState(storage, config, timeline)
    timeline = load_timeline(storage, config, before=before)  # both tables have the same
    if (held := settings_in_force(properties, timeline)) is not None:
        config = from_properties(held)
    require_rows(storage, config)
    return TableState(storage, config, timeline)


def _replaced_since(config: TableConfig, timeline: Timeline) -> bool:
    """Whether the settings are of a table that replaced the one whose timeline was listed at the same time."""
    if config.replaced_at >= NOT_YET:
        return False
    completed = {instant.requested for instant in timeline.commits}
    return config.replaced_at > max(completed, default="")


def tell_of_missing(storage: Storage, lost: Sequence[Missing], reading: ReadSettings | None) -> None:
    """Refuse a table from which published files are gone, or warn. Each is asked for by its name before.

    lost     at least one
    reading  settings of a read, which may say to read what is left; None: of a write, which never goes on
    Raises   ListingStale when one is there all the same; MissingFile; CorruptFile of a log that is there and too short;
             else warns MissingFileIgnored of each file, DamagedLog of such a log
    """
    sizes = in_threads(lambda missing: storage.size(missing.path) if storage.exists(missing.path) else None, lost)
    ignored: list[DamagedLog | MissingFileIgnored] = []
    for missing, size in zip(lost, sizes, strict=True):
        instant, least = missing.instant, missing.file.size
        if size is None:
            ignored.append(MissingFileIgnored(missing.path, instant.requested, instant.action))
        elif missing.plan or size >= least:
            raise ListingStale(missing.path)
        else:
            problem = f"it has {size} bytes, and {instant.action} {instant.requested} published {least}"
            ignored.append(DamagedLog(missing.path, size, problem))
    if reading is not None and reading.missing.ignore:
        for warning in ignored:
            warnings.warn(warning, stacklevel=4)
        return
    first, warning = lost[0], ignored[0]
    if isinstance(warning, DamagedLog):
        advice = "Restore it from a copy of the table, or the table to a savepoint; or "
        also = "read what is left with hoodie.read.ignore.missing.files=true."
        advice += also if reading is not None else "put new rows in place of its partition with insert_overwrite."
        raise CorruptFile(first.path, warning.problem, advice=advice)
    doing = "write" if reading is None else "read"
    raise MissingFile(first.path, first.instant.requested, first.instant.action, len(lost), doing)


def declared_schema(state: TableState, as_of: str | None = None) -> pa.Schema | None:
    """The user's columns: of the newest commit that says (up to `as_of`, if one does), else as the table was created.

    as_of   instant, inclusive: a read as of then has the columns of then. (hudi-rs has those of today.) What their
            numbers mean, the newest commit knows best: Hudi before 1.1 declared milliseconds as microseconds
    returns None when nothing says: a new table
    """
    commits = [commit for commit in state.timeline.commits if commit.requested >= state.config.replaced_at]
    then = [instant for instant in commits if as_of is None or instant.requested <= as_of]
    later = commits[len(then) :]
    declarations = _declarations(state, [*reversed(then), *later])
    schema = next(declarations, None)
    if schema is None:
        return None
    if later and then and (newest := next(_declarations(state, list(reversed(later)), created=False), None)):
        schema = with_newer_units(schema, newest)
    return _with_value_types(state, schema, declarations)


def _declarations(state: TableState, instants: Sequence[Instant], *, created: bool = True) -> Iterator[pa.Schema]:
    """The user's columns as some commits declare them, then as the table was created; each is read when asked for."""
    for instant, metadata in _declaring(state, instants):
        schema = user_columns(metadata.schema, state.timeline.path(instant))
        if LATEST_SCHEMA in metadata.extra:
            schema = with_columns_written(state.storage, state.config, state.timeline, instant, metadata, schema)
        yield schema
    if created and state.config.create_schema:
        yield user_columns(state.config.create_schema, "hoodie.table.create.schema")


def _declaring(state: TableState, instants: Iterable[Instant]) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Those of some commits that say what the table's columns are; where none does, the first that kept them: the last
    write that did was archived, or rolled back."""
    fallback: tuple[Instant, CommitMetadata] | None = None
    declares = False
    for instant in instants:
        commit = read_commit(state.storage, state.timeline, instant)
        if commit.schema and commit.operation not in KEEPS_SCHEMA:
            declares = True
            yield instant, commit
        elif commit.schema and fallback is None:
            fallback = instant, commit
    if fallback is not None and not declares:
        yield fallback


def columns_by_id(state: TableState, as_of: str | None = None) -> dict[str, str]:
    """What a commit that keeps the columns carries on in its extra metadata: the version of them that Hudi reads its
    files by; empty unless Hudi has altered the table's columns with schema-on-read.

    as_of  instant, inclusive: of the columns then
    """
    commits = [commit for commit in state.timeline.commits if commit.requested >= state.config.replaced_at]
    then = (commit for commit in reversed(commits) if as_of is None or commit.requested <= as_of)
    _, metadata = next(_declaring(state, then), (None, None))
    text = None if metadata is None else metadata.extra.get(LATEST_SCHEMA)
    return {LATEST_SCHEMA: text} if text else {}


def _with_value_types(state: TableState, schema: pa.Schema, older: Iterator[pa.Schema]) -> pa.Schema:
    """The columns, with the type of its values for a partition column of numbers that paths have as times.

    Spark SQL takes such a column for the text that its path is: MERGE, UPDATE and DELETE by Hudi declare it as string,
    and write its numbers as text. How the table was created tells its type, or a commit before those.
    """
    for name in _number_times(frozenset(state.config.properties.items())):
        at = schema.get_field_index(name)
        if at < 0:
            continue
        column = schema.field(at)
        if column.type == pa.string():
            created = next(_declarations(state, []), None)
            schemas = [] if created is None else [created]
            kinds = (s.field(name).type for s in chain(schemas, older) if name in s.names)
            kind = next((kind for kind in kinds if kind != pa.string()), column.type)
            column = column.with_type(kind)
        schema = schema.set(at, column.with_metadata({**(column.metadata or {}), ALSO_TEXT: b"true"}))
    return schema


@lru_cache(maxsize=64)
def _number_times(properties: frozenset[tuple[str, str]]) -> tuple[str, ...]:
    return number_time_columns(dict(properties))


def table_keygen(state: TableState) -> KeyGenerator:
    """How rows of the table get their key and partition path, by its settings."""
    return _keygen(frozenset(state.config.properties.items()))


@lru_cache(maxsize=64)
def _keygen(properties: frozenset[tuple[str, str]]) -> KeyGenerator:
    return key_generator(dict(properties))


def writer_keygen(state: TableState) -> KeyGenerator:
    """As `table_keygen`, as the table's rows have their keys: releases differ in how COMPLEX writes a single one."""
    keygen = table_keygen(state)
    if keygen.kind is not Kind.COMPLEX or len(keygen.record_keys) != 1 or state.config.replaced_at == NOT_YET:
        return keygen
    return following_stored_keys(keygen, _key_samples(state))


def _key_samples(state: TableState) -> list[str]:
    """A record key or two of the table, as they are stored."""
    for commit in state.recent_commits(len(state.timeline.commits)):
        for stats in commit.stats.values():
            for stat in stats:
                if stat.path and stat.path.endswith(".parquet") and state.storage.exists(stat.path):
                    with state.storage.open_input(stat.path) as source:
                        footer = read_footer(source, stat.path)
                    return [key for key in (footer.min_key, footer.max_key) if key is not None]
    return []
