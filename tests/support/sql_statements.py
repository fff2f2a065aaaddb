"""Statements of Hudi's SQL pages: what the real Hudi answered to each, and how its answers and ours compare."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "vectors"
VECTORS = _FOLDER / "sql_statements.json"
_COMMITS = (".commit", ".deltacommit", ".replacecommit")
#: What only the real one is told first: it is quicker so, and reads altered columns without code generation.
SETTINGS = (
    "SET hoodie.metadata.enable=false",
    "SET hoodie.embed.timeline.server=false",
    "SET hoodie.write.markers.type=DIRECT",
    "SET spark.sql.parquet.enableVectorizedReader=false",
)
#: Lines of DESCRIBE EXTENDED that are of the engine, the machine or the hour.
_OWN = (
    *("Created Time", "Created By", "Last Access", "Location", "Serde Library", "InputFormat", "OutputFormat"),
    *("Storage Properties", "Owner", "Partition Provider"),
)
#: Properties that Hudi adds to those of the statement.
_ADDED = re.compile(r"\b(path|option\.path|provider)=[^,\]]*(, )?")


def statements() -> Iterator[tuple[str, bool]]:
    """Each statement, and whether its rows are asked for."""
    for line in (_FOLDER / "sql_statements.sql").read_text().splitlines():
        if line and not line.startswith("--"):
            yield line.removeprefix("? "), line.startswith("? ")


def filled(text: str, root: Path) -> str:
    """A statement with the places and instants of a session."""
    text = text.replace("$root", str(root))
    return re.sub(r"\$(\w+)\.(\d)", lambda found: _instants(root / "warehouse" / found[1])[int(found[2]) - 1], text)


def _instants(table: Path) -> list[str]:
    return sorted(file.name[:17] for file in (table / ".hoodie").iterdir() if file.suffix in _COMMITS)


def recorded() -> dict[str, list[Any]]:
    """The answers of the real Hudi by statement, in the order in which it was asked: rows, None for an error."""
    answers: dict[str, list[Any]] = {}
    for text, answer in json.loads(VECTORS.read_text()):
        answers.setdefault(text, []).append(answer)
    return answers


def comparable(text: str, rows: list[dict[str, Any]]) -> list[str]:
    """Rows as both engines have them: without what is of the engine, the machine or the hour; in an order of their own
    unless the statement says one."""
    plain = [json.dumps(row) for row in map(_row, rows) if row]
    ordered = "ORDER BY" in text or text.startswith("DESCRIBE")
    return plain if ordered else sorted(plain)


def _row(row: dict[str, Any]) -> dict[str, Any]:
    if row.get("col_name") in _OWN or row.get("key") in ("option.path", "path"):
        return {}
    if row.get("col_name") == "Table Properties":
        return {**row, "data_type": _ADDED.sub("", row["data_type"]).replace(", ]", "]")}
    if "createtab_stmt" in row:
        return {"createtab_stmt": _created(row["createtab_stmt"])}
    return {**row, "comment": row["comment"] or None} if "comment" in row else row


def _created(text: str) -> str:
    """A CREATE TABLE without Hudi's own columns, and without the path that Hudi adds as an option."""
    lines = [
        line for line in text.splitlines() if not line.strip().startswith(("_hoodie_", "OPTIONS", "'path'", "LOCATION"))
    ]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Difference:
    """Why ours answers otherwise on purpose.

    refused  ours refuses the statement
    """

    why: str
    refused: bool = False


DIFFERS: dict[str, Difference] = {}
