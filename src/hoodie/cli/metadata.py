"""`hoodie metadata`: a table's properties, and its metadata table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click

from hoodie.cli.arguments import DRY_RUN, YES, command, option
from hoodie.cli.calls import Call, Target
from hoodie.cli.output import Block, Grid

_PARTITIONS = ("files", "column_stats", "bloom_filters", "record_index")


class WithDefault(click.Group):
    """A group of commands; without the name of one, `show` is meant."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] in ("-h", "--help"))
        return super().parse_args(ctx, args if named or not args else ["show", *args])


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


@command("show", examples=["hoodie metadata show /data/trips"])
def show(call: Call) -> int:
    """Show properties, and the metadata table.

    Its partitions, its size, and how far it is behind. `show` may be left out.
    """
    from hoodie.cli import settings

    return call.each(lambda target: settings.metadata(target.storage), settings.text)


@command(
    "list",
    option(
        "--of",
        "partition",
        type=click.Choice(_PARTITIONS),
        default="files",
        show_default=True,
        example="--of column_stats",
        help="Which of its partitions.",
    ),
    option(
        "--limit",
        type=click.IntRange(0),
        default=20,
        show_default=True,
        metavar="N",
        example="--limit 0",
        help="So many rows; 0: all.",
    ),
    examples=["hoodie metadata list /data/trips", "hoodie metadata list /data/trips --of column_stats --limit 0"],
)
def list_(call: Call, partition: str, limit: int) -> int:
    """List what the metadata table says.

    Files with their sizes, statistics of columns, bloom filters, or where each record key is.
    """
    from hoodie.metadata.shown import metadata_rows
    from hoodie.table.state import load_state

    def do(target: Target) -> MetadataRows:
        state = load_state(target.storage)
        table = metadata_rows(state.storage, state.config, state.timeline, partition)
        some = table.slice(0, limit) if limit else table
        rows = tuple(tuple("" if value is None else str(value) for value in row.values()) for row in some.to_pylist())
        return MetadataRows(partition, tuple(table.column_names), rows, table.num_rows)

    return call.each(do, _rows_text)


@command("validate", examples=["hoodie metadata validate /data/trips"])
def validate(call: Call) -> int:
    """Compare the metadata table with the storage.

    All of it is read, and all partitions are listed. What differs is printed, and the exit status is 1.
    """
    from hoodie.metadata import validate as comparing
    from hoodie.table.state import load_state

    def do(target: Target) -> MetadataValidated:
        state = load_state(target.storage)
        found = comparing.validate(state.storage, state.config, state.timeline)
        if found is None:
            return MetadataValidated(False, {}, ())
        return MetadataValidated(True, found.partitions, found.problems)

    return call.each(do, _validated_text, lambda found: bool(found.problems))


@command(
    "create",
    examples=["hoodie metadata create /data/trips", "hoodie metadata create '/data/lake/*'"],
    hoodie=True,
)
def create(call: Call) -> int:
    """Build the metadata table.

    Its file lists, from a listing of the storage. Writes keep them from then on. Nothing of the table may be pending.
    """
    from hoodie.services.metadata_table import create_metadata_table

    def do(target: Target) -> MetadataCreated:
        return MetadataCreated(create_metadata_table(target.storage, target.options))

    return call.each(do, lambda made: ["the metadata table is built" if made.built else "it has a metadata table"])


@command("drop", DRY_RUN, YES, examples=["hoodie metadata drop /data/trips --yes"], hoodie=True)
def drop(call: Call, dry_run: bool, yes: bool) -> int:
    """Remove the metadata table.

    Readers list folders then. A Hudi writer, and one of this library with hoodie.metadata.enable=true, builds it again.
    """
    from hoodie.services.metadata_table import drop_metadata_table

    def do(target: Target, dry_run: bool) -> MetadataDropped:
        return MetadataDropped(drop_metadata_table(target.storage, target.options, dry_run=dry_run), dry_run)

    def text(done: MetadataDropped) -> list[Block]:
        if not done.dropped:
            return ["no metadata table"]
        return [f"the metadata table {'would be' if done.dry_run else 'is'} removed"]

    return call.change(
        do,
        text,
        dry_run=dry_run,
        yes=yes,
        goes=lambda done: int(done.dropped),
        question="Remove the metadata table, of {} tables?",
    )


def _rows_text(found: MetadataRows) -> Sequence[Block]:
    more = found.total - len(found.rows)
    blocks: list[Block] = [Grid(found.columns, list(found.rows))]
    return [*blocks, f"and {more} more: --limit 0 lists all"] if more else blocks


def _validated_text(found: MetadataValidated) -> Sequence[Block]:
    if not found.exists:
        return ["no metadata table that readers trust"]
    counts = ", ".join(f"{name}: {count} records" for name, count in found.records.items())
    return [counts, *(found.problems or ("it tells the state of the table",))]


for _each in (show, list_, validate, create, drop):
    metadata.add_command(_each)
