"""`hoodie compactor`: plan compactions, look at plans, and carry them out beside writers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hoodie.cli.arguments import add_conf, add_options, add_path, hoodie_options, pair, spark_conf
from hoodie.cli.compactor_run import ENGINES, run
from hoodie.model.instant import Instant
from hoodie.model.plans import CompactionPlan
from hoodie.services.compaction.repair import repair_compaction, unschedule_compaction
from hoodie.services.compaction.schedule import pending_compactions, schedule_compaction, validate_compaction
from hoodie.storage import storage_for
from hoodie.table.state import load_state

if TYPE_CHECKING:
    from hoodie.cli.arguments import Subparsers

_RUN = """
Runs the compactions that are pending, oldest first, and those that are planned meanwhile; with --watch for ever. Each
is claimed first, so that several compactors share the work. SIGTERM or SIGINT: the one at hand is finished, and no
other begun; a second signal gives it up, and leaves its plan to be run by somebody else.
"""


def add(subparsers: Subparsers) -> None:
    command = subparsers.add_parser("compactor", help="plan, look at and run compactions")
    actions = command.add_subparsers(title="actions", metavar="action", required=True)

    running = actions.add_parser("run", help="run pending compactions", description=_RUN)
    add_path(running)
    running.add_argument("--watch", action="store_true", help="go on, and look for new plans, until a signal comes")
    running.add_argument("--interval", type=_seconds, default=10.0, metavar="S", help="seconds between looks (10)")
    running.add_argument("--engine", choices=ENGINES, default="spark", help="Spark, or threads of this process")
    add_conf(running)
    add_options(running)
    running.set_defaults(run=_run)

    planning = actions.add_parser("schedule", help="plan a compaction, if one is due")
    add_path(planning)
    planning.add_argument(
        "--extra", action="append", default=[], type=pair, metavar="KEY=VALUE", help="kept with the plan and its commit"
    )
    add_options(planning)
    planning.set_defaults(run=_schedule)

    looking = actions.add_parser("plan", help="show pending compactions, and the executors to ask for")
    add_path(looking)
    looking.add_argument("--executor-cores", type=_count, default=1, metavar="N", help="cores of an executor (1)")
    looking.set_defaults(run=_plan)

    for name, action, text in (
        ("validate", _validate, "what keeps a pending compaction from being run"),
        ("unschedule", _unschedule, "withdraw a plan"),
        ("repair", _repair, "make a plan fit the files that are there"),
    ):
        one = actions.add_parser(name, help=text)
        add_path(one)
        one.add_argument("instant", nargs="?" if name == "validate" else None, help="of the plan")
        add_options(one)
        one.set_defaults(run=action)


def _run(options: argparse.Namespace) -> int:
    interval = options.interval if options.watch else None
    return run(options.path, hoodie_options(options), options.engine, spark_conf(options), interval)


def _schedule(options: argparse.Namespace) -> int:
    made = schedule_compaction(storage_for(options.path), hoodie_options(options), dict(options.extra))
    print(made or "nothing is planned: no compaction is due, or there are no logs to compact")
    return 0


def _plan(options: argparse.Namespace) -> int:
    print(*describe(pending_compactions(load_state(storage_for(options.path))), options.executor_cores), sep="\n")
    return 0


def describe(pending: Sequence[tuple[Instant, CompactionPlan]], cores: int) -> Iterable[str]:
    """Pending plans as lines of text.

    cores  of an executor: a file slice is one task, so that a plan keeps slices / cores executors busy
    """
    if not pending:
        yield "no compaction is pending"
        return
    yield f"{'instant':17}  {'state':9}  {'slices':>7}  {'log files':>9}  {'MB read':>8}  {'MB write':>8}  executors"
    for instant, plan in pending:
        totals = [
            round(sum(operation.metrics.get(name, 0.0) for operation in plan.operations))
            for name in ("TOTAL_LOG_FILES", "TOTAL_IO_READ_MB", "TOTAL_IO_WRITE_MB")
        ]
        slices = len(plan.operations)
        yield (
            f"{instant.requested:17}  {instant.state.name.lower():9}  {slices:7}  {totals[0]:9}  {totals[1]:8}  "
            f"{totals[2]:8}  {-(-slices // cores):9}"
        )


def _validate(options: argparse.Namespace) -> int:
    lines = validate_compaction(storage_for(options.path), options.instant)
    print(*(lines or ["nothing is wrong"]), sep="\n")
    return 1 if lines else 0


def _unschedule(options: argparse.Namespace) -> int:
    unschedule_compaction(storage_for(options.path), hoodie_options(options), options.instant)
    print(f"compaction {options.instant} is withdrawn")
    return 0


def _repair(options: argparse.Namespace) -> int:
    lines = repair_compaction(storage_for(options.path), hoodie_options(options), options.instant)
    print(*(lines or ["nothing is wrong"]), sep="\n")
    return 0


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)
