"""The `hoodie` command: subcommands plug in here, each a module of its own.

A module of `COMMANDS` has `add(subparsers)`: it adds a parser and gives it `set_defaults(run=...)`, a function from the
parsed arguments to the exit status. Modules that need Spark import it when they run, so that looking stays quick.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from hoodie.cli import compactor, doctor, index
from hoodie.errors import HoodieError
from hoodie.storage.faults import typed_errors

if TYPE_CHECKING:
    from hoodie.cli.arguments import Subparsers


class Command(Protocol):
    """A module that plugs in."""

    @property
    def add(self) -> Callable[[Subparsers], None]: ...


#: In the order of the help.
COMMANDS: tuple[Command, ...] = (compactor, doctor, index)

#: Exit status of an error that the command names; argparse uses 2 for a wrong command line.
FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (None: the process's own). Returns the exit status; SystemExit on a wrong command line."""
    options = parser().parse_args(arguments)
    try:
        with typed_errors():
            status = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has what it wants
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except HoodieError as error:
        print(f"hoodie: {error}", *getattr(error, "__notes__", ()), sep="\n  ", file=sys.stderr)
        return FAILED
    assert isinstance(status, int), "a command returns its exit status"
    return status


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("hoodie", description="Look at tables and run their services.")
    subparsers = made.add_subparsers(title="commands", metavar="command", required=True)
    for command in COMMANDS:
        command.add(subparsers)
    return made
