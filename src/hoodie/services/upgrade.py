"""A table gets a later version of the format: failed writes go, every compaction is finished and every group compacted,
then the timeline is copied in its new form, and the settings say so last.

A process that dies before the settings are written leaves the table in its old version, and one that dies after them
files that nobody reads; a repetition goes on. Design: docs/design/table-versions.md.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from hoodie.commit.transaction import clean_up
from hoodie.config.table import PROPERTIES_FOLDER, TableConfig, from_properties, require_writable
from hoodie.display.render import Displayed
from hoodie.display.summary import ResultSummary, summary
from hoodie.errors import InvalidOption, UnsupportedTable, WriteConflict
from hoodie.index.bucket import buckets_of, hash_fields
from hoodie.index.consistent_hashing import keeps_metadata
from hoodie.index.stored_keys import keys_in
from hoodie.keygen.keygen import Kind, stored_key_generator
from hoodie.locks import Lock
from hoodie.lookup.index_choice import is_bucket
from hoodie.merge.payloads import KNOWN_PAYLOADS
from hoodie.metadata.keeping.drop import drop_metadata
from hoodie.model.instant import Action, State
from hoodie.model.table_version import VERSIONS, WRITTEN, TableVersion
from hoodie.services.clean import resume_clean
from hoodie.services.compaction.job import RunTasks
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage, join
from hoodie.table.create import with_path_options
from hoodie.table.properties import load_properties, recover, update_properties
from hoodie.table.replacement import settle
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state, writer_keygen
from hoodie.table.upgraded_timeline import copy_timeline, files_of_layout_1
from hoodie.table.version_properties import upgraded
from hoodie.timeline.archive import archive_files
from hoodie.timeline.load import moves_rows
from hoodie.timeline.stopped_upgrade import COPIED, move_back, stopped_upgrade
from hoodie.view.slices import latest_base_files, latest_slices

_log = logging.getLogger("hoodie.services")

#: All groups with logs, whatever the options of the table say of how much.
_ALL = {"hoodie.compaction.strategy": "org.apache.hudi.table.action.compact.strategy.UnBoundedCompactionStrategy"}
#: How often what others began is finished, before the change of the version is refused.
_TRIES = 3


@dataclass(frozen=True, slots=True, repr=False)
class UpgradeResult(Displayed):
    """What an upgrade or a downgrade did, or would do.

    before, version  of the format
    steps      in their order, for people; none: the table has the version already
    settings   properties that change; None: it goes
    dry_run    nothing was changed
    """

    before: int
    version: int
    steps: tuple[str, ...] = ()
    settings: Mapping[str, str | None] | None = None
    dry_run: bool = False

    def __str__(self) -> str:
        if not self.steps:
            return f"the table has version {self.version} already"
        word = "upgraded" if self.before < self.version else "downgraded"
        verb = f"would be {word}" if self.dry_run else word
        readers = f"read by {VERSIONS[self.version].engines}; before by {VERSIONS[self.before].engines}"
        return "\n".join(
            [f"{verb} from version {self.before} to {self.version}, {readers}", *(f"  {step}" for step in self.steps)]
        )

    def _summary(self) -> ResultSummary:
        return summary(str(self).partition("\n")[0], ("step",), [(step,) for step in self.steps], len(self.steps))


@typed_errors()
def upgrade(
    storage: Storage, settings: Settings, to: int, *, dry_run: bool = False, run: RunTasks | None = None
) -> UpgradeResult:
    """Give a table a later version of the format. Rows, and what reads as of earlier instants give, stay.

    to       8 or 9
    dry_run  only say what would be done
    run      carries compactions out; None: threads of this process
    settings what they say of partition paths, and the table leaves to its writers, becomes part of the table
    Raises   InvalidOption on another version, or an earlier one; UnsupportedTable when the table could not be written
             afterwards, or another engine has work on it that is pending; WriteConflict when another process writes
             meanwhile: call it again. The table has its old version then
    """
    if moved := _moved_by_hudi(storage):
        step = f"move {len(moved)} instant files back, which an upgrade by Hudi that stopped half-way has moved"
        if dry_run:
            version = f"change hoodie.properties to version {to}"
            return UpgradeResult(6, to, (step, "what an upgrade needs then", version), dry_run=True)
        with settings.writers.lock_on(storage):
            move_back(storage)
        result = upgrade(storage, settings, to, run=run)
        return replace(result, steps=(step, *result.steps))
    state = load_state(storage)
    require_writable(state.config, KNOWN_PAYLOADS)
    before, target = state.layout.version, target_version(state, to, later=True)
    if before is target:
        if not dry_run:
            _sweep(state, "")
        return UpgradeResult(to, to, dry_run=dry_run)
    config, change = _config_after(state, target, settings)
    steps = _steps(state, target)
    if dry_run:
        return UpgradeResult(before.number, to, steps, change, dry_run=True)
    if settle(storage, state.config):
        state = state.reload()
    word = "" if before.layout == target.layout else "Upgrade"
    with locked_when_ready(state, settings, run, word) as (lock, state):
        config, change = _config_after(state, target, settings)
        if state.config.has_metadata_table:
            drop_metadata(storage)
        if before.layout != target.layout:
            copy_timeline(state, config)
        lock.check()
        update_properties(storage, change)
        _sweep(load_state(storage), state.config.history_folder)
    _log.info("%s: upgraded from version %d to %d", state.config.name, before.number, to)
    return UpgradeResult(before.number, to, steps, change)


def _moved_by_hudi(storage: Storage) -> list[str]:
    """The instants of a table of version 6 that Hudi's upgrade has moved before it stopped."""
    if from_properties(load_properties(storage)).layout != 1:
        return []
    return stopped_upgrade(storage, [entry.name for entry in storage.list(PROPERTIES_FOLDER)])


