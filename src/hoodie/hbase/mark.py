"""The mark that ties an HBase index to its table: the index has the keys of a commit. So it is not another table's, not
an older copy, and not emptied.

A write that puts entries also puts one row of its own, the mark, before it is published: with its instant, and the name
of the table. The commit records that. So the index is never behind the table, whichever process crashes; and commits
of Hudi's writers, which have no mark, require none. The mark has the form of an entry and the time of its commit's
entries: what removes those (a scan of Hudi's `rollback.sync`, an older snapshot) removes the mark too.
"""

from contextlib import suppress
from dataclasses import dataclass

from hoodie.errors import CorruptIndex
from hoodie.hbase.client import Cells, HBaseClient
from hoodie.hbase.entries import ENTRY, NO_LATER, KeyEntry, put_entries
from hoodie.index.contract import IndexContext
from hoodie.timeline.load import read_commit

#: The row of the mark. No ordinary record key begins so.
MARK = b"\0hoodie.index"
#: In the extra metadata of a commit whose keys went to the index: the table's name as in the mark; "" when the commit
#: put no entries, and no mark.
SEEN = "hoodie.index.hbase.seen"
_FILE_ID = b"hoodie-index-mark"  # for readers that read the mark as an entry
#: Commits that are looked at, at most, for the newest one that put a mark.
_LOOKED_AT = 10


@dataclass(frozen=True, slots=True)
class Mark:
    """instant  of the newest commit whose entries the index has, or of a later write that was not published
    table       whose index it is
    """

    instant: str
    table: str


def read_mark(client: HBaseClient) -> Mark | None:
    """The mark of an index; None where there is none."""
    cells: Cells = client.get([MARK], ENTRY).get(MARK, {})
    if any(name not in cells for name in ENTRY):
        return None
    instant, _, table = (cells[name].value.decode(errors="replace") for name in ENTRY)
    return Mark(instant, table)


def put_mark(client: HBaseClient, mark: Mark, timestamp: int, *, force: bool = False) -> None:
    """Put the mark, and verify that it, or that of a later write, is stored. Raises IndexUnavailable.

    force  replace another table's, too
    """
    entry = KeyEntry(mark.instant.encode(), _FILE_ID, mark.table.encode())
    put_entries(client, [MARK], [entry], timestamp, last=NO_LATER if force else None)


def newest_seen(context: IndexContext) -> Mark | None:
    """The newest of the last commits that put a mark, with the table's name then.

    Costs a small read for each commit up to it, usually one.
    """
    for instant in list(reversed(context.timeline.commits))[:_LOOKED_AT]:
        with suppress(FileNotFoundError):  # rolled back meanwhile
            if name := read_commit(context.storage, context.timeline, instant).extra.get(SEEN):
                return Mark(instant.requested, name)
    return None


def require_seen(client: HBaseClient, context: IndexContext, where: str) -> None:
    """Check that the index is the table's and as new as the table, before keys missing from it are considered new.

    where   the index, for errors
    Raises  CorruptIndex saying what is wrong
    """
    expected, mark = newest_seen(context), read_mark(client)
    rebuild = f"Rows would be written twice. Rebuild the index: hoodie index rebuild {context.storage.root}"
    if expected is None:
        rows = any(stat.num_writes > 0 for stat in context.written)
        if mark is None and rows and client.is_empty():
            raise CorruptIndex(f"{where} is empty, and the table has rows. {rebuild}")
        return
    if mark is None:
        raise CorruptIndex(
            f"{where} does not know that commit {expected.instant} put its keys there: it was emptied or rebuilt "
            f"since, or belongs to another table. {rebuild}"
        )
    if mark.table != expected.table:
        raise CorruptIndex(
            f"{where} belongs to the table {mark.table!r}, not of {expected.table!r}: see hoodie.index.hbase.table."
        )
    if mark.instant < expected.instant:
        raise CorruptIndex(
            f"{where} is as of {mark.instant}, and does not have the keys of commit {expected.instant}: it is an "
            f"older copy, or HBase lost what it had. {rebuild}"
        )
