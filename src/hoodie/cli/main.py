"""The `hoodie` command: which commands there are, and how errors become one line and an exit status.

A command is imported when it is called, and imports what it works with when it runs: looking at a table takes a few
tenths of a second, and nothing but a compaction by Spark imports PySpark.
"""

import errno
import io
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from hoodie.cli import output
from hoodie.cli.calls import explained
from hoodie.cli.output import Problem, Status
from hoodie.errors import StorageUnavailable

#: Words at the beginning of a command line -> the words that they stand for.
OTHER_WORDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("desc",): ("info",),
    ("show",): ("info",),
    ("doctor",): ("check",),
    ("commits", "show"): ("history",),
    ("commits", "showarchived"): ("history", "--archived"),
    ("commit", "rollback"): ("rollback",),
    ("timeline", "show", "active"): ("history", "--all"),
    ("timeline", "show", "incomplete"): ("history", "--pending"),
    ("cleans", "show"): ("history", "--action", "clean"),
    ("cleans", "run"): ("clean",),
    ("rollbacks", "show"): ("history", "--action", "rollback"),
    ("trigger", "archival"): ("archive",),
    ("show", "fsview", "latest"): ("files",),
    ("show", "fsview", "all"): ("files", "--all"),
    ("stats", "filesizes"): ("stats",),
    ("stats", "wa"): ("stats",),
    ("compactor",): ("compaction",),
    ("compact",): ("compaction",),
    ("compaction", "show"): ("compaction", "plan"),
    ("compactions", "show", "all"): ("compaction", "plan"),
    ("compactions", "show"): ("compaction", "plan"),
    ("savepoints", "show"): ("savepoint", "show"),
    ("savepoint", "rollback"): ("restore",),
}


def other_words(words: Sequence[str]) -> list[str]:
    """A command line in the words of the help."""
    for length in (3, 2, 1):
        replacement = OTHER_WORDS.get(tuple(words[:length]))
        if replacement is not None:
            return other_words([*replacement, *words[length:]])  # "compactor show": one word after the other
    return list(words)


#: Where each command is, in the order of the help.
_COMMANDS = {
    "ls": "hoodie.cli.look:ls",
    "info": "hoodie.cli.look:info",
    "history": "hoodie.cli.look:history_command",
    "files": "hoodie.cli.look:files_command",
    "stats": "hoodie.cli.look:stats_command",
    "metadata": "hoodie.cli.metadata:metadata",
    "report": "hoodie.cli.look:report_command",
    "metrics": "hoodie.cli.fleet.watch:metrics",
    "serve": "hoodie.cli.fleet.watch:serve_command",
    "query": "hoodie.cli.read:query",
    "changes": "hoodie.cli.read:changes_command",
    "export": "hoodie.cli.read:export_command",
    "clean": "hoodie.cli.services:clean_command",
    "archive": "hoodie.cli.services:archive_command",
    "expire": "hoodie.cli.services:expire",
    "upgrade": "hoodie.cli.services:upgrade_command",
    "downgrade": "hoodie.cli.services:downgrade_command",
    "compaction": "hoodie.cli.compactor:compaction_command",
    "savepoint": "hoodie.cli.recover:savepoint",
    "rollback": "hoodie.cli.recover:rollback_command",
    "restore": "hoodie.cli.recover:restore_command",
    "sync": "hoodie.cli.engines:sync",
    "manifest": "hoodie.cli.engines:manifest",
    "check": "hoodie.cli.doctor:check_command",
    "index": "hoodie.cli.index:index",
    "completion": "hoodie.cli.about:completion",
    "version": "hoodie.cli.about:version",
}

#: Exit status after a signal that the shell sends: 128 and its number.
INTERRUPTED = 130


class Commands(click.Group):
    """The commands by name, and Hudi's words for them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        chosen: click.Command = getattr(import_module(module), name)
        return chosen

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        words = other_words(args)
        if words and words[0] not in _COMMANDS and not words[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(words[0], _COMMANDS, 1, 0.7)
            hint = f": did you mean {close[0]}?" if close else ""
            raise click.UsageError(f"there is no command {words[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, words)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Look at Hudi tables, run their services, and find out what is wrong with them.

    A path is a local folder or a URI such as s3://bucket/table; commands take any number of them, and globs in quotes.
    The exit status is 0: fine, 1: something was found, 2: wrong usage, 3: failed.
    """


#: Errors of an output that can take no more.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (None: the process's own). Returns the exit status: 0 fine, 1 something was found, 2 wrong
    usage, 3 failed."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:  # closed, as by >&-
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that the terminal has no letters for
    try:
        status = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has what it wants
        _discard_output()
        return Status.FINE
    except OSError as error:
        _discard_output()
        with suppress(OSError):  # the standard error may be what takes no more
            output.complain(f"the output cannot be written: {os.strerror(error.errno) if error.errno else error}")
        return Status.FAILED
    return int(status)


def _discard_output() -> None:
    """What is still to be flushed goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    with warnings.catch_warnings():
        try:
            status: Any = cli.main(words, prog_name="hoodie", standalone_mode=False)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            return Status.USAGE
        except click.UsageError as error:
            where = error.ctx.command_path if error.ctx else "hoodie"
            message = " ".join(error.format_message().split())
            return _report_failure(words, Status.USAGE, Problem("UsageError", f"{message} (see {where} --help)"))
        except click.ClickException as error:
            return _report_failure(words, Status.USAGE, Problem(type(error).__name__, error.format_message()))
        except (click.Abort, KeyboardInterrupt):
            output.complain("interrupted")
            return INTERRUPTED
        except BrokenPipeError:
            raise
        except SystemExit as error:  # click's own, where a pipe is closed
            raise BrokenPipeError from error
        except Exception as error:
            if _is_of_output(error):
                raise
            return _report_failure(words, *explained(error, debug="--debug" in words))
    return status if isinstance(status, int) else Status.FINE


def _is_of_output(error: Exception) -> bool:
    """Whether the output can take no more. A store that does not answer has such a number, too."""
    if not isinstance(error, OSError) or isinstance(error, StorageUnavailable):
        return False
    return error.filename is None and error.errno in _NO_ROOM


def _report_failure(words: list[str], status: Status, problem: Problem) -> int:
    """Say what went wrong before a table was looked at."""
    if "--json" in words:
        command = " ".join(word for word in words[:2] if word.isalpha())
        output.emit_error(command, status, problem)
    else:
        output.complain(problem.message)
    return status
