"""Commands that run services of tables: clean, archive, expire, upgrade, downgrade."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from hoodie.cli.arguments import cli_option, command
from hoodie.cli.calls import Call, Target

if TYPE_CHECKING:
    from hoodie.services.upgrade import UpgradeResult


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a clean deleted, or (dry run) would.

    instant     of the clean; "" when there was nothing to do
    earliest    the oldest commit as of which reads still work; "": the policy counts versions
    files       paths below the table's folder
    partitions  partition paths that were removed whole
    finished    interrupted cleans that were finished first
    """

    instant: str
    policy: str
    earliest: str
    files: tuple[str, ...]
    partitions: tuple[str, ...]
    finished: tuple[str, ...]
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Archived:
    """Which instants were archived, or (dry run) would be.

    instants  oldest first
    file      the archive file that was written; "" for none
    """

    instants: tuple[str, ...]
    file: str
    dry_run: bool


@command(
    "clean",
    examples=[
        "hoodie clean /data/trips --dry-run",
        "hoodie clean '/data/lake/*' --yes --option hoodie.clean.commits.retained=10",
    ],
    hoodie=True,
    changes=True,
)
def clean_command(call: Call) -> int:
    """Delete file versions that are not to be kept.

    What is kept is the cleaning policy of the options: hoodie.clean.policy, hoodie.clean.commits.retained and so on.
    """
    from hoodie.services.clean import clean as run

    def do(target: Target, dry_run: bool) -> Cleaned:
        clean = run(target.storage, target.settings, dry_run=dry_run)
        return Cleaned(
            clean.instant, clean.policy, clean.earliest, clean.paths, clean.partitions, clean.finished, clean.dry_run
        )

    return call.change(
        do, cleaned_text, goes=lambda clean: len(clean.files) + len(clean.finished), question="Delete {} files?"
    )


@command(
    "archive",
    examples=[
        "hoodie archive /data/trips --dry-run",
        "hoodie archive /data/trips --yes --option hoodie.keep.max.commits=40 --option hoodie.keep.min.commits=30",
    ],
    hoodie=True,
    changes=True,
)
def archive_command(call: Call) -> int:
    """Move old instants off the active timeline.

    Only if there are more than hoodie.keep.max.commits. Reads as of archived commits are no longer possible.
    """
    from hoodie.services.metadata_upkeep import archive_table as run

    def do(target: Target, dry_run: bool) -> Archived:
        archive = run(target.storage, target.settings, dry_run=dry_run)
        instants = tuple(f"{instant.requested} {instant.action}" for instant in archive.instants)
        return Archived(instants, archive.file, archive.dry_run)

    return call.change(do, archived_text, goes=lambda archive: len(archive.instants), question="Archive {} instants?")


@dataclass(frozen=True, slots=True)
class Expired:
    """Which partitions were deleted because they had expired, or (dry run) would be.

    instant     of the commit that deleted them; "" for none
    partitions  partition paths, the oldest first
    before      the instant time before which the last write of a partition is too old
    text        for people
    """

    instant: str
    partitions: tuple[str, ...]
    before: str
    dry_run: bool
    text: str


