"""`hoodie compaction`: plan compactions, look at plans, and carry them out beside writers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import click

from hoodie.cli.arguments import (
    CONF,
    DRY_RUN,
    INSTANT,
    LONGEST_WAIT,
    PAIR,
    SORT,
    WHERE,
    Seconds,
    cli_option,
    command,
    flag,
)
from hoodie.cli.calls import Call, Target
from hoodie.cli.compactor_plans import PlanLine, Plans
from hoodie.cli.fleet.lines import Lines, Selection
from hoodie.cli.output import Block, Grid, Status
from hoodie.config.table import from_properties
from hoodie.model.instant import Instant
from hoodie.model.plans import CompactionPlan

_ENGINES = ("spark", "local")


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The plan that was made; "": none is.

    why  there is nothing to do; "" of a plan
    """

    instant: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class PlansLine:
    """The pending compactions of one of several tables: how many, the oldest, and what all of them read and write."""

    plans: int
    oldest: str
    state: str
    slices: int
    log_files: int
    read_mb: int
    write_mb: int
    executors: int

    @classmethod
    def of(cls, pending: Plans, cores: int) -> PlansLine:
        """cores  of an executor: a file slice is one task"""
        plans = pending.plans
        slices, logs = sum(plan.slices for plan in plans), sum(plan.log_files for plan in plans)
        read, write = sum(plan.read_mb for plan in plans), sum(plan.write_mb for plan in plans)
        oldest, state = (plans[0].instant, plans[0].state.lower()) if plans else ("", "")
        return cls(len(plans), oldest, state, slices, logs, read, write, -(-slices // cores))


@dataclass(frozen=True, slots=True)
class PlanChecked:
    """What is wrong with a plan, or was repaired of it, or (dry run) what a run would do. One line each."""

    instant: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A plan that is no longer there."""

    instant: str


@click.group("compaction")
def compaction_command() -> None:
    """Plan, look at and run compactions."""


@command(
    "run",
    flag("--watch", "Go on, and look for new plans, until a signal.", example="--watch --interval 30"),
    cli_option(
        "--interval",
        type=Seconds(0, LONGEST_WAIT, min_open=True),
        default=10.0,
        metavar="S",
        example="--interval 30",
        help="Seconds between looks.",
    ),
    cli_option(
        "--engine",
        type=click.Choice(_ENGINES),
        default="spark",
        example="--engine local",
        help="Spark, or threads of this process.",
    ),
    INSTANT,
    DRY_RUN,
    CONF,
    examples=[
        "hoodie compaction run /data/trips --engine local",
        "hoodie compaction run /data/trips --engine local --instant 20260131120000000",
        "hoodie compaction run s3://bucket/trips --watch --interval 30 --conf spark.master=spark://host:7077",
    ],
    hoodie=True,
    group=compaction_command,
)
def compaction_run_command(
    call: Call, watch: bool, interval: float, engine: str, instant: str | None, conf: tuple[Any, ...]
) -> int:
    """Run the compactions that are pending.

    Oldest first, and those that are planned meanwhile; with --watch for ever. Each is claimed first, so that several
    compactors share the work. With several tables each look goes through all, in turn. A plan that a job of Hudi runs
    is left to it until an hour after its last file, and a line says so; --instant runs one plan, and takes it over.

    SIGTERM or SIGINT: the current one is finished, and no other begun; a second signal gives it up, and leaves its plan
    to be run by another process. The exit status is 3 when a plan could not be run.
    """
    from hoodie.cli.compactor_run import Run, Runs
    from hoodie.cli.compactor_run import run_compactor as compact

    call, named = call.split_instant(instant)
    if named is not None and watch:
        raise click.UsageError("--instant runs one plan: leave --watch out")
    if call.dry_run:
        return call.print_each(
            lambda target: Runs((), tuple(p for p in _pending_plans(target).plans if named in (None, p.instant))),
            lambda pending: _text(Plans(pending.plans), 1),
        )
    runs: dict[str, list[Run]] = {}
    looks = interval if watch else None
    status = compact(call.targets(), engine, dict(conf), looks, runs, instant=named, quiet=call.as_json)
    return call.closing(
        {path: Runs(tuple(path_runs)) for path, path_runs in runs.items()}, Status.FAILED if status else Status.FINE
    )


@command(
    "schedule",
    cli_option(
        "--extra",
        multiple=True,
        type=PAIR,
        metavar="KEY=VALUE",
        example="--extra by=nightly",
        help="Kept with the plan and its commit; may be repeated.",
    ),
    examples=["hoodie compaction schedule '/data/lake/*' --option hoodie.compact.inline.max.delta.commits=3"],
    hoodie=True,
    group=compaction_command,
)
def schedule(call: Call, extra: tuple[Any, ...]) -> int:
    """Plan a compaction, if one is due.

    Nothing is compacted yet. Copy-on-Write tables may be among the tables: there is nothing to do for them.
    """
    from hoodie.services.compaction.schedule import schedule_compaction
    from hoodie.table.properties import load_properties

    def do(target: Target) -> Scheduled:
        storage = target.storage
        if not from_properties(load_properties(storage)).merge_on_read:
            return Scheduled("", "a Copy-on-Write table has no logs")
        instant = schedule_compaction(storage, target.settings, dict(extra)) or ""
        return Scheduled(instant, "" if instant else "no compaction is due, or there are no logs to compact")

    return call.print_each(do, lambda scheduled: [scheduled.instant or f"nothing to do: {scheduled.why}"])


@command(
    "plan",
    cli_option(
        "--executor-cores",
        type=click.IntRange(1),
        default=1,
        metavar="N",
        example="--executor-cores 4",
        help="Cores of an executor, to tell how many executors to ask for.",
    ),
    SORT,
    WHERE,
    examples=[
        "hoodie compaction plan /data/trips --executor-cores 4",
        "hoodie compaction plan --from tables.txt --where 'plans >= 1' --sort read_mb",
    ],
    group=compaction_command,
)
def compaction_plan_command(call: Call, executor_cores: int, sort: str, where: str) -> int:
    """Show pending compactions.

    And how many executors would be busy with each. Several tables have a line each.
    """
    shown = tuple(field.name for field in fields(PlansLine))
    lines: Lines[Plans] = Lines(PlansLine, lambda pending: PlansLine.of(pending, executor_cores), shown)
    return call.lines(_pending_plans, lambda pending: _text(pending, executor_cores), lines, Selection(sort, where))


@command(
    "validate",
    INSTANT,
    examples=["hoodie compaction validate /data/trips", "hoodie compaction validate /data/trips 20260131120000000"],
    group=compaction_command,
)
def compaction_validate_command(call: Call, instant: str | None) -> int:
    """Say what keeps a plan from being run.

    Without an instant the oldest plan. The exit status is 1 when there is something.
    """
    from hoodie.services.compaction.schedule import validate_compaction

    call, instant = call.split_instant(instant)
    return call.print_each(
        lambda target: PlanChecked(instant or "", tuple(validate_compaction(target.storage, instant))),
        _check_blocks,
        lambda checked: bool(checked.lines),
    )


@command(
    "unschedule",
    INSTANT,
    examples=["hoodie compaction unschedule /data/trips 20260131120000000"],
    hoodie=True,
    group=compaction_command,
)
def unschedule(call: Call, instant: str | None) -> int:
    """Withdraw a plan."""
    from hoodie.services.compaction.schedule import unschedule_compaction

    call, named = call.split_needed_instant(instant, "a plan")

    def do(target: Target) -> Withdrawn:
        unschedule_compaction(target.storage, target.settings, named)
        return Withdrawn(named)

    return call.print_each(do, lambda withdrawal: [f"compaction {withdrawal.instant} is withdrawn"])


@command(
    "repair",
    INSTANT,
    examples=["hoodie compaction repair /data/trips 20260131120000000"],
    hoodie=True,
    group=compaction_command,
)
def compaction_repair_command(call: Call, instant: str | None) -> int:
    """Make a plan fit the files that are there."""
    from hoodie.services.compaction.schedule import repair_compaction

    call, named = call.split_needed_instant(instant, "a plan")
    return call.print_each(
        lambda target: PlanChecked(named, tuple(repair_compaction(target.storage, target.settings, named))),
        _check_blocks,
    )


def plan_lines(pending: Sequence[tuple[Instant, CompactionPlan]]) -> Iterable[PlanLine]:
    """Pending plans with what they say of themselves."""
    for instant, plan in pending:
        totals = [
            round(sum(operation.metrics.get(name, 0.0) for operation in plan.operations))
            for name in ("TOTAL_LOG_FILES", "TOTAL_IO_READ_MB", "TOTAL_IO_WRITE_MB")
        ]
        yield PlanLine(instant.requested, instant.state.name, len(plan.operations), *totals)


def _pending_plans(target: Target) -> Plans:
    from hoodie.services.compaction.schedule import pending_compactions
    from hoodie.table.state import load_state

    return Plans(tuple(plan_lines(pending_compactions(load_state(target.storage)))))


def _text(pending: Plans, cores: int) -> Sequence[Block]:
    """cores  of an executor: a file slice is one task, so that a plan keeps slices / cores executors busy"""
    if not pending.plans:
        return ["no compaction is pending"]
    header = ("instant", "state", "slices", "log files", "MB read", "MB write", "executors")
    return [
        Grid(
            header,
            [
                (p.instant, p.state.lower(), p.slices, p.log_files, p.read_mb, p.write_mb, -(-p.slices // cores))
                for p in pending.plans
            ],
        )
    ]


def _check_blocks(checked: PlanChecked) -> Sequence[Block]:
    return checked.lines or ("nothing is wrong",)
