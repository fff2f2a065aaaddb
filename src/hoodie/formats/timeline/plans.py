"""Compaction plans and requested replace commits, clustering plans included, as the Avro files of the timeline.

Conventions and source: see hoodie.formats.timeline.services.
"""

from hoodie.errors import UnsupportedTable
from hoodie.formats.avro.container import read_one, write_one
from hoodie.formats.timeline import schemas
from hoodie.formats.timeline.parts import Record, file_group, file_names, optional_name, plan_strategy
from hoodie.model.files import absolute_path
from hoodie.model.plans import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CompactionOperation,
    CompactionPlan,
    ReplacePlan,
)

# --- compaction ---


def encode_compaction_plan(plan: CompactionPlan) -> bytes:
    operations = [
        {
            "baseInstantTime": operation.base_instant,
            "deltaFilePaths": list(operation.log_files),
            "dataFilePath": operation.base_file or None,
            "fileId": operation.group.file_id,
            "partitionPath": operation.group.partition,
            "metrics": dict(operation.metrics),
            "bootstrapFilePath": None,
        }
        for operation in plan.operations
    ]
    strategy = plan.strategy and {
        "compactorClassName": plan.strategy.name,
        "strategyParams": dict(plan.strategy.parameters),
        "version": 1,
    }
    record = {
        "operations": operations,
        "extraMetadata": dict(plan.extra),
        "version": 2,  # of the plan: data files by name, not by path
        "strategy": strategy,
        "preserveHoodieMetadata": plan.preserve_meta,
    }
    return write_one(schemas.COMPACTION_PLAN, record)


def decode_compaction_plan(data: bytes, path: str) -> CompactionPlan:
    """The plan; those of version 1, with whole paths, included. Raises CorruptFile, UnsupportedTable."""
    record = read_one(data, schemas.COMPACTION_PLAN, path)
    if record["version"] not in (None, 1, 2):
        raise UnsupportedTable(
            f"{path}: a compaction plan of version {record['version']}; versions 1 and 2 are known. "
            "Run or unschedule it with the Hudi release that wrote it."
        )
    operations = tuple(
        CompactionOperation(
            group=file_group(operation, path),
            base_instant=operation["baseInstantTime"] or "",
            base_file=optional_name(operation["dataFilePath"], path),
            log_files=file_names(operation["deltaFilePaths"], path),
            metrics=operation["metrics"] or {},
        )
        for operation in record["operations"] or ()
    )
    return CompactionPlan(
        operations=operations,
        extra=record["extraMetadata"] or {},
        strategy=plan_strategy(record["strategy"], "compactorClassName"),
        preserve_meta=bool(record["preserveHoodieMetadata"]),
    )


# --- replace commits and clustering ---


def encode_replace_plan(plan: ReplacePlan, root: str) -> bytes:
    record = {
        "operationType": plan.operation or None,
        "clusteringPlan": plan.clustering and _clustering_record(plan.clustering, root),
        "extraMetadata": dict(plan.extra) or None,
        "version": None if plan == ReplacePlan() else 1,  # Hudi leaves all fields null when there is nothing to say
    }
    return write_one(schemas.REQUESTED_REPLACE, record)


def _clustering_record(plan: ClusteringPlan, root: str) -> Record:
    groups = [
        {
            "slices": [
                {
                    "dataFilePath": slice_.base_file and absolute_path(root, slice_.group.partition, slice_.base_file),
                    "deltaFilePaths": [absolute_path(root, slice_.group.partition, name) for name in slice_.log_files],
                    "fileId": slice_.group.file_id,
                    "partitionPath": slice_.group.partition,
                    "bootstrapFilePath": "",
                    "version": 1,
                }
                for slice_ in group.slices
            ],
            "metrics": dict(group.metrics),
            "numOutputFileGroups": group.outputs,
            "extraMetadata": dict(group.extra) or None,
            "version": 1,
        }
        for group in plan.groups
    ]
    strategy = plan.strategy and {
        "strategyClassName": plan.strategy.name,
        "strategyParams": dict(plan.strategy.parameters),
        "version": 1,
    }
    return {
        "inputGroups": groups,
        "strategy": strategy,
        "extraMetadata": dict(plan.extra),
        "version": 1,
        "preserveHoodieMetadata": plan.preserve_meta,
    }


def decode_replace_plan(data: bytes, path: str) -> ReplacePlan:
    """The plan of a requested replace commit; an empty file is one without plan."""
    if not data:
        return ReplacePlan()
    record = read_one(data, schemas.REQUESTED_REPLACE, path)
    clustering = record["clusteringPlan"]
    return ReplacePlan(
        operation=record["operationType"] or "",
        clustering=None if clustering is None else _clustering(clustering, path),
        extra=record["extraMetadata"] or {},
    )


def _clustering(record: Record, path: str) -> ClusteringPlan:
    groups = tuple(
        ClusteringGroup(
            slices=tuple(
                ClusteringSlice(
                    group=file_group(slice_, path),
                    base_file=optional_name(slice_["dataFilePath"], path),
                    log_files=file_names(slice_["deltaFilePaths"], path),
                )
                for slice_ in group["slices"] or ()
            ),
            metrics=group["metrics"] or {},
            outputs=1 if group["numOutputFileGroups"] is None else group["numOutputFileGroups"],
            extra=group["extraMetadata"] or {},
        )
        for group in record["inputGroups"] or ()
    )
    return ClusteringPlan(
        groups=groups,
        strategy=plan_strategy(record["strategy"], "strategyClassName"),
        extra=record["extraMetadata"] or {},
        preserve_meta=bool(record["preserveHoodieMetadata"]),
    )
