"""What works on a Spark session works over Spark Connect: in a process of its own, with a server that ends with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCENARIO = Path(__file__).parent / "scenario.py"


def test_tables_are_written_and_read_over_spark_connect(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    done = subprocess.run(
        [sys.executable, str(SCENARIO), str(tmp_path)],
        env={**environment, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "all of it held" in done.stdout
