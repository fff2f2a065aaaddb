"""Jobs on tables without a record key, and what the real Hudi 0.15 had after each step: `tests/vectors/keyless.json`.

`python -m engines.record_keyless` makes the vector.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[1] / "vectors" / "keyless.json"
COLUMNS = ("id", "name", "ts")
OPERATION = "hoodie.datasource.write.operation"

Row = tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class Step:
    """One write: of new rows, or of stored rows with their meta columns.

    operation  "" where none is named
    stored     a condition on stored rows, which are written again with `name` set, if that is not ""
    """

    rows: Sequence[Row] = ()
    operation: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    stored: str = ""
    name: str = ""

    def all_options(self, case: Case) -> dict[str, str]:
        named = {OPERATION: self.operation} if self.operation else {}
        return {"hoodie.table.name": "t", "hoodie.metadata.enable": "false", **case.options, **named, **self.options}


@dataclass(frozen=True, slots=True)
class Case:
    options: Mapping[str, str]
    steps: Sequence[Step]


_FIRST: Sequence[Row] = ((1, "a", 1), (1, "a", 1), (2, "b", 5), (3, "c", 3))
_LATER: Sequence[Row] = ((1, "x", 9),)
_ORDERED = {"hoodie.datasource.write.precombine.field": "ts"}
_BY_NAME = {"hoodie.datasource.write.partitionpath.field": "name"}
_MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
_OPERATIONS = (
    Step(_FIRST),
    Step(_LATER, "upsert"),
    Step(_LATER, "insert"),
    Step(_LATER, "bulk_insert"),
    Step(_LATER, "delete"),
    Step(stored="id = 2", operation="upsert", name="up"),
    Step(stored="id = 3", operation="delete"),
    Step(_LATER, "insert", {"hoodie.datasource.insert.dup.policy": "drop"}),
    Step(_LATER, "insert", {"hoodie.merge.allow.duplicate.on.inserts": "false"}),
    Step(_LATER, "insert", {"hoodie.datasource.write.insert.drop.duplicates": "true"}),
    Step(_LATER, "insert", {"hoodie.combine.before.insert": "true"}),
    Step(_LATER, "insert", {"hoodie.datasource.write.recordkey.field": "id"}),
    Step(_LATER, "insert_overwrite_table"),
)

CASES = {
    "copy on write": Case({}, _OPERATIONS),
    "merge on read": Case(_MERGE_ON_READ, _OPERATIONS),
    "ordered": Case(_ORDERED, (Step(_FIRST), Step(_LATER, "upsert"), Step(((1, "y", 1),), "insert"))),
    "partitioned": Case(
        _BY_NAME, (Step(_FIRST, "bulk_insert"), Step(_FIRST, "insert"), Step(((5, "a", 5),), "insert_overwrite"))
    ),
}


def as_stored(rows: Iterable[Mapping[str, Any]], instants: Sequence[str]) -> list[list[Any]]:
    """Rows of a table for comparison, in order: the key with the number of the write whose instant it has, the path,
    the user's columns."""
    found = []
    for row in rows:
        instant, _, rest = row["_hoodie_record_key"].partition("_")
        key = f"{instants.index(instant)}_{rest}"
        found.append([key, row["_hoodie_partition_path"], *(row[name] for name in COLUMNS)])
    return sorted(found)


def recorded(name: str) -> list[Any]:
    """After each step of a case: Hudi's rows by `as_stored`, or None where it refused the step."""
    found: list[Any] = json.loads(VECTORS.read_text())["cases"][name]
    return found
