"""One run of a command: the tables that it is about, the work on them in parallel, and what came of it."""

from __future__ import annotations

import dataclasses
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hoodie.cli import output, secrets
from hoodie.cli.fleet.lines import Lines, Selection
from hoodie.cli.output import Block, Outcome, Problem, Status
from hoodie.config.driver_options import driver_options, driver_value, without_driver_options
from hoodie.config.options import Options
from hoodie.display.progress import counted, wants_progress, working
from hoodie.errors import CorruptFile, HoodieError, InvalidInput, InvalidOption, TableNotFound, clause
from hoodie.storage import Storage, storage_for
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import in_threads

if TYPE_CHECKING:
    from hoodie.table.settings import Settings

R = TypeVar("R")

#: A comment in a file of paths; a number sign within a path begins none.
_COMMENT = re.compile(r"(?:^|\s)#.*")
#: The time of an instant, as `hoodie history` prints it.
_INSTANT = re.compile(r"\d+(_\d+)?")


@dataclass(frozen=True, slots=True)
class Target:
    """A table that a command works on.

    empty  why a glob, which is the path then, gives no table; None: the path is a table's
    """

    path: str
    options: Options = field(default_factory=Options)
    storage_options: dict[str, Any] = field(default_factory=dict, repr=False)
    empty: HoodieError | None = None

    @property
    def storage(self) -> Storage:
        return storage_for(self.path, self.storage_options or None)

    @property
    def settings(self) -> Settings:
        """The settings of writes and services. Raises InvalidOption"""
        from hoodie.table.settings import Settings  # here: looking at a timeline needs none

        return Settings.read(self.options)


