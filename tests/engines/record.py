"""Runs the cases on the real Hudi and keeps its rows, which the ordinary tests replay without it.

    make record                  all cases
    make record ARGS=cow_plain   some

Needs what `make engines` needs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from support.engine_cases import BY_BOTH, VECTORS, comparable
from support.hudi_engine import HudiEngine
from support.servers import running

RELEASE = "0.15.0"


def record(names: Sequence[str]) -> None:
    """Replaces what was recorded of the cases: by case, the rows of each view that the two read alike."""
    recorded = json.loads(VECTORS.read_text()) if VECTORS.exists() else {}
    with tempfile.TemporaryDirectory() as folder, running(HudiEngine(RELEASE, Path(folder))) as hudi:
        for name in names:
            case, path = BY_BOTH[name], Path(folder, name)
            instants = hudi.make(case, path, {"hoodie.metadata.enable": "false"})
            recorded[name] = {
                view: [json.loads(row) for row in comparable(hudi.view(path, view, instants[-2]), instants)]
                for view in case.views
                if not case.differs(RELEASE, view)
            }
            named = {name: recorded[name] for name in sorted(recorded) if name in BY_BOTH}
            VECTORS.write_text(json.dumps(named, separators=(",", ":"), sort_keys=True) + "\n")
            print(name)


if __name__ == "__main__":
    record(sys.argv[1:] or list(BY_BOTH))
