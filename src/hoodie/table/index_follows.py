"""What a rollback or restore of completed commits means for an index outside the table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hoodie.config.hbase import HBaseOptions
from hoodie.config.options import read_options
from hoodie.errors import HoodieError, IndexOutOfDate
from hoodie.index import hbase
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import FileGroupId
from hoodie.storage.protocol import Storage
from hoodie.table.index_rebuild import find_again, index_name
from hoodie.table.state import load_state
from hoodie.timeline.load import read_commit


@contextmanager
def index_follows(storage: Storage, options: Mapping[str, str]) -> Iterator[None]:
    """Around a rollback or restore: rows that it brings back get the entries again that they lost.

    Entries of the commits that go count no more, and need nothing. But a row that one of them deleted or moved lost its
    entry when that was published, and comes back. Its file group is one that the commit wrote to, or replaced.

    Warns IndexOutOfDate when the index does not take that: the table is as it should be.
    """
    before = load_state(storage)
    if index_name(before, options) != hbase.NAME:
        yield
        return
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
            stacklevel=3,
        )


def _groups(commit: CommitMetadata) -> Iterator[FileGroupId]:
    for partition, stats in commit.stats.items():
        for stat in stats:
            yield FileGroupId(partition, stat.file_id)
    for partition, ids in commit.replaced.items():
        for file_id in ids:
            yield FileGroupId(partition, file_id)