@command(
    "expire",
    examples=[
        "hoodie expire /data/trips --dry-run --option hoodie.partition.ttl.strategy.days.retain=90",
        "hoodie expire '/data/lake/*' --yes --option hoodie.partition.ttl.strategy.days.retain=90",
    ],
    hoodie=True,
    changes=True,
)
def expire(call: Call) -> int:
    """Delete partitions that nobody has written to for long.

    For how many days they are kept is said by hoodie.partition.ttl.strategy.days.retain. Hudi calls it partition TTL.
    """
    from hoodie.services.expiry import expire_partitions
    from hoodie.sync.after_commit import after_commit

    def do(target: Target, dry_run: bool) -> Expired:
        expiry = expire_partitions(target.storage, target.settings, dry_run=dry_run, after_commit=after_commit)
        return Expired(expiry.instant, expiry.partitions, expiry.before, expiry.dry_run, str(expiry))

    return call.change(
        do,
        lambda expiry: expiry.text.splitlines(),
        goes=lambda expiry: len(expiry.partitions),
        question="Delete {} partitions?",
    )


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The version that a table had and has, or (dry run) would have.

    steps     what was done, in order; none: it has the version already
    settings  properties that changed; null: it went
    text      for people
    """

    before: int
    version: int
    steps: tuple[str, ...]
    settings: dict[str, str | None]
    dry_run: bool
    text: str


@command(
    "upgrade",
    cli_option(
        "--to",
        type=click.Choice(["8", "9"]),
        required=True,
        example="--to 9",
        help="The version: 8 is read by Hudi 1.0 and later, 9 by Hudi 1.1 and later.",
    ),
    examples=["hoodie upgrade /data/trips --to 9 --dry-run", "hoodie upgrade /data/trips --to 9 --yes"],
    hoodie=True,
    changes=True,
)
def upgrade_command(call: Call, to: str) -> int:
    """Give tables a later version of the format.

    Failed writes are rolled back, and all logs compacted first. Rows stay, and what reads as of earlier instants give.
    Engines of earlier releases can no longer read the table.
    """
    from hoodie.services.upgrade import upgrade as run

    return _change_version(call, int(to), run, "Upgrade {} tables?")


@command(
    "downgrade",
    cli_option(
        "--to",
        type=click.Choice(["6", "8"]),
        required=True,
        example="--to 6",
        help="The version: 6 is read by Hudi 0.14 and later and by most engines, 8 by Hudi 1.0 and later.",
    ),
    examples=["hoodie downgrade /data/trips --to 6 --dry-run", "hoodie downgrade /data/trips --to 6 --yes"],
    hoodie=True,
    changes=True,
)
def downgrade_command(call: Call, to: str) -> int:
    """Give tables an earlier version of the format.

    Failed writes are rolled back, and all logs compacted first. Rows stay, and what reads as of earlier instants give.
    A table that would lose something is refused: with several ordering columns, or rows of some columns in logs.
    """
    from hoodie.services.downgrade import downgrade as run

    return _change_version(call, int(to), run, "Downgrade {} tables?")


def _change_version(call: Call, to: int, run: Callable[..., UpgradeResult], question: str) -> int:
    def do(target: Target, dry_run: bool) -> Upgraded:
        change = run(target.storage, target.settings, to, dry_run=dry_run)
        settings = dict(change.settings or {})
        return Upgraded(change.before, change.version, change.steps, settings, change.dry_run, str(change))

    return call.change(
        do, lambda change: change.text.splitlines(), goes=lambda change: int(bool(change.steps)), question=question
    )


def cleaned_text(clean: Cleaned) -> list[str]:
    verb = "would delete" if clean.dry_run else "deleted"
    retention = f", and keeps what reads as of {clean.earliest} and later need" if clean.earliest else ""
    finished = [
        f"{'would finish' if clean.dry_run else 'finished'} {instant}, which was interrupted"
        for instant in clean.finished
    ]
    whole = [f"partition {partition!r} is removed whole" for partition in clean.partitions]
    if not clean.files:
        return [*finished, f"nothing to clean{retention}"]
    return [*finished, f"{verb} {len(clean.files)} files{retention}", *shortened(clean.files), *whole]


def archived_text(archive: Archived) -> list[str]:
    if not archive.instants:
        return ["nothing to archive"]
    verb, where = "would archive" if archive.dry_run else "archived", f" to {archive.file}" if archive.file else ""
    return [f"{verb} {len(archive.instants)} instants{where}", *shortened(archive.instants)]


def shortened(lines: tuple[str, ...]) -> list[str]:
    """The first twenty lines of a list, indented, and how many more there are."""
    shown, rest = lines[:20], lines[20:]
    return [f"  {line}" for line in shown] + ([f"  and {len(rest)} more"] if rest else [])
