"""What works on a Spark session works over Spark Connect: in a process of its own, with a server that ends with it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.nightly import nightly
from support.spark_settings import SMALL, WORKERS

SCENARIO = Path(__file__).parent / "scenario.py"


@pytest.mark.parametrize("what", [(), nightly(("all",))], ids=["each type", "each type on both routes"])
def test_tables_are_written_and_read_over_spark_connect(tmp_path: Path, what: tuple[str, ...]) -> None:
    run_driver(str(tmp_path), *what)


@pytest.mark.nightly
def test_sparks_own_calls_sql_and_streams_work_over_spark_connect(tmp_path: Path) -> None:
    run_driver(str(tmp_path), "doors")


@pytest.mark.nightly  # beside the same on a session without a server, in tests/spark
def test_spark_sql_takes_our_statements_over_spark_connect(tmp_path: Path) -> None:
    run_driver(str(tmp_path), "statements")


def run_driver(*arguments: str) -> None:
    """A driver in a process of its own, to its end."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    done = subprocess.run(
        [sys.executable, str(SCENARIO), *arguments],
        env={
            **environment,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYTHONPATH": os.pathsep.join([WORKERS, *filter(None, [environment.get("PYTHONPATH")])]),
            "SCENARIO_CONF": json.dumps(SMALL),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "all of it held" in done.stdout