def target_version(state: TableState, to: int, *, later: bool) -> TableVersion:
    """The version of a number. Raises InvalidOption unless it is the table's, or a later one; else an earlier one"""
    if to not in WRITTEN:
        raise InvalidOption(f"version {to}: expected one of {', '.join(map(str, WRITTEN))}")
    name, version = state.config.name, state.config.version
    if later and to < version:
        advice = f"downgrade it (hoodie downgrade PATH --to {to})"
        raise InvalidOption(f"{name} has version {version}, and {to} is an earlier one: {advice}")
    if not later and to > version:
        raise InvalidOption(f"{name} has version {version}, and {to} is a later one: upgrade it")
    return VERSIONS[to]


def _config_after(
    state: TableState, target: TableVersion, settings: Settings
) -> tuple[TableConfig, dict[str, str | None]]:
    """The settings afterwards, and how they differ. Raises UnsupportedTable when such a table is not written here."""
    before = with_path_options(state, settings.options).config
    config = from_properties(upgraded(before.properties, target))
    change = change_of(state.config, config)
    require_writable(config, KNOWN_PAYLOADS)
    keygen = stored_key_generator(before.properties)
    single = target.prefixes_single_key and keygen.kind is Kind.COMPLEX and len(keygen.record_keys) == 1
    if single and not writer_keygen(state).prefix_single_key and state.timeline.commits:
        raise UnsupportedTable(
            f"{config.name}: its keys are values of {keygen.record_keys[0]}, and writers of version {target.number} "
            "put the column's name before them: they would not find its rows. Upgrade it to 8"
        )
    refuse_moved_keys(state, settings, target)
    refuse_pending(state, "upgrade")
    return config, change


def change_of(before: TableConfig, after: TableConfig) -> dict[str, str | None]:
    """The properties that differ, as they are afterwards. None: it goes."""
    old, new = before.properties, after.properties
    change: dict[str, str | None] = {key: value for key, value in new.items() if old.get(key) != value}
    return change | dict.fromkeys(key for key in old if key not in new)


def refuse_moved_keys(state: TableState, settings: Settings, target: TableVersion) -> None:
    """Raise UnsupportedTable where writers of the other version would look for a key in another bucket."""
    bases = latest_base_files(state.view())
    if target.keys_hold_commas == state.layout.version.keys_hold_commas or not bases:
        return
    if not (all(is_bucket(group.file_id) for group in bases) or keeps_metadata(state.storage, state.timeline)):
        return
    fields = hash_fields(settings.options, state.config)
    afterwards = replace(fields, hold_commas=target.keys_hold_commas)
    for base in bases.values():
        keys = keys_in(state.storage, base.path, base.size)
        moved = np.flatnonzero(buckets_of(keys, fields, 1 << 31) != buckets_of(keys, afterwards, 1 << 31))
        if len(moved):
            raise UnsupportedTable(
                f"{state.config.name}: commas and colons in its keys, such as {keys[int(moved[0])].as_py()!r} of "
                f"{base.path}, mean other buckets in version {target.number}: its writers would not find these rows, "
                "and write them a second time. Write the rows into a new table of that version"
            )


