"""Clusterings as Hudi plans them, which nobody carries out."""

from collections.abc import Collection

from hoodie.formats.timeline.plans import encode_replace_plan
from hoodie.model.instant import Action
from hoodie.model.plans import ClusteringGroup, ClusteringPlan, ClusteringSlice, ReplacePlan
from hoodie.storage.protocol import Storage
from hoodie.table.state import load_state
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.transition import create_requested, to_inflight

PLAN = "20990101000000000"
WITHDRAW = {"hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true"}


def plan_clustering(
    storage: Storage, partitions: Collection[str], *, inflight: bool = False, instant: str = PLAN
) -> str:
    """Plan a clustering of all file groups of some partitions; the path of the plan. inflight: its run died."""
    slices = tuple(
        ClusteringSlice(
            group=slice_.group,
            base_file=slice_.base.name if slice_.base else "",
            log_files=tuple(log.name for log in slice_.logs),
        )
        for slice_ in ArrowTable(storage).slices()
        if slice_.group.partition in partitions
    )
    plan = ReplacePlan(operation="CLUSTER", clustering=ClusteringPlan(groups=(ClusteringGroup(slices=slices),)))
    layout = load_state(storage).layout
    action = Action.CLUSTERING if layout.stamps_completion else Action.REPLACE_COMMIT
    planned = create_requested(storage, instant, action, encode_replace_plan(plan, storage.root), layout=layout)
    if inflight:
        to_inflight(storage, planned, layout=layout)
        storage.write(f"oslo/f-0_1-1-1_{instant}.parquet", b"half")
    return layout.path(planned)
