"""Tables whose columns Hudi altered with schema-on-read, and the rows that it reads of them."""

import datetime as dt
import decimal
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

FOLDER = Path(__file__).parents[1] / "fixtures" / "schema_on_read"
NAMES = sorted(path.stem for path in FOLDER.glob("*.zip"))
_META = ("_hoodie_commit_time", "_hoodie_record_key")
Rows = list[dict[str, Any]]


def unpack(name: str, into: Path) -> str:
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        archive.extractall(into)
    return str(into / name)


def reads(name: str) -> Iterator[tuple[str, dict[str, str], Rows]]:
    """The reads that Hudi answered: a kind of scan, its arguments, and the rows by their key."""
    views = json.loads((FOLDER / f"{name}.json").read_text())["views"]
    every = [("snapshot", {}, views["snapshot"]), ("read_optimized", {}, views.get("read_optimized", ""))]
    every += [("as_of", {"as_of": instant}, rows) for instant, rows in views["as_of"].items()]
    every += [
        ("changes", {"begin": "earliest" if begin == "000" else begin}, rows)
        for begin, rows in views["incremental"].items()
    ]
    return ((kind, arguments, rows) for kind, arguments, rows in every if not isinstance(rows, str))


def snapshot(name: str) -> Rows:
    return next(rows for kind, _, rows in reads(name) if kind == "snapshot")


def comparable(rows: pa.Table | Rows) -> Rows:
    """Rows as the vectors have them."""
    items = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    plain = [
        {name: _plain(value) for name, value in row.items() if not name.startswith("_hoodie_") or name in _META}
        for row in items
    ]
    return sorted(plain, key=lambda row: str(row["_hoodie_record_key"]))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        pairs = [_plain(list(item)) if isinstance(item, tuple) else _plain(item) for item in value]
        return sorted(pairs, key=repr) if value and isinstance(value[0], tuple) else pairs
    if isinstance(value, decimal.Decimal):
        return format(value.normalize(), "f")
    return value.isoformat() if isinstance(value, dt.date) else value