@dataclass(frozen=True, slots=True)
class Call:
    """What every command is given.

    paths       as on the command line
    listed      from --from
    options     `hoodie.*`, checked
    yes         to do what cannot be undone
    complaints  folders that were left out, and said to be: once, however often a server looks
    watches     a glob that gives no table is a table that is down, as a path is that has none
    """

    command: str
    paths: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)
    storage_options: dict[str, Any] = field(default_factory=dict, repr=False)
    jobs: int = 1
    as_json: bool = False
    debug: bool = False
    dry_run: bool = False
    yes: bool = False
    started: float = field(default_factory=time.perf_counter)
    complaints: set[str] = field(default_factory=set, compare=False, repr=False)
    watches: bool = False

    @classmethod
    def of(cls, context: click.Context, option_values: dict[str, Any]) -> Call:
        """Take the common options out of those given. Raises InvalidOption; UsageError without any path"""
        words = context.command_path.split()[1:]
        storage_options = {key: driver_value(text) for key, text in option_values.pop("storage_options", ())}
        options = Options()
        if "options" in option_values:
            from hoodie.config.datasource import door_options  # here: looking at a timeline needs none

            with output.warnings_printed():
                options = door_options(dict(option_values.pop("options")), props=option_values.pop("props"))
            storage_options = {**driver_options(options), **storage_options}
            options = without_driver_options(options)
        secrets.remember(storage_options)
        listed, paths = option_values.pop("listed", None), option_values.pop("paths", None)
        lines = tuple(filter(None, (_COMMENT.sub("", line).strip() for line in listed or ())))
        if paths is not None and not paths and not lines:
            raise click.UsageError("no table: give a path, a glob, or --from FILE", context)
        return cls(
            " ".join(words),
            paths or (),
            lines,
            options,
            storage_options,
            option_values.pop("jobs", 1),
            option_values.pop("as_json", False),
            option_values.pop("debug", False),
            option_values.pop("dry_run", False),
            option_values.pop("yes", False),
        )

    def split_instant(self, instant: str | None) -> tuple[Call, str | None]:
        """The last argument as the instant that is meant, where it is all digits, and no option names one.

        Raises UsageError when it is neither that nor like a path: an instant that is mistyped would be a table that is
        missing, and of the others the newest commit be meant
        """
        if instant is not None and not _INSTANT.fullmatch(instant):
            raise click.UsageError(f"{instant!r} is no instant, which is digits only: `hoodie history` lists them")
        if instant is not None or not self.paths or len(self.paths) + len(self.listed) == 1:
            return self, instant
        *others, last = self.paths
        if _INSTANT.fullmatch(last):
            return dataclasses.replace(self, paths=tuple(others)), last
        if not re.search(r"[/\\*?\[]", last) and not Path(last).exists():
            raise click.UsageError(f"{last!r} is neither an instant, which is digits only, nor the folder of a table")
        return self, None

    def split_needed_instant(self, instant: str | None, what: str) -> tuple[Call, str]:
        """As `split_instant`, for a command that needs one. Raises UsageError without any

        what  the instant is of
        """
        call, named = self.split_instant(instant)
        if named is None:
            raise click.UsageError(f"{self.command} needs the instant of {what}")
        return call, named

    def only_target(self) -> Target:
        """The table of a command that takes one only. Raises UsageError"""
        targets = self.targets()
        if len(targets) > 1:
            raise click.UsageError(f"{self.command} takes one table, and {len(targets)} are given")
        return targets[0]

    def targets(self) -> list[Target]:
        """The tables, globs expanded, each once. Raises UsageError at a glob that no table matches"""
        paths: dict[str, HoodieError | None] = {}
        for path in (*self.paths, *self.listed):
            try:
                paths.update(dict.fromkeys(self._matching(path) if re.search(r"[*?\[]", path) else [path]))
            except (click.UsageError, HoodieError) as error:
                if not self.watches:
                    raise
                paths[path] = error if isinstance(error, HoodieError) else InvalidInput(error.format_message())
        return [Target(path, self.options, self.storage_options, empty) for path, empty in paths.items()]

    def _matching(self, pattern: str) -> list[str]:
        from hoodie.cli.table_search import matching

        with typed_errors():
            tables, others = matching(pattern, self.storage_options)
        words = [f"{other.path} holds {other.holds} and is no Hudi table" for other in others]
        if not tables:
            raise click.UsageError("; ".join([f"no table matches {pattern}", *words]))
        for line in words:
            if line not in self.complaints:
                output.complain(f"left out: {line}")
        self.complaints.update(words)
        return tables

    def print_each(
        self,
        work: Callable[[Target], R],
        text: Callable[[R], Sequence[Block]],
        has_findings: Callable[[R], bool] = lambda result: False,
    ) -> int:
        """Work on all tables, print what came of it, and return the exit status.

        work          for one table
        text          of its result
        has_findings  whether a result counts as Status.FOUND
        """
        return self.report(self.run(work, has_findings), text)

    def lines(
        self,
        work: Callable[[Target], R],
        text: Callable[[R], Sequence[Block]],
        lines: Lines[R],
        selection: Selection,
        has_findings: Callable[[R], bool] = lambda result: False,
    ) -> int:
        """As `print_each`, with a line for each of several tables; those where something was found are printed in full.

        The exit status is that of the tables that are shown. Raises UsageError
        """
        selection.check(lines)
        outcomes = self.run(work, has_findings)
        if len(outcomes) == 1:
            return self.report(outcomes, text)
        chosen = selection.of(outcomes, lines)
        if self.as_json:
            return self.report(chosen, text)
        seconds = time.perf_counter() - self.started
        output.show_lines(chosen, lines.grid(chosen), text, lines.in_full, seconds, len(outcomes))
        return max((outcome.status for outcome in chosen), default=Status.FINE)

    def run(
        self, work: Callable[[Target], R], has_findings: Callable[[R], bool] = lambda result: False
    ) -> list[Outcome[R]]:
        """What came of each table, in the order of the paths; tables are worked on by threads."""
        targets = self.targets()

        def outcome(target: Target) -> Outcome[R]:
            with output.collected_warnings() as warned:
                try:
                    if target.empty is not None:
                        raise target.empty
                    with typed_errors(), _globs_suggested(target):
                        result = work(target)
                except click.UsageError:
                    raise
                except Exception as error:
                    status, problem = explained(error, debug=self.debug)
                    return Outcome(target.path, status, None, problem, tuple(warned))
            return Outcome(
                target.path, Status.FOUND if has_findings(result) else Status.FINE, result, None, tuple(warned)
            )

        what = f"{self.command} {targets[0].path}" if len(targets) == 1 else self.command
        show = wants_progress(self.options)
        with warnings.catch_warnings(), output.collecting_warnings(), working(what, show=show):
            work_on = counted(outcome, len(targets), "table") if len(targets) > 1 else outcome
            return in_threads(work_on, targets, self.jobs)

    def report(self, outcomes: Sequence[Outcome[R]], text: Callable[[R], Sequence[Block]]) -> int:
        """Print outcomes, with a summary of several. Returns the exit status."""
        seconds = time.perf_counter() - self.started
        if self.as_json:
            output.emit(self.command, outcomes, seconds)
        else:
            output.show_outcomes(outcomes, text, seconds)
        return max((outcome.status for outcome in outcomes), default=Status.FINE)

    def closing(self, results: Mapping[str, Any], status: Status) -> int:
        """The end of a command that has printed as it went: of several tables a summary, or its JSON document, results
        by path. A table with a run that failed has its error. Returns the status."""
        seconds = time.perf_counter() - self.started
        outcomes = []
        for path, result in results.items():
            error = next((Problem(run.error, run.problem) for run in result.runs if run.problem), None)
            outcomes.append(Outcome(path, Status.FAILED if error else Status.FINE, result, error))
        if self.as_json:
            output.emit(self.command, outcomes, seconds)
        elif len(outcomes) > 1:
            output.show([output.summary_line(outcomes, seconds)])
        return status

    def print_result(self, result: Any, blocks: Sequence[Block]) -> int:
        """Print the result of a command that is about no table, or about something beside tables."""
        if self.as_json:
            seconds = time.perf_counter() - self.started
            output.emit(self.command, [Outcome(path, Status.FINE, result) for path in self.paths[:1] or ("",)], seconds)
        else:
            output.show(blocks)
        return Status.FINE

    def change(
        self,
        do: Callable[[Target, bool], R],
        text: Callable[[R], Sequence[Block]],
        *,
        goes: Callable[[R], int],
        question: str,
    ) -> int:
        """Do what cannot be undone: after showing what it is, and a yes.

        do        (table, whether it is a dry run) -> what was done, or would be
        goes      how much of a dry run's result would go; 0: nothing would be done
        question  with one {} for that number, of all tables
        Raises    UsageError when nobody can be asked
        """
        if self.dry_run or self.yes:
            return self.print_each(lambda target: do(target, self.dry_run), text)
        if not sys.stdin.isatty():
            raise click.UsageError(
                f"{self.command} cannot be undone, and there is no terminal to ask at: give --yes, or --dry-run to see "
                "what would be done"
            )
        planned = self.run(lambda target: do(target, True))
        total = sum(goes(outcome.result) for outcome in planned if outcome.result is not None)
        if not total:
            return self.report(planned, text)
        output.show_outcomes(planned, text, time.perf_counter() - self.started, err=True)
        if not click.confirm(question.format(total), err=True):
            output.complain("nothing was changed")
            return Status.FAILED
        return self.print_each(lambda target: do(target, False), text)


