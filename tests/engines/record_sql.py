"""Runs the statements of tests/vectors/sql_statements.sql on the real Hudi and keeps its answers, which an ordinary
test replays without it.

    PYTHONPATH=tests:. python -m tests.engines.record_sql

Needs what `make engines` needs.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from support.hudi_engine import HudiEngine, HudiFailed
from support.servers import running
from support.sql_statements import SETTINGS, VECTORS, filled, statements

RELEASE = "0.15.0"


def record() -> None:
    with tempfile.TemporaryDirectory() as folder, running(HudiEngine(RELEASE, Path(folder))) as hudi:
        for text in SETTINGS:
            hudi.sql(text)
        lines = []
        for text, rows, _ in statements():
            answer = _answer(hudi, filled(text, Path(folder)), rows=rows)
            lines.append(json.dumps([text, answer]).replace(folder, "$root"))
            print("failed" if answer is None else "ok", text)
    VECTORS.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def _answer(hudi: HudiEngine, text: str, *, rows: bool) -> list[dict[str, Any]] | None:
    """Its rows where they are asked for; None: it refuses the statement."""
    try:
        answer = hudi.sql(text)
    except HudiFailed as error:
        print("   ", str(error)[:300].replace("\n", " "))
        return None
    return answer if rows else []


if __name__ == "__main__":
    record()
