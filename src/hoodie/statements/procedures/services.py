"""Procedures that run the services of a table, or show their plans."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hoodie.formats.timeline.services import decode_clean_metadata
from hoodie.model.instant import Action, State
from hoodie.model.plans import CleanMetadata
from hoodie.services.compaction.claim import runs_unclaimed
from hoodie.services.compaction.schedule import pending_compactions
from hoodie.statements.procedures.procedure import Called, Rows
from hoodie.table.state import load_state
from hoodie.timeline.load import read_compaction_plan, still_pending

_AT_ONCE = {"hoodie.compact.inline.max.delta.commits": 1}


def archive_commits(called: Called) -> Rows:
    names = {"min_commits": "hoodie.keep.min.commits", "max_commits": "hoodie.keep.max.commits"}
    retained = {"retain_commits": "hoodie.cleaner.commits.retained", "enable_metadata": "hoodie.metadata.enable"}
    called.table.archive(options=called.settings({**names, **retained}))
    return [(0,)]


def run_clean(called: Called) -> Rows:
    """One row of what was cleaned, none when there was nothing to do. A clean is scheduled and run in one go, under
    the lock of the table, whatever `schedule_in_line` and `skip_locking` say."""
    names = {
        "clean_policy": "hoodie.cleaner.policy",
        "retain_commits": "hoodie.cleaner.commits.retained",
        "file_versions_retained": "hoodie.cleaner.fileversions.retained",
        "hours_retained": "hoodie.cleaner.hours.retained",
        "trigger_strategy": "hoodie.clean.trigger.strategy",
        "trigger_max_commits": "hoodie.clean.max.commits",
    }
    clean = called.table.clean(options=called.settings(names))
    if not clean.instant:
        return []
    metadata = _clean_metadata(called, clean.instant)
    return [(clean.instant, metadata.millis, metadata.files_deleted, metadata.earliest, "{}", 2)]


def _clean_metadata(called: Called, instant: str) -> CleanMetadata:
    storage, timeline = called.state.storage, load_state(called.state.storage).timeline
    completed = next(clean for clean in timeline.completed({Action.CLEAN}) if clean.requested == instant)
    path = timeline.path(completed)
    return decode_clean_metadata(storage.read(path), path)


def run_ttl(called: Called) -> Rows:
    """The partitions that were deleted because they had expired, by the options of the session and of the call."""
    names = {
        "ttl_policy": "hoodie.partition.ttl.management.strategy.type",
        "retain_days": "hoodie.partition.ttl.strategy.days.retain",
    }
    settings = called.settings(names)
    return [(path,) for path in called.table.expire_partitions(options=settings).partitions]


def run_compaction(called: Called) -> Rows:
    """By `op`: plan a compaction; carry out the one of `timestamp`, those of `instants`, or all that are planned; or
    both. `run` and `schedule` are the words of older releases for `execute` and `schedule`."""
    operation = str(called.arguments["op"]).lower()
    if operation not in ("schedule", "run", "execute", "scheduleandexecute"):
        raise called.problem(f"op => {operation!r}: expected schedule, run, execute or scheduleandexecute")
    options = called.settings({})
    planned = None
    if operation.startswith("schedule"):
        planned = called.table.schedule_compaction(options={**_AT_ONCE, **options})
    if operation == "schedule":
        return [row for row in _pending_plans(called) if row[0] == planned]
    named = [word.strip() for word in str(called.get("instants", "")).split(",") if word.strip()]
    pending = {row[0]: row[1] for row in _pending_plans(called)}
    if called.get("timestamp"):
        named = [str(called.get("timestamp"))]
    state = load_state(called.state.storage)
    plans = () if named or planned else state.timeline.pending_compactions
    # Those that a job of Hudi runs: named, they are taken over.
    rows: list[tuple[Any, ...]] = [
        (plan.requested, pending.pop(plan.requested), plan.state.name) for plan in plans if runs_unclaimed(state, plan)
    ]
    for instant in named or ([planned] if planned else sorted(pending)):
        compaction = called.table.compact(instant, options=options)
        if compaction is not None:
            rows.append(
                (compaction.instant, pending.get(compaction.instant, len(compaction.stats)), State.COMPLETED.name)
            )
    return rows


def _pending_plans(called: Called) -> Iterator[tuple[Any, ...]]:
    for instant, plan in reversed(pending_compactions(load_state(called.state.storage))):
        yield instant.requested, len(plan.operations), instant.state.name


def show_compaction(called: Called) -> Rows:
    """Compactions that are pending and those of the active timeline that are completed, newest first."""
    state = called.state
    pending = {instant.requested: instant for instant in state.timeline.pending_compactions}
    completed = {i.requested: i for i in state.timeline.commits if i.action is Action.COMMIT}
    for instant in sorted({**(completed if state.config.merge_on_read else {}), **pending}.values(), reverse=True):
        plan = read_compaction_plan(state.storage, state.timeline, replace(instant, action=Action.COMPACTION))
        yield instant.requested, len(plan.operations), instant.state.name


def show_clustering(called: Called) -> Rows:
    """Clusterings of other writers, pending and completed, newest first."""
    state = called.state
    with_partitions = called.get("show_involved_partition")
    for instant in reversed([i for i in state.timeline.instants if i.action is Action.REPLACE_COMMIT]):
        pending = still_pending(state.storage, state.timeline, instant)
        if pending is not None and (plan := pending.clustering) is not None:
            partitions = sorted({one.group.partition for group in plan.groups for one in group.slices})
            shown = ",".join(partitions) if with_partitions else "*"
            yield instant.requested, len(plan.groups), instant.state.name, shown


def hive_sync(called: Called) -> Rows:
    names = {
        "metastore_uri": "hoodie.datasource.hive_sync.metastore.uris",
        "username": "hoodie.datasource.hive_sync.username",
        "password": "hoodie.datasource.hive_sync.password",
        "use_jdbc": "hoodie.datasource.hive_sync.use_jdbc",
        "mode": "hoodie.datasource.hive_sync.mode",
        "partition_fields": "hoodie.datasource.hive_sync.partition_fields",
        "partition_extractor_class": "hoodie.datasource.hive_sync.partition_extractor_class",
        "sync_incremental": "hoodie.meta.sync.incremental",
    }
    started = time.monotonic()
    settings = {"hoodie.datasource.hive_sync.mode": "hms", **called.settings(names)}
    sync = called.table.sync(options=settings)
    entries = ", ".join(f"{entry}" for entry in sync.entries) or "nothing to do"
    return [(f"{entries} ({time.monotonic() - started:.1f} s)",)]
