"""A cluster whose Python workers have the libraries that Hoodie needs, but not Hoodie."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

import hoodie
from hoodie.spark.code_archive import zip_package
from hoodie.spark.java import ensure_java

SCENARIO = Path(__file__).parent / "scenario.py"
pytestmark = pytest.mark.timeout(500)

#: Run by each interpreter as it starts: it forgets where the checkout is.
_WITHOUT_HOODIE = """
import os, sys
sys.path[:] = [folder for folder in sys.path if not os.path.isdir(os.path.join(folder, "hoodie"))]
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in getattr(finder, "__module__", "").lower()]
"""


@pytest.fixture
def python_without_hoodie(tmp_path: Path) -> str:
    """An interpreter like this one that cannot import Hoodie."""
    folder = tmp_path / "bare"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_WITHOUT_HOODIE)
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    return str(script)


@pytest.mark.nightly
def test_a_write_is_refused_before_it_begins_and_goes_through_once_the_code_is_sent(
    cluster, tmp_path, python_without_hoodie
):
    cluster.run("shipped", tmp_path, python=python_without_hoodie)
    found = json.loads((tmp_path / "result.json").read_text())
    assert "cannot import 'hoodie'" in found["refused"]
    assert "hoodie.spark.ship(spark)" in found["refused"]
    assert found["left"] == []
    assert found["result"] == ["executors", 1200, 0]
    assert found["rows"] == 3000


@pytest.mark.nightly
def test_sparks_own_calls_sql_and_streams_work_on_a_cluster(cluster, tmp_path):
    cluster.run("doors", tmp_path)
    assert json.loads((tmp_path / "result.json").read_text()) == [60, 61, 61]


@pytest.mark.nightly
def test_workers_on_the_drivers_machine_get_the_code_by_themselves(tmp_path, python_without_hoodie):
    command = [sys.executable, str(SCENARIO), "alone", "local[2]", str(tmp_path)]
    ensure_java()
    done = subprocess.run(
        command,
        env={**os.environ, "PYSPARK_PYTHON": python_without_hoodie},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads((tmp_path / "result.json").read_text()) == ["executors", 1800]


@pytest.mark.nightly
def test_a_submitted_job_brings_the_code_by_py_files(cluster, tmp_path, python_without_hoodie):
    zipped = shutil.make_archive(str(tmp_path / "hoodie"), "zip", Path(hoodie.__file__).parents[1], "hoodie")
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    job = [str(SCENARIO), "alone", cluster.url, str(tmp_path)]
    pythons = {"PYSPARK_PYTHON": python_without_hoodie, "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(
        [str(submit), "--master", cluster.url, "--py-files", zipped, *job],
        env={**cluster.environment, **pythons, "SCENARIO_CONF": "{}"},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads((tmp_path / "result.json").read_text()) == ["executors", 1800]


@pytest.mark.nightly
def test_workers_take_an_environment_from_an_archive(cluster, tmp_path):
    """A virtual environment that is unpacked elsewhere; its libraries are those of the machine, by a .pth."""
    made, packed = tmp_path / "made", tmp_path / "environment.tar.gz"
    venv.create(made, symlinks=False)
    (site,) = made.glob("lib/python3*/site-packages")
    shutil.copytree(Path(hoodie.__file__).parent, site / "hoodie", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "libraries.pth").write_text(str(Path(pa.__file__).parents[1]))
    with tarfile.open(packed, "w:gz", compresslevel=1) as archive:
        archive.add(made, ".")
    shutil.rmtree(made)
    conf = {"spark.archives": f"{packed}#environment"}
    cluster.run("archived", tmp_path, python="environment/bin/python", conf=conf)
    route, inserted, where = json.loads((tmp_path / "result.json").read_text())
    assert (route, inserted) == ("executors", 1800)
    python, module = where.split()
    assert python.endswith("/environment/bin/python")
    assert "/environment/lib/" in module


def test_the_same_code_is_the_same_file(tmp_path):
    package = Path(hoodie.__file__).parent
    first = zip_package(package, tmp_path)
    content = first.read_bytes()
    assert zip_package(package, tmp_path) == first
    assert first.read_bytes() == content
