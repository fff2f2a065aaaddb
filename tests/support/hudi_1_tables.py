"""Tables of Hudi 1.x, and the rows that the same Hudi read from them: `tests/fixtures/hudi-1.x`.

Its README says what is inside, and how values are written there.
"""

import datetime as dt
import decimal
import json
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

TABLES = Path(__file__).parents[1] / "fixtures" / "hudi-1.x"

#: Columns that Hudi's rows are noted without.
UNNOTED = ("_hoodie_commit_seqno", "_hoodie_file_name")
_VIEWS = ("snapshot", "read_optimized", "as_of", "incremental", "cdc")

Row = dict[str, Any]


def table_names() -> list[str]:
    return sorted(path.stem for path in TABLES.glob("*.json"))


@cache
def facts(name: str) -> dict[str, Any]:
    return dict(json.loads((TABLES / f"{name}.json").read_text()))


def views(name: str) -> list[str]:
    """The reads whose rows are noted, such as "snapshot" and "incremental 000 20261123124211851"."""
    return [key for key in facts(name) if key.split()[0] in _VIEWS]


def unpack(name: str, into: Path) -> Path:
    """Unzip a table; returns the folder that holds its .hoodie."""
    with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
        archive.extractall(into)
    return into / name


def begin_of(name: str, view: str) -> str:
    """The begin of a noted range as an exclusive one: Hudi 1.0.2 includes it, but not in change data."""
    kind, begin, _ = view.split()
    if kind == "cdc" or begin == "000" or not facts(name)["hudi"].startswith("1.0"):
        return begin
    return f"{int(begin) - 1:017d}"


def noted(name: str, view: str) -> list[Row]:
    """The rows that Hudi read, sorted; images of change data are structs without Hudi's columns."""
    rows = facts(name)[view]
    return sorted_rows(map(_change, rows) if view.startswith("cdc") else rows)


def noting(rows: pa.Table) -> list[Row]:
    """Rows as they are noted, sorted."""
    kept = rows.drop_columns([column for column in UNNOTED if column in rows.column_names])
    return sorted_rows({name: _plain(value) for name, value in row.items()} for row in kept.to_pylist())


def noting_changes(rows: pa.Table) -> list[Row]:
    """Change data as it is noted."""
    return sorted_rows(_change(row) for row in rows.to_pylist())


def sorted_rows(rows: Iterator[Row] | list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


def _change(row: Row) -> Row:
    images = {side: json.loads(row[side] or "null") for side in ("before", "after")}
    own = {
        side: image and {column: value for column, value in image.items() if not column.startswith("_hoodie_")}
        for side, image in images.items()
    }
    return {**row, **own}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) for item in value):  # a map
            return sorted(([_plain(k), _plain(v)] for k, v in value), key=repr)
        return [_plain(item) for item in value]
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return "hex:" + value.hex()
    if isinstance(value, float) and value != value:
        return "NaN"
    return value
