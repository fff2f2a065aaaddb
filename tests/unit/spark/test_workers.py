"""Workers of a `local` master run the driver's Python, unless something names another."""

import sys
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

from hoodie.spark.workers import take_own_python


def session(**conf: str) -> Any:
    return SimpleNamespace(conf=SimpleNamespace(get=lambda name, default=None: conf.get(name, default)))


@pytest.mark.parametrize(
    ("conf", "variable", "own"),
    [
        ({"spark.master": "local[2]"}, "", True),
        ({"spark.master": "local[2]"}, "/usr/bin/python3", False),
        ({"spark.master": "local[2]", "spark.pyspark.python": "/opt/python"}, "", False),
        ({"spark.master": "spark://host:7077"}, "", False),
        ({}, "", False),
    ],
)
def test_a_local_master_takes_this_python(
    conf: dict[str, str], variable: str, own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = SimpleNamespace(pythonExec="python3")
    monkeypatch.setattr(pyspark.SparkContext, "_active_spark_context", context)
    monkeypatch.setenv("PYSPARK_PYTHON", variable)
    take_own_python(session(**conf))
    assert context.pythonExec == (sys.executable if own else "python3")
