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

    HBASE: rows that come back get the entries again that they lost. Those of the instants that go count no more, but a
    row that one of them deleted or moved lost its entry when that was published.

    options  name the index, as those of a write do
    Raises   InvalidOption when they name a user's own that cannot be made
    Warns    IndexOutOfDate when the index does not take what it is told: the table is as it should be
    """
    before = load_state(storage)
    named = named_index(before, options)
    in_hbase = named.name == hbase.NAME
    index = own.make(named.name, options, before.config) if named.own else None
    commits = before.timeline.commits if in_hbase else ()
    said = {commit.requested: read_commit(storage, before.timeline, commit) for commit in commits}
    yield
    if index is None and not in_hbase:
        return
    after = load_state(storage)
    writes = [instant for instant in reversed(before.timeline.instants) if instant.action in WRITES]
    gone = [each.requested for each in writes if after.timeline.find(each.requested, each.action) is None]
    if in_hbase and gone:
        groups = {group for time in gone if time in said for group in _groups(said[time])}
        try:
            if groups:
                find_again(storage, options, groups)
            if read_options(HBaseOptions, options).rollback_sync:
                index = hbase.make(options, after.config)
        except HoodieError as problem:
            warnings.warn(
                IndexOutOfDate(
                    f"{', '.join(gone)} rolled back, but the index does not know the rows again that came back: "
                    f"{problem} Before the next write: hoodie index rebuild"
                ),
                stacklevel=3,
            )
    if index is not None:
        tell_rolled_back(index, gone)


def _groups(commit: CommitMetadata) -> Iterator[FileGroupId]:
    for partition, stats in commit.stats.items():
        for stat in stats:
            yield FileGroupId(partition, stat.file_id)
    for partition, ids in commit.replaced.items():
        for file_id in ids:
            yield FileGroupId(partition, file_id)
