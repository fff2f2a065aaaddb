"""Statements of Hudi's SQL pages: what the real Hudi answered to each, and how its answers and ours compare."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import EllipsisType
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


def statements() -> Iterator[tuple[str, bool, bool]]:
    """Each statement, whether its rows are asked for, and whether the default suite runs it."""
    by_day = True
    for line in (_FOLDER / "sql_statements.sql").read_text().splitlines():
        if line in ("-- by night", "-- by day"):
            by_day = line == "-- by day"
        elif line and not line.startswith("--"):
            yield line.removeprefix("? "), line.startswith("? "), by_day


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

    here  its rows; None: it refuses the statement; ...: it carries it out, and its rows are not compared
    """

    why: str
    here: list[tuple[Any, ...]] | EllipsisType | None = ...


_AS_OF = "the time may be an expression, and VERSION an instant"
_REPLACES = "tables are put in place of others"
_INDEX = "an index that no query uses misleads"
_FAULT = "the real one fails, or mixes columns up"
_PARTITIONS = "there is nothing to add: a partition is there as long as it has rows"
_PARTIAL = "the real one fails where a merge sets some of the columns"
_FIRST = [(1, "a"), (2, "b")]
DIFFERS: dict[str, Difference] = {
    "DESCRIBE trips name": Difference(
        "the comment is there", [("col_name", "name"), ("data_type", "string"), ("comment", "who")]
    ),
    "DESCRIBE trips PARTITION (city='oslo')": Difference("partitions are described without a metastore"),
    "DESCRIBE trips_ext": Difference("comments are kept with the table"),
    "CREATE OR REPLACE TABLE ctas USING hudi TBLPROPERTIES (primaryKey='id') AS SELECT id, name FROM trips": Difference(
        _REPLACES
    ),
    "SELECT id, name FROM ctas ORDER BY id": Difference(_REPLACES, [*_FIRST, (3, "c")]),
    "SELECT id, v FROM hist VERSION AS OF '$hist.1' ORDER BY id": Difference(_AS_OF, _FIRST),
    "SELECT id, v FROM hist VERSION AS OF $hist.1 ORDER BY id": Difference(_AS_OF, _FIRST),
    "SELECT id, v FROM hist TIMESTAMP AS OF current_timestamp() ORDER BY id": Difference(_AS_OF, [(1, "a2")]),
    "SELECT id, v FROM hist TIMESTAMP AS OF date_add(current_date(), 1) ORDER BY id": Difference(_AS_OF, [(1, "a2")]),
    "SELECT id, v FROM hist TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY ORDER BY id": Difference(_AS_OF, []),
    "COMMENT ON TABLE trips IS 'all rides'": Difference("a table's comment can be another one"),
    "DESCRIBE EXTENDED trips": Difference("has that comment"),
    "ALTER TABLE trips CHANGE COLUMN extra2 extra2 BIGINT": Difference("int becomes bigint without ids"),
    "DESCRIBE trips": Difference("has that type"),
    "ALTER TABLE parts DROP PARTITION (dt = '2024-01-01')": Difference("a part of the values is enough"),
    "SHOW PARTITIONS parts": Difference("without that partition"),
    "SELECT id FROM parts ORDER BY id": Difference("without its row"),
    "ALTER TABLE parts ADD PARTITION (dt = '2025-01-01', hh = 1)": Difference(_PARTITIONS),
    "ALTER TABLE parts ADD IF NOT EXISTS PARTITION (dt = '2025-01-01', hh = 1)": Difference(_PARTITIONS),
    "INSERT OVERWRITE parts PARTITION (dt = '2024-01-01', hh = 1) SELECT 9, 'z', 1": Difference(_FAULT),
    "SELECT id, dt, hh FROM parts ORDER BY id": Difference("has that row"),
    "INSERT INTO parts (id, ts, dt, hh) VALUES (14, 1, '2024-01-05', 1)": Difference(
        "columns that are left out are null"
    ),
    "SELECT id, v, dt, hh FROM parts ORDER BY id": Difference("has these rows"),
    "MERGE INTO partial t USING (SELECT 1 AS id, 'v2' AS v, 2L AS ts) s ON t.id = s.id WHEN MATCHED THEN UPDATE "
    "SET t.v = s.v, t.ts = s.ts": Difference(_PARTIAL),
    "SELECT id, v, w, ts FROM partial": Difference(_PARTIAL, [(1, "v2", "w", 2)]),
    "CREATE INDEX IF NOT EXISTS idx ON trips USING lucene (name)": Difference(_INDEX, None),
    "SHOW INDEXES FROM trips": Difference(_INDEX, None),
    "DROP INDEX idx ON trips": Difference(_INDEX, None),
    "REFRESH INDEX idx ON trips": Difference(_INDEX, None),
}
