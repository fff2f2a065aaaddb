"""Commands that look at tables: ls, show, history, files, stats, report."""

from dataclasses import dataclass
from pathlib import Path

import click

from hoodie.cli.arguments import COUNT, SORT, TIME, WHERE, cli_option, command, flag
from hoodie.cli.calls import Call, Target
from hoodie.cli.fleet.lines import Lines, Selection
from hoodie.cli.output_file import output_file
from hoodie.errors import InvalidInput
from hoodie.model.instant import Action


@dataclass(frozen=True, slots=True)
class Reported:
    """A page about a table.

    file   where it was written
    bytes  of it
    """

    file: str
    bytes: int


PARTITION = cli_option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="PATH",
    example="--partition city=oslo",
    help="Look at this partition path only; may be repeated.",
)
AS_OF = cli_option("--as-of", type=TIME, example="--as-of '2026-01-31 12:00:00'", help="As the table was then.")


@command(
    "ls",
    cli_option(
        "--depth",
        type=click.IntRange(0),
        default=3,
        metavar="N",
        example="--depth 1",
        help="How many folders deep to look.",
    ),
    examples=["hoodie ls /data/lake", "hoodie ls s3://bucket/lake --depth 1 --json"],
)
def ls(call: Call, depth: int) -> int:
    """List the tables in folders and below them."""
    from hoodie.cli.table_search import list_tables, listing_text

    return call.print_each(lambda target: list_tables(target.storage, depth), listing_text)


@command("info", examples=["hoodie info /data/trips", "hoodie info '/data/lake/*' --json"])
def info(call: Call) -> int:
    """Show what a table is, and its newest commit.

    Its type, key and columns, what is pending, its savepoints. No data file is looked at.
    """
    from hoodie.cli.facts import summary_text
    from hoodie.facts.summary import summarize

    return call.print_each(lambda target: summarize(target.storage), summary_text)


@command(
    "history",
    cli_option(
        "--limit",
        type=COUNT,
        default=20,
        metavar="N",
        example="--limit 5",
        help="So many instants, the newest; 0: all.",
    ),
    cli_option(
        "--action",
        "actions",
        multiple=True,
        type=click.Choice([action.value for action in Action]),
        metavar="ACTION",
        example="--action clean",
        help="Instants of this action; may be repeated.",
    ),
    flag("--all", "Instants of all actions, in all states.", dest="every"),
    flag("--pending", "Instants that are not completed."),
    flag("--archived", "Also commits that were archived."),
    examples=["hoodie history /data/trips", "hoodie history /data/trips --action clean --limit 3"],
)
def history_command(
    call: Call, limit: int, actions: tuple[str, ...], every: bool, pending: bool, archived: bool
) -> int:
    """Show the newest commits.

    And what each inserted, updated, deleted and wrote.
    """
    from hoodie.cli.facts import history_text
    from hoodie.facts import instants

    return call.print_each(
        lambda target: instants.newest_instants(
            target.storage, limit, actions=actions, every=every, pending=pending, archived=archived
        ),
        history_text,
    )


@command(
    "files",
    PARTITION,
    AS_OF,
    flag("--all", "Older file slices, too.", dest="every"),
    examples=["hoodie files /data/trips", "hoodie files /data/trips --partition city=oslo --all"],
    hoodie=True,
)
def files_command(call: Call, partitions: tuple[str, ...], as_of: str | None, every: bool) -> int:
    """List the file slices that a reader takes."""
    from hoodie.cli.facts import files_text
    from hoodie.config.read import ReadSettings
    from hoodie.facts import files

    return call.print_each(
        lambda target: files.files(
            target.storage, ReadSettings.read(target.options), partitions=partitions or None, as_of=as_of, every=every
        ),
        files_text,
    )


@command(
    "stats",
    SORT,
    WHERE,
    examples=[
        "hoodie stats /data/trips",
        "hoodie stats --from tables.txt --sort log_share --where 'log_share >= 0.3'",
        "hoodie stats --from tables.txt --json",
    ],
    hoodie=True,
)
def stats_command(call: Call, sort: str, where: str) -> int:
    """Measure file sizes and write amplification.

    Also the share of logs, and the size of older file versions. One listing of all partitions, and the commits of the
    active timeline. Several tables have a line each.
    """
    from hoodie.cli.facts import STATS_SHOWN, stats_text
    from hoodie.facts import files

    lines = Lines(files.Stats, lambda stats: stats, STATS_SHOWN)
    return call.lines(
        lambda target: files.stats(target.storage, target.settings), stats_text, lines, Selection(sort, where)
    )


@command(
    "report",
    cli_option(
        "--output",
        "folder",
        type=click.Path(file_okay=False),
        default=".",
        metavar="FOLDER",
        example="--output /var/www/tables",
        help="Where the pages go: each has the name of the table's folder and .html. Default: the working folder.",
    ),
    examples=["hoodie report /data/trips", "hoodie report '/data/lake/*' --output /var/www/tables"],
    hoodie=True,
)
def report_command(call: Call, folder: str) -> int:
    """Write a page about each table.

    One HTML file that needs nothing else: timeline, commits, file sizes, and what cleaning and compaction would do. No
    data file is opened.
    """
    from hoodie.cli.exporting import folder_names
    from hoodie.report.page import make_report
    from hoodie.table.state import load_state

    names = folder_names([target.path for target in call.targets()])
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"--output {folder}: no folder can be made there: {error.strerror}") from error

    def do(target: Target) -> Reported:
        page = make_report(load_state(target.storage), target.settings)
        file = str(Path(folder) / f"{names[target.path]}.html")
        with output_file(file) as sink:
            return Reported(file, sink.write(page.html.encode(errors="backslashreplace")))

    return call.print_each(do, lambda report: [report.file])
