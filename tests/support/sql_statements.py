"""Statements of Hudi's SQL pages, in the order of one session, which the real Hudi answered and ours is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[1] / "vectors" / "sql_statements.json"

Rows = list[dict[str, Any]]
Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Statement:
    """text    with `$root` for the folder of the session, `$t.1` for the first instant of the table t
    rows    its rows are compared, not only that it passes
    differs  why ours answers otherwise on purpose
    """

    text: str
    rows: bool = False
    differs: str = ""


def ask(text: str, differs: str = "") -> Statement:
    return Statement(text, rows=True, differs=differs)


def do(text: str, differs: str = "") -> Statement:
    return Statement(text, differs=differs)


#: What only the real one is told: it is quicker so.
SETTINGS = (
    "SET hoodie.metadata.enable=false",
    "SET hoodie.embed.timeline.server=false",
    "SET hoodie.write.markers.type=DIRECT",
    "SET spark.sql.parquet.enableVectorizedReader=false",  # without code generation it fails on altered columns
)
