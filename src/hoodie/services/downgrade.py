"""A table gets an earlier version of the format: what is pending is finished, every file group is compacted, then the
timeline is copied in its earlier form, and the settings say so before logs get the names of that version.

A process that dies before the settings are written leaves the table in its version; one that dies after them leaves it
in the earlier one, whose newest rows are right, and which is not written before a repetition has finished the rest.
Design: docs/design/table-versions.md.
"""

import logging

from hoodie.config.table import DOWNGRADED_FROM, TableConfig, from_properties, require_writable
from hoodie.errors import UnsupportedTable
from hoodie.merge.payloads import KNOWN_PAYLOADS
from hoodie.metadata.keeping.drop import drop_metadata
from hoodie.model.table_version import TableVersion
from hoodie.services.compaction.job import RunTasks
from hoodie.services.upgrade import (
    UpgradeResult,
    change_of,
    locked_when_ready,
    refuse_moved_keys,
    refuse_pending,
    steps_before,
    target_version,
)
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.downgraded_timeline import LogNames, abandon_downgrade, copy_down, finish_downgrade, log_names
from hoodie.table.properties import recover, update_properties
from hoodie.table.replacement import settle
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state
from hoodie.table.version_properties import downgraded
from hoodie.timeline.completions import history_version
from hoodie.writing.write import refuse_column_types

_log = logging.getLogger("hoodie.services")

#: Partitions of the metadata table that somebody made by a statement: they are not built again.
_INDEXES = ("secondary_index_", "expr_index_")


@typed_errors()
def downgrade(
    storage: Storage, settings: Settings, to: int, *, dry_run: bool = False, run: RunTasks | None = None
) -> UpgradeResult:
    """Give a table an earlier version of the format. Rows, and what reads as of earlier instants give, stay.

    to       6 or 8
    dry_run  only say what would be done
    run      carries compactions out; None: threads of this process
    Raises   InvalidOption on another version, or a later one; UnsupportedTable when something would be lost: several
             ordering columns, rows of some columns in logs, a merge that no payload class does, an index; or when work
             is pending that another engine has planned. WriteConflict when another process writes meanwhile: call it
             again. Nothing has changed then but what compaction does
    """
    state = load_state(storage)
    if stopped := state.config.properties.get(DOWNGRADED_FROM):
        return _finish(storage, settings, to, int(stopped), dry_run)
    require_writable(state.config, KNOWN_PAYLOADS)
    before, target = state.layout.version, target_version(state, to, later=False)
    if before is target:
        if before.layout == 2 and not dry_run:
            abandon_downgrade(state)
        return UpgradeResult(to, to, dry_run=dry_run)
    config = _config_after(state, target, settings)
    steps = _steps(state, target)
    change = change_of(state.config, config)
    if dry_run:
        return UpgradeResult(before.number, to, steps, change, dry_run=True)
    if settle(storage, state.config):
        state = state.reload()
    word = "" if before.layout == target.layout else "Downgrade"
    with locked_when_ready(state, settings, run, word) as (lock, state):
        config = _config_after(state, target, settings)
        if state.config.has_metadata_table:
            drop_metadata(storage)
            state = state.reload()
            config = _config_after(state, target, settings)
        change = change_of(state.config, config)
        if before.layout == target.layout:
            lock.check()
            update_properties(storage, change)
        else:
            names = _log_names(state)
            copy_down(state, config, names, settings.archiving.batch)
            lock.check()
            update_properties(storage, {**change, DOWNGRADED_FROM: str(before.number)})
            finish_downgrade(storage, config)
    _log.info("%s: downgraded from version %d to %d", state.config.name, before.number, to)
    return UpgradeResult(before.number, to, steps, change)


def _finish(storage: Storage, settings: Settings, to: int, before: int, dry_run: bool) -> UpgradeResult:
    """Go on with a downgrade that stopped after its settings were written."""
    config = load_state(storage).config
    if to != config.version:
        raise UnsupportedTable(
            f"{config.name}: its downgrade to version {config.version} stopped half-way. Finish that one first"
        )
    steps = (f"give logs the names of version {to}, and remove the timeline of version {before}",)
    if not dry_run:
        with settings.writers.lock_on(storage) as lock:
            recover(storage)
            lock.check()
            finish_downgrade(storage, config)
    return UpgradeResult(before, to, steps, {DOWNGRADED_FROM: None}, dry_run=dry_run)


def _config_after(state: TableState, target: TableVersion, settings: Settings) -> TableConfig:
    """The settings afterwards. Raises UnsupportedTable when something would be lost."""
    config = from_properties(downgraded(state.config.properties, target))
    require_writable(config, KNOWN_PAYLOADS)
    building = (*state.config.metadata_partitions, *state.config.metadata_inflight)
    if indexes := [name for name in building if name.startswith(_INDEXES)]:
        raise UnsupportedTable(
            f"{config.name} has the indexes {', '.join(indexes)}, which a table of version {target.number} has not. "
            "Drop them first (DROP INDEX)"
        )
    refuse_column_types(state)  # version 9 alone has them
    refuse_moved_keys(state, settings, target)
    refuse_pending(state, "downgrade")
    if state.layout.version.layout != target.layout:
        _log_names(state)
    return config


def _log_names(state: TableState) -> LogNames:
    if not state.config.merge_on_read:
        return LogNames()
    names = log_names(state.storage, state.view())
    if names.partial:
        raise UnsupportedTable(
            f"{state.config.name}: {len(names.partial)} logs hold rows of which only some columns were set, such as "
            f"{names.partial[0]}, and version 6 has no such logs. Compact the table, and clean it with "
            "hoodie.clean.commits.retained=1, until they are gone"
        )
    return names


def _steps(state: TableState, target: TableVersion) -> tuple[str, ...]:
    steps: list[str] = []
    if state.layout.version.layout != target.layout:
        steps += steps_before(state)
        names = _log_names(state)
        history = history_version(state.storage, state.config.history_folder)
        archived = "" if history is None else " and the history"
        steps.append(f"copy {len(state.timeline.instants)} instants{archived} into the timeline of version 6")
        if moved := sum(log.old != log.new.path for log in names.logs.values()):
            steps.append(f"give {moved} logs the names of version 6")
        if names.orphans:
            steps.append(f"remove {len(names.orphans)} logs of writes that were never completed")
    if state.config.has_metadata_table:
        steps.append("remove the metadata table, which the next write of Hudi builds again")
    steps.append(f"change hoodie.properties to version {target.number}")
    return tuple(steps)
