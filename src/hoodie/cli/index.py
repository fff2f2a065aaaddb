"""`hoodie index`: indexes that are kept outside the table."""

from collections.abc import Mapping
from dataclasses import dataclass

import click

from hoodie.cli.arguments import command, flag
from hoodie.cli.calls import Call, Target


@dataclass(frozen=True, slots=True)
class IndexRebuilt:
    """What a rebuild did.

    entries  written
    removed  entries that no row of the table had
    groups   file groups that were read
    doubled  record keys with rows in several file groups -> "<partition path>/<file id>" of these
    mended   the rows of these keys but one each were deleted
    """

    entries: int
    removed: int
    groups: int
    seconds: float
    doubled: Mapping[str, tuple[str, ...]]
    mended: bool
    text: str


@dataclass(frozen=True, slots=True)
class IndexChosen:
    """The index of a table's writes.

    index      such as SIMPLE, BLOOM or BUCKET
    is_global  a key is unique in the table, not only in its partition
    why        it is this one
    """

    index: str
    is_global: bool
    why: str


@click.group("index")
def index() -> None:
    """Show a table's index; make that in HBase."""


@command(
    "rebuild",
    flag(
        "--mend",
        "Where a key is in more than one file group, keep the newest row, and delete the others in one commit, "
        "which can be rolled back.",
    ),
    examples=[
        "hoodie index rebuild /data/trips --option hoodie.index.hbase.thrift.host=gateway "
        "--option hoodie.index.hbase.table=trips"
    ],
    hoodie=True,
    group=index,
)
def index_rebuild_command(call: Call, mend: bool) -> int:
    """Write the entries of all rows to HBase.

    And remove those of no row.

    Give the options of the table's writes. A larger hoodie.index.hbase.put.batch.size is faster. Nothing else should
    write to the table meanwhile. Keys with rows in more than one file group are named, and the exit status is 1, unless
    --mend keeps one row of each.
    """
    from hoodie.lookup.index_follow import rebuild_index

    def do(target: Target) -> IndexRebuilt:
        rebuild = rebuild_index(target.storage, target.settings, mend_doubled=mend)
        doubled = {
            key: tuple(f"{group.partition}/{group.file_id}" for group in groups)
            for key, groups in rebuild.doubled.items()
        }
        return IndexRebuilt(
            rebuild.entries, rebuild.removed, rebuild.groups, rebuild.seconds, doubled, rebuild.mended, str(rebuild)
        )

    return call.print_each(
        do, lambda rebuild: [rebuild.text], lambda rebuild: bool(rebuild.doubled) and not rebuild.mended
    )


@command("show", examples=["hoodie index show /data/trips"], hoodie=True, group=index)
def index_show_command(call: Call) -> int:
    """Show the index that a write would use.

    And why: the options name it, the table was created with it, its files are those of buckets, or it is the default.
    """
    from hoodie.lookup.index_choice import choose_index
    from hoodie.table.state import load_state

    def do(target: Target) -> IndexChosen:
        chosen = choose_index(load_state(target.storage), target.settings)
        return IndexChosen(chosen.index.name, chosen.index.is_global, chosen.why)

    return call.print_each(
        do, lambda chosen: [f"{chosen.index}{' (global)' if chosen.is_global else ''}: {chosen.why}"]
    )
