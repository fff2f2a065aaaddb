"""`hoodie metadata`: a table's properties, and its metadata table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from hoodie.cli.arguments import COUNT, cli_option, command, flag
from hoodie.cli.calls import Call, Target
from hoodie.cli.output import Block, Grid
from hoodie.cli.secrets import masked_properties
from hoodie.config.metadata import PartitionOptions
from hoodie.config.options import declared
from hoodie.display.summary import bytes_text
from hoodie.errors import TableNotFound
from hoodie.facts.look import look, look_at_metadata_table
from hoodie.metadata.missing_instants import missing_instants
from hoodie.storage import storage_beside
from hoodie.storage.protocol import Storage

if TYPE_CHECKING:  # a look at properties loads nothing that only measuring needs
    from hoodie.facts.metadata_table import MetadataStats

_PARTITIONS = ("files", "column_stats", "partition_stats", "bloom_filters", "record_index")
_INDEXES = tuple(member.name for member, _ in declared(PartitionOptions))
_FOLDER = ".hoodie/metadata"


class WithDefault(click.Group):
    """A group of commands; without the name of one, `show` is meant."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] in ("-h", "--help"))
        return super().parse_args(ctx, args if named or not args else ["show", *args])


@dataclass(frozen=True, slots=True)
class MetadataPartition:
    """A partition of the metadata table, such as "files".

    state  "ready": readers trust it; "inflight": it is being built; "unlisted": nothing names it
    """

    name: str
    state: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Metadata:
    """Properties, and the metadata table.

    properties  as stored; values of credentials are masked
    exists      there is a metadata table
    version     its table version; 0 without one
    newest      instant of its newest commit; ""
    behind      instants that are completed on the table, and not in it
    """

    properties: Mapping[str, str]
    exists: bool
    version: int
    newest: str
    behind: int
    partitions: tuple[MetadataPartition, ...]


@dataclass(frozen=True, slots=True)
class MetadataRows:
    """Rows of one partition of a metadata table.

    columns  their names
    rows     values as text, in the order of the columns
    total    rows that there are
    """

    partition: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int


@dataclass(frozen=True, slots=True)
class MetadataValidated:
    """What a metadata table was compared with, and what differs.

    exists    there is a metadata table that readers trust
    records   in each of its partitions
    problems  one line each
    """

    exists: bool
    records: Mapping[str, int]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetadataCreated:
    """What became of a metadata table that was to be built.

    built  False: it was there already
    """

    built: bool


@dataclass(frozen=True, slots=True)
class MetadataDropped:
    """A metadata table that was removed, or (dry run) would be.

    dropped  False: there is none
    """

    dropped: bool
    dry_run: bool


@click.group("metadata", cls=WithDefault)
def metadata() -> None:
    """The metadata table: look at it, build it, remove it; and properties."""


@command("show", examples=["hoodie metadata show /data/trips"], group=metadata)
def metadata_show_command(call: Call) -> int:
    """Show properties, and the metadata table.

    Its partitions, its size, and how far it is behind. `show` may be left out.
    """
    return call.print_each(lambda target: read_metadata(target.storage), _metadata_text)


@command(
    "stats",
    examples=["hoodie metadata stats /data/trips", "hoodie metadata stats '/data/lake/*' --json"],
    group=metadata,
)
def metadata_stats_command(call: Call) -> int:
    """Measure the metadata table.

    Entries, files and bytes of its partitions, how much waits for compaction, and the instants of the table that it
    lacks. Its partitions are listed, and the ends of their files are read. If readers do not use all of it, the reason
    is printed, and the exit status is 1.
    """
    from hoodie.facts.metadata_table import metadata_stats

    return call.print_each(
        lambda target: metadata_stats(target.storage), _stats_text, lambda stats: stats.exists and not stats.is_sound
    )


