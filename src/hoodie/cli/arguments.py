"""Options and arguments of commands, each with an example that a test parses."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from hoodie.cli.calls import Call

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Option(click.Option):
    """An option whose help ends with an example of it."""

    def __init__(self, *arguments: Any, example: str, **more: Any) -> None:
        super().__init__(*arguments, **{"show_default": more.get("default") not in (None, "", "."), **more})
        self.example = example

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Raises UsageError where another option stands in the place of the value, which click takes for it"""
        names = {name for other in ctx.command.params if isinstance(other, click.Option) for name in other.opts}
        last = value[-1] if isinstance(value, (tuple, list)) and value else value
        if isinstance(last, str) and last in names:
            raise click.BadOptionUsage(self.opts[0], f"{self.opts[0]} needs a value, and {last} is an option", ctx)
        return super().process_value(ctx, value)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return record and (record[0], f"{record[1]}  Example: {self.example}")


class Command(click.Command):
    """A command with whole lines that can be copied, shown after its options."""

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.examples = tuple(examples)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _pointing_to(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with _pointing_to(ctx):
            return super().invoke(ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"  {line}\n")


@contextmanager
def _pointing_to(ctx: click.Context) -> Iterator[None]:
    """An error of usage that does not say which command it is about is about this one."""
    try:
        yield
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        raise


class KeyValue(_ParamType):
    """KEY=VALUE. A value that may be a secret is in no message."""

    name = "KEY=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, rest = str(value).partition("=")
        if not key or not equals:
            secret = param is not None and param.name == "storage_options"
            self.fail(f"{'the text given' if secret else repr(value)} is not KEY=VALUE", param, ctx)
        return key, rest


class TablePath(_ParamType):
    """A table's folder, a URI or a glob; a shell completes folders."""

    name = "path"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="dir")]


class Seconds(click.FloatRange):
    """A span of time, which NaN is not."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


class _Moment(_ParamType):
    """A point in time, as every read takes it."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from hoodie.errors import InvalidInput
        from hoodie.timeline.points import query_instant
        from hoodie.view.incremental import is_earliest

        text = str(value)
        if not (param is not None and param.name == "begin" and is_earliest(text)):
            try:
                query_instant(text)
            except InvalidInput as problem:
                self.fail(str(problem), param, ctx)
        return text


PAIR, TABLE, TIME = KeyValue(), TablePath(), _Moment()
#: How many to show; no table has more.
COUNT = click.IntRange(0, 2**62)
#: Seconds, some 31 years: threads cannot wait for longer than 292.
LONGEST_WAIT = 1_000_000_000


def cli_option(*names: str, example: str, **more: Any) -> Decorator:
    """An option with its example, such as `--limit 20`."""
    return click.option(*names, cls=Option, example=example, **more)


def flag(name: str, help: str, *, dest: str = "", example: str = "") -> Decorator:
    """An option without a value, which is its own example unless there is another."""
    return cli_option(name, *([dest] if dest else []), is_flag=True, example=example or name, help=help)


_FROM = cli_option(
    "--from",
    "listed",
    type=click.File(encoding="utf-8-sig", errors="surrogateescape"),
    metavar="FILE",
    example="--from tables.txt",
    help="Take more paths from a file, one a line; - is the standard input, # begins a comment.",
)
_JOBS = cli_option(
    "--jobs",
    type=click.IntRange(1),
    default=8,
    metavar="N",
    example="--jobs 16",
    help="Tables that are worked on at once.",
)
_JSON = flag("--json", "Print one JSON document (docs/cli.md).", dest="as_json")
_DEBUG = flag("--debug", "Print the traceback of an error.")
_STORAGE = cli_option(
    "--storage-option",
    "storage_options",
    multiple=True,
    type=PAIR,
    metavar="KEY=VALUE",
    envvar="HOODIE_STORAGE_OPTIONS",
    example="--storage-option endpoint_url=http://minio:9000",
    help="An option of the path's fsspec driver; may be repeated. Secrets are better in the environment: in what the "
    "driver reads itself, or in HOODIE_STORAGE_OPTIONS as KEY=VALUE words.",
)
_OPTION = cli_option(
    "--option",
    "options",
    multiple=True,
    type=PAIR,
    metavar="KEY=VALUE",
    example="--option hoodie.clean.hours.retained=48",
    help="A hoodie.* option, as the table's writers have it; may be repeated.",
)
_PROPS = cli_option(
    "--props",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    example="--props hoodie.properties",
    help="A properties file with hoodie.* options, below those of --option.",
)
DRY_RUN = flag("--dry-run", "Say what would be done, or go; nothing is changed.")
_YES = flag("--yes", "Do not ask. Without a terminal nothing that cannot be undone is done without it.")
GRACE = cli_option(
    "--grace",
    type=Seconds(0),
    default=3600.0,
    metavar="SECONDS",
    example="--grace 600",
    help="What is younger counts as the work of a live process.",
)
CONF = cli_option(
    "--conf",
    multiple=True,
    type=PAIR,
    metavar="KEY=VALUE",
    example="--conf spark.master=spark://host:7077",
    help="A Spark setting; may be repeated.",
)
SORT = cli_option(
    "--sort",
    default="",
    metavar="FIELD",
    example="--sort older_bytes",
    help="The order of several tables: a field of the line, numbers from the greatest; -FIELD: the other way round.",
)
WHERE = cli_option(
    "--where",
    default="",
    metavar="CONDITION",
    example="--where 'errors > 0'",
    help="With several tables, show those whose line meets this condition in SQL. What fails is always shown.",
)
INSTANT = cli_option(
    "--instant",
    "--commit",
    "--savepoint",
    "instant",
    metavar="INSTANT",
    example="--instant 20260131120000000",
    help="The instant that is meant. It may also be the last argument.",
)


def command(
    name: str,
    *own: Decorator,
    examples: Sequence[str],
    tables: bool = True,
    hoodie: bool = False,
    changes: bool = False,
    group: click.Group | None = None,
) -> Callable[[Callable[..., int]], Command]:
    """Make a command of a function `(call, **options of its own) -> exit status`; its docstring is the help.

    own      its own options and arguments, in the order of the help
    tables   it takes paths of tables, any number of them
    hoodie   it takes hoodie.* options
    changes  it asks before it does what cannot be undone: see `Call.change`
    group    that it is one of
    """
    common: list[Decorator] = []
    own = (*own, DRY_RUN, _YES) if changes else own
    if tables:
        common += [click.argument("paths", nargs=-1, type=TABLE, metavar="PATH..."), *own, _FROM, _JOBS, _STORAGE]
    else:
        common += own
    common += [_OPTION, _PROPS] if hoodie else []
    common += [_JSON, _DEBUG]

    def as_command(function: Callable[..., int]) -> Command:
        @functools.wraps(function)
        def run(**option_values: Any) -> int:
            return function(Call.of(click.get_current_context(), option_values), **option_values)

        decorated: Callable[..., Any] = run
        for decorate in reversed(common):
            decorated = decorate(decorated)
        created: Command = click.command(
            name, cls=Command, examples=examples, context_settings={"help_option_names": ["-h", "--help"]}
        )(decorated)
        if group is not None:
            group.add_command(created)
        return created

    return as_command
