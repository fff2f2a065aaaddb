"""Keys that a base file holds though a log beside it deletes them.

An index that looks into base files finds such a key. Alone that does no harm: an upsert brings the row back in its file
group. But a row that was inserted since is in another file group, and of the two hits only that one counts.
"""

from __future__ import annotations

from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action
from hoodie.table.state import TableFiles, TableState
from hoodie.timeline.load import read_commit


def may_hold_deleted(state: TableState, files: TableFiles) -> bool:
    """Whether one of the base files may: its file group has logs, or had some before a pending compaction, and a delta
    commit since the base file counts deletes or is archived."""
    if not state.config.merge_on_read:
        return False
    slices = files.groups
    logged: dict[FileGroupId, str] = {}
    for base in (base for part in files.bases.values() for base in part):
        slice_ = slices.get(base.group)
        if slice_ is None or slice_.logs or slice_.base_instant != base.instant:
            logged[base.group] = base.instant
    if not logged:
        return False
    first = min(logged.values())
    if first < min((instant.requested for instant in state.timeline.commits), default=first):
        return True
    for instant in state.timeline.completed({Action.DELTA_COMMIT}):
        if instant.requested <= first:
            continue
        for partition, stats in read_commit(state.storage, state.timeline, instant).stats.items():
            if any(stat.num_deletes and FileGroupId(partition, stat.file_id) in logged for stat in stats):
                return True
    return False