@command(
    "list",
    cli_option(
        "--of",
        "partition",
        type=click.Choice(_PARTITIONS),
        default="files",
        example="--of column_stats",
        help="Which of its partitions.",
    ),
    cli_option(
        "--limit",
        type=COUNT,
        default=20,
        metavar="N",
        example="--limit 0",
        help="So many rows; 0: all.",
    ),
    examples=["hoodie metadata list /data/trips", "hoodie metadata list /data/trips --of column_stats --limit 0"],
    group=metadata,
)
def list_(call: Call, partition: str, limit: int) -> int:
    """List what the metadata table says.

    Files with their sizes, statistics of columns by file or by partition, bloom filters, or where each record key
    is.
    """
    from hoodie.metadata.display_rows import metadata_rows
    from hoodie.table.state import load_state

    def do(target: Target) -> MetadataRows:
        state = load_state(target.storage)
        table = metadata_rows(state.storage, state.config, state.timeline, partition)
        shown_rows = table.slice(0, limit) if limit else table
        rows = tuple(
            tuple("" if value is None else str(value) for value in row.values()) for row in shown_rows.to_pylist()
        )
        return MetadataRows(partition, tuple(table.column_names), rows, table.num_rows)

    return call.print_each(do, _rows_text)


@command("validate", examples=["hoodie metadata validate /data/trips"], group=metadata)
def metadata_validate_command(call: Call) -> int:
    """Compare the metadata table with the storage.

    All of it is read, all partitions are listed, and data files are opened that it has statistics, filters or keys of.
    What differs is printed, and the exit status is 1.
    """
    from hoodie.metadata import validate as comparing
    from hoodie.reading.row_keys import read_keys
    from hoodie.table.state import load_state

    def do(target: Target) -> MetadataValidated:
        state = load_state(target.storage)
        comparison = comparing.validate_metadata(state.storage, state.config, state.timeline, read_keys=read_keys)
        if comparison is None:
            return MetadataValidated(False, {}, ())
        return MetadataValidated(True, comparison.partitions, (*comparison.problems, *comparison.unread))

    return call.print_each(do, _validated_text, lambda validation: bool(validation.problems))


def read_metadata(storage: Storage) -> Metadata:
    """Look at a table's properties and its metadata table. Raises TableNotFound; CorruptFile"""
    config, timeline = look(storage)
    properties = dict(sorted(masked_properties(config.properties).items()))
    version, newest, exists, lacking = 0, "", False, 0
    with suppress(TableNotFound):
        theirs, theirs_timeline = look_at_metadata_table(
            storage_beside(storage, f"{storage.root.rstrip('/')}/{_FOLDER}")
        )
        exists, version, newest = True, theirs.version, theirs_timeline.newest_commit
        lacking = len(missing_instants(theirs_timeline, timeline) if newest else timeline.commits)
    states = dict.fromkeys(config.metadata_inflight, "inflight") | dict.fromkeys(config.metadata_partitions, "ready")
    folders: dict[str, tuple[int, int]] = {}
    for folder, entries in storage.list_tree(_FOLDER, skip=(".hoodie",)).items() if exists else ():
        name = folder[len(_FOLDER) + 1 :].split("/")[0]
        count, total = folders.get(name, (0, 0))
        folders[name] = count + len(entries), total + sum(entry.size for entry in entries)
    folders.pop("", None)
    return Metadata(
        properties=properties,
        exists=exists,
        version=version,
        newest=newest,
        behind=lacking,
        partitions=tuple(
            MetadataPartition(name, states.get(name, "unlisted"), *folders.get(name, (0, 0)))
            for name in sorted({*states, *folders})
        ),
    )


def _metadata_text(summary: Metadata) -> Sequence[Block]:
    blocks: list[Block] = [f"{key}={value}" for key, value in summary.properties.items()]
    if not summary.exists:
        return [*blocks, "", "no metadata table"]
    behind = f", {summary.behind} instants behind the table" if summary.behind else ""
    blocks += ["", f"metadata table of version {summary.version}, newest commit {summary.newest or '-'}{behind}"]
    rows = [(part.name, part.state, part.files, bytes_text(part.bytes)) for part in summary.partitions]
    return [*blocks, Grid(("partition", "state", "files", "size"), rows)] if rows else blocks


_STATS_SHOWN = ("partition", "state", "entries", "base files", "size", "entries in logs", "logs", "size", "older files")


