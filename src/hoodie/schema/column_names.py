"""Which names columns may have: those of Avro, which commits and logs have the columns in."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from hoodie.errors import InvalidInput

# Avro's rule in the form that all readers keep: Java takes other letters too, hudi-rs does not.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LETTERS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"})


def name_problem(name: str) -> str | None:
    """What is wrong with the name of a column or field, and a name that would do; None: nothing."""
    if _NAME.fullmatch(name):
        return None
    plain = _plain(name)
    rename = f"; rename it, such as to {plain!r}" if plain else ""
    return f"needs another name: letters A to Z, digits and underscores, not a digit first{rename}"


def refuse_names(columns: Iterable[str]) -> None:
    """Raises InvalidInput on columns, perhaps nested ("a.b"), that no table can have."""
    problems = [
        f"column {column!r} {problem}"
        for column in columns
        if (problem := next((found for part in column.split(".") if (found := name_problem(part))), None))
    ]
    if problems:
        raise InvalidInput("; ".join(problems))


def _plain(name: str) -> str:
    """A name like this one; "": there is no letter to make it of."""
    letters = unicodedata.normalize("NFKD", name.translate(_LETTERS)).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9]+", "_", letters).strip("_")
    return f"_{plain}" if plain[:1].isdigit() else plain
