"""What the Avro files of the timeline have in common: file groups, names of files, instants."""

from collections.abc import Iterable, Mapping
from typing import Any

from hoodie.errors import CorruptFile
from hoodie.model.files import FileGroupId, absolute_path, file_name, inside
from hoodie.model.plans import InstantRef, PlanStrategy

Record = Mapping[str, Any]


def file_group(record: Record, path: str) -> FileGroupId:
    file_id = record["fileId"]
    if not file_id or "/" in file_id:
        raise CorruptFile(path, f"a plan with file id {file_id!r}")
    return FileGroupId(inside(record["partitionPath"] or "", path), inside(file_id, path))


def plan_strategy(record: Record | None, name: str) -> PlanStrategy | None:
    return None if record is None else PlanStrategy(name=record[name] or "", parameters=record["strategyParams"] or {})


def optional_name(text: str | None, path: str) -> str:
    return file_name(text, path) if text else ""


def file_names(texts: Iterable[str] | None, path: str) -> tuple[str, ...]:
    return tuple(file_name(text, path) for text in texts or ())


def file_name_sizes(texts: Mapping[str, int] | None, path: str) -> dict[str, int]:
    return {file_name(text, path): size for text, size in (texts or {}).items()}


def with_root(sizes: Mapping[str, int], root: str, partition: str) -> dict[str, int]:
    return {absolute_path(root, partition, name): size for name, size in sizes.items()}


def inside_partitions(values: Mapping[str, Any], path: str) -> dict[str, Any]:
    return {inside(partition, path): value for partition, value in values.items()}


def ref(record: Record) -> InstantRef:
    return InstantRef(record["commitTime"], record["action"])


def ref_record(ref: InstantRef) -> Record:
    return {"commitTime": ref.time, "action": ref.action}
