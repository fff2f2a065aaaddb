"""`hoodie check`: whether a table is as it should be, and what to do where it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import click

from hoodie.cli.arguments import DRY_RUN, GRACE, SORT, WHERE, cli_option, command, flag
from hoodie.cli.calls import Call, Target
from hoodie.cli.fleet.lines import Lines, Selection

if TYPE_CHECKING:
    from hoodie.doctor.findings import Finding, Remedy

#: Those of `hoodie.doctor.engines`, which the start of the command line does not load.
ENGINES = ("hive", "hudi-1.x", "presto", "trino")


@dataclass(frozen=True, slots=True)
class FindingLine:
    """A problem of a table.

    severity  NOTE: takes space, WARNING: writers or services are affected, ERROR: readers are
    where     path or partition path below the table's folder
    remedy    what a repair would do; "": nothing is safe to do without a person
    """

    severity: str
    fault: str
    where: str
    problem: str
    advice: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Examined:
    """The findings, worst first, and what a repair did, or (dry run) would do.

    healthy   there is no warning and no error; after a repair: none that it did not mend
    repaired  with --repair: the remedies, in order
    open      after a repair: the findings that it did not mend
    """

    healthy: bool
    findings: tuple[FindingLine, ...]
    repaired: tuple[str, ...] = ()
    repair: bool = False
    dry_run: bool = True
    open: tuple[FindingLine, ...] = ()


@dataclass(frozen=True, slots=True)
class ExaminedLine:
    """What was found of one of several tables: how many of each severity, and their kinds."""

    healthy: bool
    errors: int
    warnings: int
    notes: int
    findings: str

    @classmethod
    def of(cls, examined: Examined) -> ExaminedLine:
        findings = examined.open if examined.repair and not examined.dry_run else examined.findings
        severities = Counter(finding.severity for finding in findings)
        kinds = Counter(finding.fault for finding in findings)
        words = ", ".join(f"{kind} ({number})" if number > 1 else kind for kind, number in kinds.items())
        if examined.repaired and not examined.dry_run:
            words = "; ".join(filter(None, [words, f"{len(examined.repaired)} mended"]))
        return cls(examined.healthy, severities["ERROR"], severities["WARNING"], severities["NOTE"], words)


@command(
    "check",
    flag("--quick", "Names and sizes of files only: open no data file."),
    flag("--whole-table", "A key must be unique in the table, as with a global index, not only in its partition."),
    flag("--all-columns", "Read everything: all columns of all base files, with the checksums of their pages."),
    GRACE,
    cli_option(
        "--for",
        "engine",
        type=click.Choice(ENGINES),
        help="Before this engine is let in: what it would not read of the table, or would change.",
        example="--for hudi-1.x",
    ),
    flag("--repair", "Say what would be repaired; with --yes, do it.", example="--repair --yes"),
    DRY_RUN,
    flag(
        "--yes",
        "With --repair: do it, under the table's lock: give its options by --option. Without one no writer may be "
        "at work.",
        example="--repair --yes",
    ),
    flag(
        "--checksum", "With --repair: write a wrong checksum of hoodie.properties anew.", example="--repair --checksum"
    ),
    SORT,
    WHERE,
    examples=[
        "hoodie check /data/trips",
        "hoodie check --from tables.txt --quick --where 'errors >= 1' --sort errors",
        "hoodie check '/data/lake/*' --quick --json",
        "hoodie check /data/trips --for hudi-1.x",
        "hoodie check /data/trips --repair --yes --option hoodie.write.lock.provider=StorageBasedLockProvider",
    ],
    hoodie=True,
)
def check_command(
    call: Call,
    quick: bool,
    whole_table: bool,
    all_columns: bool,
    grace: float,
    engine: str | None,
    repair: bool,
    checksum: bool,
    sort: str,
    where: str,
) -> int:
    """Say what is wrong, and what to do about it.

    Nothing is changed without --repair --yes. The exit status is 1 when there is a warning or an error, 0 when the
    table is healthy, all that there is takes space, or the repair mended all. Several tables have a line each, and
    those with findings follow in full.
    """
    from hoodie.config.read import ReadSettings
    from hoodie.doctor.examine import examine
    from hoodie.doctor.findings import Severity
    from hoodie.doctor.repair import plan_repair
    from hoodie.doctor.repair import repair as run
    from hoodie.table.settings import Writers

    if quick and all_columns:
        raise click.UsageError("--quick opens no data file, and --all-columns reads all of them: give one of them")
    if checksum and not repair:
        raise click.UsageError("--checksum says what --repair may write: give both, or neither")

    def do(target: Target) -> Examined:
        storage = target.storage

        def look() -> Sequence[Finding]:
            return examine(
                storage,
                ReadSettings.read(target.options),
                rows=not quick,
                whole_table=whole_table,
                all_columns=all_columns,
                grace=grace,
                engine=engine or "",
            )

        findings = look()
        remedies: Sequence[Remedy] = ()
        really = repair and call.yes and not call.dry_run
        if really:
            remedies = run(storage, writers=Writers.read(target.options), dry_run=False, checksum=checksum, grace=grace)
        elif repair:
            remedies = plan_repair(findings, checksum=checksum)
        still = look() if remedies and really else findings
        return Examined(
            healthy=all(finding.severity <= Severity.NOTE for finding in still),
            findings=tuple(_lines(findings)),
            repaired=tuple(map(str, remedies)),
            repair=repair,
            dry_run=not really,
            open=tuple(_lines(still)) if really else (),
        )

    shown = tuple(field.name for field in fields(ExaminedLine))
    lines = Lines(ExaminedLine, ExaminedLine.of, shown, lambda examined: bool(examined.repaired))
    return call.lines(do, check_text, lines, Selection(sort, where), lambda examined: not examined.healthy)


def check_text(examined: Examined) -> list[str]:
    lines = [_text(line) for line in examined.findings] or ["Healthy."]
    if examined.repair and examined.findings:
        heading = "Would do, with --yes:" if examined.dry_run else "Done:"
        lines += ["", heading if examined.repaired else "Nothing to mend without a person."]
        lines += [f"  {remedy}" for remedy in examined.repaired]
    if examined.repaired and not examined.dry_run:
        lines += ["", "Left for a person:" if examined.open else "All of it is mended."]
        lines += [f"  {_text(line)}" for line in examined.open]
    return lines


def _text(line: FindingLine) -> str:
    from hoodie.doctor.findings import finding_text

    return finding_text(line.severity, line.fault, line.where, line.problem, line.advice)


def _lines(findings: Iterable[Finding]) -> Iterable[FindingLine]:
    for finding in findings:
        remedy = "" if finding.remedy is None else str(finding.remedy)
        yield FindingLine(
            finding.severity.name, finding.fault.value, finding.where, finding.problem, finding.advice, remedy
        )
