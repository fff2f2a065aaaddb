"""Commands that go back: savepoint, rollback, restore."""

from __future__ import annotations

import datetime as dt
import getpass
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from hoodie.cli.arguments import INSTANT, cli_option, command
from hoodie.cli.calls import Call, Target
from hoodie.cli.output import Block, Grid
from hoodie.cli.services import shortened

if TYPE_CHECKING:
    from hoodie.recovery.savepoint import Savepoint


@dataclass(frozen=True, slots=True)
class SavepointLine:
    """A commit whose files are kept.

    at     when it was made, ISO, UTC
    files  how many it keeps
    """

    instant: str
    user: str
    at: str
    comment: str
    files: int


@dataclass(frozen=True, slots=True)
class Savepoints:
    """The savepoints of a table, oldest first."""

    savepoints: tuple[SavepointLine, ...]


@dataclass(frozen=True, slots=True)
class Deleted:
    """A savepoint that was deleted, or (dry run) would be."""

    instant: str
    dry_run: bool


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a rollback undid, or (dry run) would.

    target   the instant that is rolled back
    instant  of the rollback; "" in a dry run
    deletes  paths of files, below the table's folder
    undoes   paths of logs whose blocks are cancelled
    """

    target: str
    instant: str
    deletes: tuple[str, ...]
    undoes: tuple[str, ...]
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore rolled back, or (dry run) would.

    instant   of the restore; "" in a dry run, and when nothing was newer than the savepoint
    instants  that are rolled back, newest first
    deletes   paths of files that would be deleted: of a dry run
    """

    savepoint: str
    instant: str
    instants: tuple[str, ...]
    deletes: tuple[str, ...]
    dry_run: bool


@click.group("savepoint")
def savepoint() -> None:
    """Keep the files that a commit needs."""


@command(
    "create",
    INSTANT,
    cli_option(
        "--comment", default="", metavar="TEXT", example="--comment 'before the migration'", help="Why it is kept."
    ),
    cli_option(
        "--user", default="", metavar="NAME", example="--user ops", help="Who wants it; default: the login name."
    ),
    examples=["hoodie savepoint create /data/trips", "hoodie savepoint create '/data/lake/*' --comment nightly"],
    hoodie=True,
    group=savepoint,
)
def savepoint_create_command(call: Call, instant: str | None, comment: str, user: str) -> int:
    """Make the newest commit a savepoint.

    Or the one of --instant.
    """
    from hoodie.recovery.savepoint import make_savepoint

    call, instant = call.split_instant(instant)

    def do(target: Target) -> SavepointLine:
        return _line(make_savepoint(target.storage, target.settings, instant, comment, user or getpass.getuser()))

    return call.print_each(do, lambda line: [f"savepoint {line.instant} keeps {line.files} files"])


@command("show", examples=["hoodie savepoint show /data/trips"], group=savepoint)
def savepoint_show_command(call: Call) -> int:
    """List the savepoints of tables."""
    from hoodie.recovery.savepoint import read_savepoints
    from hoodie.table.state import load_state

    def text(listing: Savepoints) -> list[Block]:
        rows = [(s.instant, s.user, s.at, s.files, s.comment) for s in listing.savepoints]
        return [Grid(("instant", "user", "made", "files", "comment"), rows)] if rows else ["no savepoints"]

    return call.print_each(
        lambda target: Savepoints(tuple(map(_line, read_savepoints(load_state(target.storage))))), text
    )


@command(
    "delete",
    INSTANT,
    examples=["hoodie savepoint delete /data/trips 20260131120000000 --yes"],
    hoodie=True,
    changes=True,
    group=savepoint,
)
def savepoint_delete_command(call: Call, instant: str | None) -> int:
    """Let the files of a savepoint be cleaned as all others."""
    from hoodie.errors import InstantNotFound
    from hoodie.recovery.savepoint import read_savepoints
    from hoodie.services.savepoint import delete_savepoint
    from hoodie.table.state import load_state

    call, named = call.split_needed_instant(instant, "the savepoint")

    def do(target: Target, dry_run: bool) -> Deleted:
        if not dry_run:
            delete_savepoint(target.storage, target.settings, named)
        elif not any(savepoint.instant == named for savepoint in read_savepoints(load_state(target.storage))):
            raise InstantNotFound(f"instant {named} is not a savepoint")
        return Deleted(named, dry_run)

    return call.change(
        do,
        lambda deletion: [f"savepoint {deletion.instant} {'would be' if deletion.dry_run else 'is'} deleted"],
        goes=lambda deletion: 1,
        question="Delete the savepoint, of {} tables?",
    )


@command(
    "rollback",
    INSTANT,
    examples=["hoodie rollback /data/trips --dry-run", "hoodie rollback /data/trips 20260131120000000 --yes"],
    hoodie=True,
    changes=True,
)
def rollback_command(call: Call, instant: str | None) -> int:
    """Take back the newest completed commit.

    Or the commit, or pending instant, of --instant.
    """
    from hoodie.recovery.rollback import rollback as run

    call, instant = call.split_instant(instant)

    def do(target: Target, dry_run: bool) -> RolledBack:
        rollback = run(target.storage, target.settings, instant, dry_run=dry_run)
        return RolledBack(rollback.target, rollback.instant, rollback.deletes, rollback.undoes, dry_run)

    return call.change(do, rolled_back_text, goes=lambda rollback: 1, question="Take that back, of {} tables?")


@command(
    "restore", INSTANT, examples=["hoodie restore /data/trips 20260131120000000 --dry-run"], hoodie=True, changes=True
)
def restore_command(call: Call, instant: str | None) -> int:
    """Take back all writes after a savepoint.

    There is no way back from that.
    """
    from hoodie.recovery.restore import restore as run

    call, named = call.split_needed_instant(instant, "a savepoint")

    def do(target: Target, dry_run: bool) -> Restored:
        restore = run(target.storage, target.settings, named, dry_run=dry_run)
        instants = tuple(f"{ref.time} {ref.action}" for ref in restore.plan.instants)
        return Restored(restore.savepoint, restore.instant, instants, restore.deletes, dry_run)

    return call.change(do, restored_text, goes=lambda restore: len(restore.instants), question="Roll back {} instants?")


def rolled_back_text(rollback: RolledBack) -> list[str]:
    verb = "would roll" if rollback.dry_run else "rolled"
    what = f"{len(rollback.deletes)} files deleted, blocks of {len(rollback.undoes)} logs cancelled"
    return [f"{verb} back {rollback.target}: {what}", *shortened((*rollback.deletes, *rollback.undoes))]


def restored_text(restore: Restored) -> list[str]:
    if not restore.instants:
        return [f"nothing is newer than the savepoint {restore.savepoint}"]
    verb = "would roll" if restore.dry_run else "rolled"
    files = [f"  {len(restore.deletes)} files would be deleted"] if restore.dry_run else []
    return [
        f"{verb} back {len(restore.instants)} instants after {restore.savepoint}",
        *shortened(restore.instants),
        *files,
    ]


def _line(record: Savepoint) -> SavepointLine:
    moment = dt.datetime.fromtimestamp(record.at / 1000, dt.UTC).isoformat(timespec="seconds")
    return SavepointLine(record.instant, record.user, moment, record.comment, len(record.files))