def refuse_pending(state: TableState, word: str) -> None:
    """Raise UnsupportedTable while work is pending that another engine has planned, and that is not carried out here.

    word  what cannot be done before
    """
    pending = state.timeline.pending({Action.CLUSTERING, Action.LOG_COMPACTION, Action.RESTORE, Action.INDEXING})
    replaces = state.timeline.pending({Action.REPLACE_COMMIT})  # a write of ours that died is rolled back
    clusterings = [i for i in replaces if moves_rows(state.storage, state.timeline, i)]
    if others := [*pending, *clusterings]:
        raise UnsupportedTable(
            f"{state.config.name}: the {others[0].action} {others[0].requested} is pending. Run it, or roll it back, "
            f"with the engine that planned it; then {word}"
        )


def _steps(state: TableState, target: TableVersion) -> tuple[str, ...]:
    steps: list[str] = []
    timeline = state.timeline
    if state.layout.version.layout != target.layout:
        steps += steps_before(state)
        archived = len(archive_files(state.storage, state.config))
        steps.append(f"copy {len(timeline.instants)} instants and {archived} archive files into the new timeline")
    if state.config.has_metadata_table:
        steps.append("remove the metadata table, which Hudi builds again")
    steps.append(f"change hoodie.properties to version {target.number}")
    return tuple(steps)


def steps_before(state: TableState) -> list[str]:
    """What has to be done before instants get another form, for people."""
    steps, timeline = [], state.timeline
    if failed := timeline.pending({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT}):
        steps.append(f"roll back failed writes: {', '.join(i.requested for i in failed)}")
    if cleans := timeline.pending({Action.CLEAN}):
        steps.append(f"finish {len(cleans)} interrupted cleans")
    if planned := timeline.pending_compactions:
        steps.append(f"run planned compactions: {', '.join(i.requested for i in planned)}")
    if logs := _groups_with_logs(state):
        steps.append(f"compact {logs} file groups with logs")
    return steps


def _groups_with_logs(state: TableState) -> int:
    if not state.config.merge_on_read:
        return 0
    view = state.view()
    return sum(bool(slice_.logs) for slice_ in latest_slices(view).values())


def _make_ready(state: TableState, settings: Settings, run: RunTasks | None) -> None:
    """Nothing is pending afterwards, and no row is in a log."""
    storage = state.storage
    with settings.writers.lock_on(storage):
        state = clean_up(state.reload(), writers=settings.writers)
    for instant in state.timeline.pending({Action.CLEAN}):
        resume_clean(storage, instant, settings)
    if not state.config.merge_on_read:
        return
    while compact(storage, settings, run=run) is not None:
        pass
    every = Settings.of({**settings.options, **_ALL})
    if (instant_of_all := schedule_compaction(storage, every, at_once=True)) is not None:
        compact(storage, every, instant_of_all, run)


@contextmanager
def locked_when_ready(
    state: TableState, settings: Settings, run: RunTasks | None, word: str
) -> Iterator[tuple[Lock, TableState]]:
    """The table's lock, and its state under it: nothing is pending, and no row is in a log. What others begin before
    the lock is acquired, such as a clean, is finished as well, a few times.

    word    what is done then; "": it needs no such state
    Raises  WriteConflict
    """
    for tries in reversed(range(_TRIES)):
        if word:
            _make_ready(state, settings, run)
        with settings.writers.lock_on(state.storage) as lock:
            recover(state.storage)
            now = state.reload()
            try:
                if word:
                    _require_ready(now, word)
            except WriteConflict:
                if not tries:
                    raise
                continue
            yield lock, now
        return


def _require_ready(state: TableState, word: str) -> None:
    """Raise WriteConflict while something is pending, or rows are in logs of newest slices."""
    pending = [i for i in state.timeline.instants if i.state is not State.COMPLETED]
    if pending:
        raise WriteConflict(
            f"the {pending[0].action} {pending[0].requested} is pending: another process is at work, or died, and "
            f"`hoodie check` says what to do then. {word} again once it has ended; the table has its old version"
        )
    if logs := _groups_with_logs(state):
        raise WriteConflict(
            f"{logs} file groups have rows in logs that are not compacted: another process has written meanwhile, or "
            f"their files are missing. {word} again; the table has its old version"
        )


def _sweep(state: TableState, archive: str) -> None:
    """Remove the timeline of the old version, once the settings name another.

    archive  its folder of archived instants; "": these stay
    """
    if state.layout.version.layout == 1:
        return
    state.storage.discard(join(state.layout.folder, COPIED))
    for file in files_of_layout_1(state.storage, state.config):
        state.storage.discard(f"{PROPERTIES_FOLDER}/{file.name}")
    for entry in state.storage.list(archive) if archive else ():
        if entry.name.startswith(".commits_.archive."):
            state.storage.discard(join(archive, entry.name))
