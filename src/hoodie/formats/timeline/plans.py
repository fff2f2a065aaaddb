"""Compaction plans and requested replace commits, clustering plans included, as the Avro files of the timeline.

Source: docs/format/avro-payloads.md.
"""

from collections.abc import Callable
from typing import TypeVar

from hoodie.errors import UnsupportedTable
from hoodie.formats.timeline.forms import (
    FILE_ID,
    FLAG,
    INSIDE,
    METRICS,
    NAME,
    NAMES,
    PATH,
    PATHS,
    TEXT,
    TEXTS,
    Form,
    Place,
    PlainType,
    attribute_field,
    nullable_field,
    tuple_of,
    unread_field,
    version_field,
)
from hoodie.model.files import FileGroupId
from hoodie.model.plans import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CompactionOperation,
    CompactionPlan,
    PlanStrategy,
    ReplacePlan,
)

T = TypeVar("T")


def _of_group(make: Callable[..., T]) -> Callable[..., T]:
    return lambda partition, file_id, **values: make(group=FileGroupId(partition, file_id), **values)


_GROUP = (
    attribute_field("fileId", PlainType(["null", "string"], decode=FILE_ID.decode), "group.file_id"),
    nullable_field("partitionPath", INSIDE, "group.partition"),
)
_EXTRA = nullable_field("extraMetadata", TEXTS, "extra")


def _strategy(name: str, class_name: str) -> Form[PlanStrategy]:
    return Form(
        name,
        PlanStrategy,
        nullable_field(class_name, TEXT, "name"),
        nullable_field("strategyParams", TEXTS, "parameters"),
        version_field(),
    )


def _known_version(number: int | None, place: Place) -> int | None:
    if number not in (None, 1, 2):
        raise UnsupportedTable(
            f"{place.path}: a compaction plan of version {number}; versions 1 and 2 are known. "
            "Run or unschedule it with the Hudi release that wrote it."
        )
    return number


# --- compaction ---

_OPERATION = Form(
    "HoodieCompactionOperation",
    _of_group(CompactionOperation),
    attribute_field("baseInstantTime", PlainType(["null", "string"], decode=TEXT.decode), "base_instant"),
    nullable_field("deltaFilePaths", NAMES, "log_files"),
    nullable_field("dataFilePath", NAME, "base_file", empty=False),
    *_GROUP,
    nullable_field("metrics", METRICS, "metrics"),
    unread_field("bootstrapFilePath", ["null", "string"], default=None),
)
#: A plan is written as version 2, with data files by name; those of version 1, with whole paths, are read, too.
COMPACTION_PLAN = Form(
    "HoodieCompactionPlan",
    lambda number, **values: CompactionPlan(**values),
    nullable_field("operations", tuple_of(_OPERATION), "operations"),
    _EXTRA,
    version_field(2)._replace(argument="number", kind=PlainType(["int", "null"], decode=_known_version)),
    nullable_field("strategy", _strategy("HoodieCompactionStrategy", "compactorClassName"), "strategy"),
    attribute_field(
        "preserveHoodieMetadata", PlainType(["boolean", "null"], decode=FLAG.decode), "preserve_meta", default=False
    ),
)
encode_compaction_plan, decode_compaction_plan = COMPACTION_PLAN.write, COMPACTION_PLAN.read

# --- replace commits and clustering ---

_SLICE = Form(
    "HoodieSliceInfo",
    _of_group(ClusteringSlice),
    nullable_field("dataFilePath", PATH, "base_file"),
    nullable_field("deltaFilePaths", PATHS, "log_files"),
    *_GROUP,
    unread_field("bootstrapFilePath", ["null", "string"], "", default=None),
    version_field(),
    partition=lambda slice_: slice_.group.partition,
)
_CLUSTERING_GROUP = Form(
    "HoodieClusteringGroup",
    ClusteringGroup,
    nullable_field("slices", tuple_of(_SLICE), "slices"),
    nullable_field("metrics", METRICS, "metrics"),
    attribute_field(
        "numOutputFileGroups",
        PlainType(["int", "null"], decode=lambda number, place: 1 if number is None else number),
        "outputs",
        default=1,
    ),
    nullable_field("extraMetadata", TEXTS, "extra", empty=False),
    version_field(),
)
_CLUSTERING_PLAN = Form(
    "HoodieClusteringPlan",
    ClusteringPlan,
    nullable_field("inputGroups", tuple_of(_CLUSTERING_GROUP), "groups"),
    nullable_field("strategy", _strategy("HoodieClusteringStrategy", "strategyClassName"), "strategy"),
    _EXTRA,
    version_field(),
    nullable_field("preserveHoodieMetadata", FLAG, "preserve_meta"),
)
REPLACE_PLAN = Form(
    "HoodieRequestedReplaceMetadata",
    ReplacePlan,
    nullable_field("operationType", TEXT, "operation", empty=False),
    nullable_field("clusteringPlan", _CLUSTERING_PLAN, "clustering"),
    nullable_field("extraMetadata", TEXTS, "extra", empty=False),
    # Hudi leaves all fields null when there is nothing to say.
    version_field()._replace(take=lambda plan, place: None if plan == ReplacePlan() else 1),
)
encode_replace_plan = REPLACE_PLAN.write


def decode_replace_plan(data: bytes, path: str) -> ReplacePlan:
    """The plan of a requested replace commit; an empty file is one without plan."""
    return REPLACE_PLAN.read(data, path) if data else ReplacePlan()