def _stats_text(stats: MetadataStats) -> Sequence[Block]:
    if not stats.exists:
        return ["no metadata table that readers use"]
    rows = [
        (
            part.name,
            part.state,
            part.base_entries,
            part.base_files,
            bytes_text(part.base_bytes),
            part.log_entries,
            part.log_files,
            bytes_text(part.log_bytes),
            f"{part.older_files}, {bytes_text(part.older_bytes)}" if part.older_files else "-",
        )
        for part in stats.partitions
    ]
    behind = f"{len(stats.behind)} instants, from {stats.behind[0]} to {stats.behind[-1]}" if stats.behind else "no"
    return [
        f"newest instant  {stats.newest or '-'}",
        f"behind          {behind}",
        f"compacted       {stats.compacted or '-'}, {stats.delta_commits} delta commits since",
        Grid(_STATS_SHOWN, rows),
        *([f"readers do not use it: {stats.problem}"] if stats.problem else ()),
        *(f"readers do not use {part.name}: {part.problem}" for part in stats.partitions if part.problem),
    ]


def _rows_text(listing: MetadataRows) -> Sequence[Block]:
    more = listing.total - len(listing.rows)
    blocks: list[Block] = [Grid(listing.columns, list(listing.rows))]
    return [*blocks, f"and {more} more: --limit 0 lists all"] if more else blocks


def _validated_text(validation: MetadataValidated) -> Sequence[Block]:
    if not validation.exists:
        return ["no metadata table that readers trust"]
    counts = ", ".join(f"{name}: {count} records" for name, count in validation.records.items())
    return [counts, *(validation.problems or ("it tells the state of the table",))]


@command(
    "create",
    cli_option(
        "--with",
        "partitions",
        multiple=True,
        type=click.Choice(_INDEXES),
        example="--with column_stats",
        help="A partition beside the file lists, of which data files are read; may be repeated.",
    ),
    flag("--again", "Build the partitions that --with names anew where they are there."),
    examples=[
        "hoodie metadata create /data/trips",
        "hoodie metadata create /data/trips --with column_stats --with bloom_filters",
        "hoodie metadata create /data/trips --with record_index --again",
        "hoodie metadata create '/data/lake/*'",
    ],
    hoodie=True,
    group=metadata,
)
def metadata_create_command(call: Call, partitions: tuple[str, ...], again: bool) -> int:
    """Build the metadata table.

    Its file lists, from a listing of the storage, and the partitions that are named. Writes keep them from then on.
    Nothing of the table may be pending.
    """
    from hoodie.services.metadata_table import create_metadata_table

    def do(target: Target) -> MetadataCreated:
        return MetadataCreated(create_metadata_table(target.storage, target.settings, partitions, again=again))

    name = _partitions_text(partitions)
    return call.print_each(do, lambda created: [f"built: {name}" if created.built else f"there already: {name}"])


@command(
    "drop",
    cli_option(
        "--of",
        "partitions",
        multiple=True,
        type=click.Choice(_PARTITIONS),
        example="--of column_stats",
        help="Only this partition of it; may be repeated. Without the file lists nothing stays.",
    ),
    examples=["hoodie metadata drop /data/trips --yes", "hoodie metadata drop /data/trips --of column_stats --yes"],
    hoodie=True,
    changes=True,
    group=metadata,
)
def metadata_drop_command(call: Call, partitions: tuple[str, ...]) -> int:
    """Remove the metadata table, or a partition of it.

    Readers list folders then. A Hudi writer, and one of this library with hoodie.metadata.enable=true, builds it again.
    """
    from hoodie.services.metadata_table import drop_metadata_table

    def do(target: Target, dry_run: bool) -> MetadataDropped:
        return MetadataDropped(
            drop_metadata_table(target.storage, target.settings, partitions, dry_run=dry_run), dry_run
        )

    def text(removal: MetadataDropped) -> list[Block]:
        if not removal.dropped:
            return [f"not there: {name}"]
        return [f"{'would be removed' if removal.dry_run else 'removed'}: {name}"]

    name = _partitions_text(() if "files" in partitions else partitions)

    return call.change(do, text, goes=lambda removal: int(removal.dropped), question=f"Remove {name}, of {{}} tables?")


def _partitions_text(partitions: tuple[str, ...]) -> str:
    """What a command builds or removes."""
    return f"{', '.join(partitions)} of the metadata table" if partitions else "the metadata table"
