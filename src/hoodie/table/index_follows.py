"""What a rollback or restore of completed commits means for an index outside the table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hoodie.config.hbase import HBaseOptions
from hoodie.config.options import read_options
from hoodie.errors import HoodieError, IndexOutOfDate
from hoodie.index import hbase, own
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileGroupId
from hoodie.model.instant import WRITES
from hoodie.storage.protocol import Storage
from hoodie.table.choose_index import named_index
from hoodie.table.index_rebuild import find_again
from hoodie.table.learn import tell_rolled_back
from hoodie.table.state import load_state
from hoodie.timeline.load import read_commit


@contextmanager
def index_follows(storage: Storage, options: Mapping[str, str]) -> Iterator[None]:
    """Around a rollback or restore: an index that keeps something of its own hears which instants are gone.

    options  name the index, as those of a write do
    Raises   InvalidOption when they name one that cannot be made
    Warns    IndexOutOfDate when the index does not take what it is told: the table is as it should be
    """
    before = load_state(storage)
    named = named_index(before, options)
    if named.own:
        index = own.make(named.name, options, before.config)
        yield
        left = load_state(storage).timeline
        gone = [
            i for i in reversed(before.timeline.instants) if i.action in WRITES and not left.find(i.requested, i.action)
        ]
        tell_rolled_back(index, [instant.requested for instant in gone])
    elif named.name == hbase.NAME:
        with _hbase_follows(storage, options):
            yield
    else:
        yield


@contextmanager
def _hbase_follows(storage: Storage, options: Mapping[str, str]) -> Iterator[None]:
    """Rows that a rollback brings back get the entries again that they lost.

    Entries of the commits that go count no more, and need nothing. But a row that one of them deleted or moved lost its
    entry when that was published, and comes back. Its file group is one that the commit wrote to, or replaced.
    """
    before = load_state(storage)
    commits = {i.requested: read_commit(storage, before.timeline, i) for i in before.timeline.commits}
    yield
    after = load_state(storage)
    left = {instant.requested for instant in after.timeline.commits}
    gone = {time: commit for time, commit in commits.items() if time not in left}
    if not gone:
        return
    try:
        find_again(storage, options, {group for commit in gone.values() for group in _groups(commit)})
        if read_options(HBaseOptions, options).rollback_sync:
            for time in gone:
                hbase.roll_back(hbase.reach(options, after.config), time)
    except HoodieError as problem:
        warnings.warn(
            IndexOutOfDate(
                f"{', '.join(gone)} rolled back, but the index does not know the rows again that came back: {problem} "
                "Before the next write: hoodie index rebuild"
            ),
            stacklevel=5,
        )


def _groups(commit: CommitMetadata) -> Iterator[FileGroupId]:
    for partition, stats in commit.stats.items():
        for stat in stats:
            yield FileGroupId(partition, stat.file_id)
    for partition, ids in commit.replaced.items():
        for file_id in ids:
            yield FileGroupId(partition, file_id)
