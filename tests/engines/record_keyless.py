"""Runs the cases of tables without a record key on the real Hudi 0.15 and keeps its rows.

PYTHONPATH=src:tests:. python -m engines.record_keyless
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from support.hudi_engine import HudiEngine, HudiFailed
from support.keyless_cases import CASES, COLUMNS, VECTORS, Case, Step, as_stored
from support.servers import running

RELEASE = "0.15.0"


def record() -> None:
    with tempfile.TemporaryDirectory() as folder, running(HudiEngine(RELEASE, Path(folder))) as hudi:
        cases = {
            name: _steps(hudi, case, Path(folder, f"case{number}")) for number, (name, case) in enumerate(CASES.items())
        }
    note = (
        f"Rows of tables without a record key after each step of tests/support/keyless_cases.py, as Hudi {RELEASE} on "
        "Spark 3.5.9 had them; null: it refused the step. tests/engines/record_keyless.py makes this file."
    )
    VECTORS.write_text(json.dumps({"note": note, "cases": cases}, separators=(",", ":")) + "\n")


def _steps(hudi: HudiEngine, case: Case, path: Path) -> list[object]:
    found: list[object] = []
    instants: list[str] = []
    for step in case.steps:
        if not found:
            hudi.write(path, _sql(step, path), step.all_options(case))
            hudi.sql(f"CREATE TABLE {path.name} USING hudi LOCATION '{path}'")
        else:
            hudi.sql(f"REFRESH TABLE {path.name}")
            try:
                hudi.write(path, _sql(step, path), step.all_options(case))
            except HudiFailed:
                found.append(None)
                continue
        rows = hudi.snapshot(path)
        instants = sorted({row["_hoodie_commit_time"] for row in rows} | set(instants))
        found.append(as_stored(rows, instants))
    return found


def _sql(step: Step, path: Path) -> str:
    if step.stored:
        name = f"'{step.name}'" if step.name else "name"
        meta = (
            "_hoodie_commit_time, _hoodie_commit_seqno, _hoodie_record_key, _hoodie_partition_path, _hoodie_file_name"
        )
        return f"SELECT {meta}, id, {name} AS name, ts FROM {path.name} WHERE {step.stored}"
    values = ", ".join(f"({number}, '{name}', {time})" for number, name, time in step.rows)
    return f"SELECT bigint(id), name, bigint(ts) FROM VALUES {values} AS t({', '.join(COLUMNS)})"


if __name__ == "__main__":
    record()