@contextmanager
def _globs_suggested(target: Target) -> Iterator[None]:
    """A path that is no table, and has tables in it, is told with the glob that names them."""
    from hoodie.cli.table_search import tables_inside

    try:
        yield
    except TableNotFound as error:
        if not error.is_file and tables_inside(target.storage):
            error.add_note(f"Tables lie in it: '{target.path.rstrip('/')}/*' names them.")
        raise


def explained(error: BaseException, *, debug: bool = False) -> tuple[Status, Problem]:
    """The exit status of an error, and the line that says what to do. debug: the traceback is printed as well."""
    if debug:
        output.traceback(error)
    notes = " ".join(str(note) for note in getattr(error, "__notes__", ()))
    message = " ".join(f"{error} {notes}".split())
    if isinstance(error, HoodieError):
        if isinstance(error, CorruptFile) and not error.advice:
            message += " `hoodie check` says what to do about it."
        # Its subclasses are about rows, not about what was asked.
        usage = isinstance(error, InvalidOption) or type(error) is InvalidInput
        status = Status.USAGE if usage else Status.FAILED
    else:
        status = Status.FAILED
        kind = type(error).__name__
        message = f"{kind}: {clause(message)}. This error was not expected: --debug shows where it comes from."
    return status, Problem(type(error).__name__, secrets.masked(message))
