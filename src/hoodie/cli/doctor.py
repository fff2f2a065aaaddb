"""`hoodie doctor`: whether a table is as it should be, and what to do where it is not."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hoodie.cli.arguments import add_options, add_path, hoodie_options
from hoodie.doctor.examine import GRACE, Severity, examine
from hoodie.doctor.repair import plan_repair, repair
from hoodie.storage import storage_for

if TYPE_CHECKING:
    from hoodie.cli.arguments import Subparsers

_ABOUT = """Examine a table. Nothing is changed without --repair --yes. The exit status is 1 when there is a warning or
an error, 0 when the table is healthy or all that there is takes space."""


def add(subparsers: Subparsers) -> None:
    command = subparsers.add_parser("doctor", help="examine a table, tell what is wrong, mend it", description=_ABOUT)
    add_path(command)
    add_options(command)
    command.add_argument("--quick", action="store_true", help="names and sizes of files only: open no data file")
    command.add_argument(
        "--whole-table",
        action="store_true",
        help="a key must be unique in the table, as with a global index, not only in its partition",
    )
    command.add_argument(
        "--grace",
        type=float,
        default=GRACE,
        metavar="SECONDS",
        help="what is younger is taken for the work of a live process (default: %(default)g)",
    )
    command.add_argument("--repair", action="store_true", help="say what would be mended; with --yes, do it")
    command.add_argument(
        "--yes",
        action="store_true",
        help="with --repair: do it, under the table's lock: give its options by --option. Without one no writer may be "
        "at work",
    )
    command.add_argument(
        "--checksum", action="store_true", help="with --repair: write a wrong checksum of hoodie.properties anew"
    )
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    storage = storage_for(options.path)
    given = hoodie_options(options)
    findings = examine(
        storage,
        given,
        rows=not options.quick,
        whole_table=options.whole_table,
        grace=options.grace,
    )
    print(*findings, sep="\n") if findings else print("Healthy.")
    if options.repair and not options.yes:
        planned = plan_repair(findings, checksum=options.checksum)
        print("", "Would do, with --yes:" if planned else "Nothing to mend without a person.", sep="\n")
        print(*(f"  {remedy}" for remedy in planned), sep="\n")
    elif options.repair:
        done = repair(storage, options=given, dry_run=False, checksum=options.checksum, grace=options.grace)
        print("", "Done:" if done else "Nothing to mend without a person.", sep="\n")
        print(*(f"  {remedy}" for remedy in done), sep="\n")
    return int(any(finding.severity > Severity.NOTE for finding in findings))
