"""Tables whose keys lie where the indexes of this library do not look: they are not written, as rows would occur twice.

Source: spec/indexing-and-write-path.md 1 and 4.
"""

from __future__ import annotations

import re

from hoodie.config.write import IndexType
from hoodie.errors import UnsupportedTable
from hoodie.table.state import TableFiles, TableState

#: Commits that are looked at for one that wrote files.
_LOOK_BACK = 10
#: File ids of a bucket index begin with the bucket's number, of fewer than 100,000. One in 40,000 UUIDs does, too.
_BUCKET = re.compile(r"000\d{5}-")


def is_bucket(file_id: str) -> bool:
    """Whether a file id looks like one of a bucket index. Those of new file groups never do."""
    return _BUCKET.match(file_id) is not None


def refuse_buckets(state: TableState) -> None:
    """Raises UnsupportedTable when the newest files are those of a bucket index.

    Its writers put new keys into the logs of the bucket's file group, and read a bucket's number out of every file id.
    """
    for commit in state.commits(_LOOK_BACK):
        ids = [stat.file_id for part in commit.stats.values() for stat in part]
        if ids:
            if all(map(is_bucket, ids)):
                raise UnsupportedTable(
                    f"{state.config.name}: file ids such as {ids[0]} are those of Hudi's bucket index, which this "
                    "library does not write. Its other indexes would not find keys in log files, and its file groups "
                    "would belong to no bucket: write the table with Hudi."
                )
            return


def refuse_groups_of_logs(files: TableFiles, index: IndexType) -> None:
    """Raises UnsupportedTable when a file group has no base file, in which the index looks for keys."""
    if index.sees_logs:
        return
    for partition, slices in files.slices.items():
        seen = {base.group for base in files.bases.get(partition, ())}
        hidden = [slice_.group.file_id for slice_ in slices if slice_.group not in seen]
        if hidden:
            raise UnsupportedTable(
                f"partition {partition!r}: {len(hidden)} file groups, such as {hidden[0]}, have log files only, where "
                f"the index {index} finds no keys: present rows would be taken for new ones. A writer with another "
                "index made them; write with that one, or compact the table first."
            )
