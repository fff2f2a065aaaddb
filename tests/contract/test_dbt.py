"""The dbt project of examples/dbt, in an environment of its own: all materializations, twice, with other rows."""

import json
import os
import shutil
import subprocess
import venv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie

EXAMPLE = Path(__file__).parents[2] / "examples" / "dbt"

_RUNS = """
import json, sys
from pathlib import Path

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

import hoodie

project = Path(sys.argv[1])
builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", str(project / "warehouse"))
builder = builder.config("spark.ui.enabled", "false").config("spark.sql.session.timeZone", "UTC")
spark = builder.config("spark.sql.shuffle.partitions", "1").config("spark.driver.host", "127.0.0.1").getOrCreate()
hoodie.register(spark)
where = ["--project-dir", str(project), "--profiles-dir", str(project)]

def run(*words):
    done = dbtRunner().invoke([*words, *where])
    nodes = getattr(done.result, "results", None) or []
    return {node.node.name: str(node.status) for node in nodes if hasattr(node, "node")}, done.success

outcome = {"first": run("build")}
(project / "seeds" / "raw_trips.csv").write_text(sys.argv[2])
outcome["second"] = run("build")
outcome["docs"] = run("docs", "generate")[1]
for table, columns in json.loads(sys.argv[3]).items():
    outcome[table] = sorted(list(row) for row in spark.sql(f"select {columns} from lake.{table}").collect())
(project / "outcome.json").write_text(json.dumps(outcome))
"""
_LATER = """trip_id,rider,city,fare,updated_at
1,ada,oslo,12.0,5
2,bo,rome,20.0,1
3,cy,oslo,30.0,2
4,di,bern,40.0,5
"""
_TABLES = {
    "riders": "rider, trips",
    "expensive": "trip_id",
    "trips_merged": "trip_id, fare",
    "trips_appended": "trip_id, fare",
    "trips_by_city": "trip_id, fare, city",
    "fares": "trip_id, fare, dbt_valid_to is null",
}


@pytest.fixture
def outcome(tmp_path: Path) -> dict[str, Any]:
    python = tmp_path / "environment" / "bin" / "python"
    venv.create(tmp_path / "environment", with_pip=True)
    wanted = ["dbt-core==1.10.23", "dbt-spark==1.10.3"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    (site,) = (tmp_path / "environment").glob("lib/python3*/site-packages")
    (site / "others.pth").write_text(f"{Path(hoodie.__file__).parents[1]}\n{Path(pa.__file__).parents[1]}\n")
    project = shutil.copytree(EXAMPLE, tmp_path / "project")
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    done = subprocess.run(
        [python, "-c", _RUNS, project, _LATER, json.dumps(_TABLES)],
        capture_output=True,
        text=True,
        timeout=1500,
        cwd=project,
        env={**environment, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    outcome: dict[str, Any] = json.loads((project / "outcome.json").read_text())
    return outcome


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_the_project_is_built_twice(outcome: dict[str, Any]) -> None:
    for run in ("first", "second"):
        statuses, success = outcome[run]
        assert set(statuses.values()) == {"success", "pass"}, statuses
        assert success
    assert outcome["docs"]
    assert outcome["riders"] == [["ada", 1], ["bo", 1], ["cy", 1], ["di", 1]]
    assert outcome["expensive"] == [[2], [3], [4]]
    assert outcome["trips_merged"] == [[1, 12], [2, 20], [3, 30], [4, 40]]
    assert outcome["trips_appended"] == [[1, 10], [1, 12], [2, 20], [3, 30], [4, 40]]
    assert outcome["trips_by_city"] == [[1, 12, "oslo"], [2, 20, "rome"], [3, 30, "oslo"]]
    assert outcome["fares"] == [[1, 10, False], [1, 12, True], [2, 20, True], [3, 30, True], [4, 40, True]]
