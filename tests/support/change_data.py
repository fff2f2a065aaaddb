"""Tables with change data that Hudi wrote, and the rows of its own query of it."""

import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hoodie.model.meta import META_COLUMNS

FOLDER = Path(__file__).parents[1] / "fixtures" / "cdc"
NAMES = sorted(path.stem for path in FOLDER.glob("*.zip"))

Image = tuple[tuple[str, Any], ...] | None
Change = tuple[str, str, Image, Image]


@dataclass(frozen=True)
class Range:
    """What Hudi gives of (begin, end]; end None: now."""

    begin: str
    end: str | None
    changes: list[Change]


def unpack(name: str, into: Path) -> Path:
    """The table of a name, below `into`."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as archive:
        archive.extractall(into)
    return into / name


def ranges(name: str, path: Path) -> list[Range]:
    """The ranges noted for a table, with Hudi's rows; those of replaced file groups as they should be.

    Of a replaced group Hudi gives one row as often as the group has rows (README of the folder).
    """
    noted = json.loads((FOLDER / f"{name}.json").read_text())["cdc"]
    found = []
    for between, rows in noted.items():
        begin, end = between.split("..")
        changes = [change(row) for row in rows]
        for instant in {found[1] for found in changes}:
            if (path / ".hoodie" / f"{instant}.replacecommit").exists():
                removed = [row for row in changes if row[1] == instant and row[0] == "d"]
                assert (len(removed), len(set(removed))) == (4, 1)
                changes = [row for row in changes if row not in removed] + [
                    ("d", instant, _row(key, ts, word), None)
                    for key, ts, word in ((7, 1, "x"), (10, 1, "x"), (13, 1, "x"), (19, 2, "n"))
                ]
        found.append(Range(begin, end or None, ordered(changes)))
    return found


def _row(key: int, ts: int, word: str) -> Image:
    row = {"id": f"k{key:03d}", "part": "p2", "ts": ts, "v": round(key + ts / 10, 1), "name": f"{word}{key}-{ts}"}
    return tuple(sorted(row.items()))


def change(row: Mapping[str, Any]) -> Change:
    """A row of change data, its images as JSON text or structs, without meta columns."""
    return row["op"], row["ts_ms"], image(row["before"]), image(row["after"])


def image(value: str | Mapping[str, Any] | None) -> Image:
    if value is None or value == "null":  # Hudi gives the word, of images that its logs hold
        return None
    fields = json.loads(value) if isinstance(value, str) else value
    return tuple(sorted((name, value) for name, value in fields.items() if name not in META_COLUMNS))


def ordered(changes: Iterable[Change]) -> list[Change]:
    return sorted(changes, key=repr)
