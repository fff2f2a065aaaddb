"""Commands that let other engines find tables: sync, manifest."""

from dataclasses import dataclass

import click

from hoodie.cli.arguments import cli_option, command, flag
from hoodie.cli.calls import Call, Target

_WHOLE = flag("--whole", "Look at all partitions, not only those of commits since the last time.")


@dataclass(frozen=True, slots=True)
class SyncEntry:
    """What was done to one entry of the metastore. Counts are of partitions."""

    name: str
    created: bool
    altered: bool
    added: int
    moved: int
    dropped: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync did.

    metastore  the address that answered
    instant    the commit that the entries are up to
    requests   to the metastore
    """

    metastore: str
    instant: str
    entries: tuple[SyncEntry, ...]
    requests: int


@dataclass(frozen=True, slots=True)
class Manifests:
    """What manifests were written.

    instant     the newest commit that they show; "" of an empty table
    formats     "symlink", "csv"
    partitions  how many partitions were looked at
    whole       whether these were all of the table's
    files       base files in these partitions
    """

    instant: str
    formats: tuple[str, ...]
    partitions: int
    whole: bool
    files: int


@command(
    "sync",
    _WHOLE,
    examples=[
        "hoodie sync /data/trips --option hoodie.datasource.hive_sync.metastore.uris=thrift://metastore:9083",
        "hoodie sync '/data/lake/*' --option hoodie.datasource.hive_sync.database=lake --whole",
    ],
    hoodie=True,
)
def sync(call: Call, whole: bool) -> int:
    """Register tables in a Hive metastore, or bring their entries there up to date.

    The options hoodie.datasource.hive_sync.* and hoodie.datasource.meta.sync.* say where and how.
    """
    from hoodie.sync.hive import sync_table

    def do(target: Target) -> Synced:
        result = sync_table(target.storage, target.settings, whole=whole)
        entries = tuple(
            SyncEntry(entry.name, entry.created, entry.altered, entry.added, entry.moved, entry.dropped, entry.whole)
            for entry in result.entries
        )
        return Synced(result.metastore, result.instant, entries, sum(result.calls.values()))

    return call.print_each(do, synced_text)


@command(
    "manifest",
    cli_option(
        "--format",
        "formats",
        multiple=True,
        metavar="NAME",
        help="symlink or csv, several times for both; without it those of hoodie.sync.manifest.",
        example="--format symlink --format csv",
    ),
    _WHOLE,
    examples=["hoodie manifest /data/trips --format symlink", "hoodie manifest '/data/lake/*' --format csv --whole"],
    hoodie=True,
)
def manifest(call: Call, formats: tuple[str, ...], whole: bool) -> int:
    """Write the lists of current base files that engines without Hudi read."""
    from hoodie.config.sync import ManifestOptions
    from hoodie.sync.manifest import write_manifests

    if not formats and not call.options.read(ManifestOptions).chosen_formats:
        raise click.UsageError("no manifest is asked for: give --format, or the option hoodie.sync.manifest")

    def do(target: Target) -> Manifests:
        manifests = write_manifests(target.storage, target.settings, formats=formats or None, whole=whole)
        return Manifests(
            manifests.instant, manifests.formats, len(manifests.partitions), manifests.whole, manifests.files
        )

    return call.print_each(do, manifests_text)


def synced_text(synced: Synced) -> list[str]:
    lines = [f"synced {synced.instant or 'an empty table'} to {synced.metastore}, {synced.requests} requests"]
    for entry in synced.entries:
        what = "created" if entry.created else "altered" if entry.altered else ""
        counts = {"added": entry.added, "moved": entry.moved, "dropped": entry.dropped}
        parts = [what, *(f"{number} partitions {verb}" for verb, number in counts.items() if number)]
        lines.append(f"  {entry.name}: {', '.join(filter(None, parts)) or 'no change'}")
    return lines


def manifests_text(manifests: Manifests) -> list[str]:
    partitions = (
        f"all {manifests.partitions} partitions" if manifests.whole else f"{manifests.partitions} changed partitions"
    )
    up_to = f"up to {manifests.instant}" if manifests.instant else "of an empty table"
    return [f"{' and '.join(manifests.formats)} of {partitions}, {manifests.files} files, {up_to}"]
