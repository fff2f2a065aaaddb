"""The Python of workers on this machine: that of the driver, which has this library and what it needs."""

from __future__ import annotations

import os
import sys

import pyspark
from pyspark.sql import SparkSession


def take_own_python(session: SparkSession) -> None:
    """Have the Python workers of a session with a `local` master run this interpreter, unless PYSPARK_PYTHON or the
    session's settings name one. Else they are whatever `python3` is on PATH, which may lack pyarrow.

    Functions that Spark was given before keep theirs. A session of Spark Connect has no workers of ours.
    """
    # No public call says which Python workers run. A client of Spark Connect alone has no such class.
    context = getattr(getattr(pyspark, "SparkContext", None), "_active_spark_context", None)
    if context is None or not (session.conf.get("spark.master", "") or "").startswith("local"):
        return
    settings = ("spark.pyspark.python", "spark.pyspark.driver.python")
    if os.environ.get("PYSPARK_PYTHON") or any(session.conf.get(name, None) for name in settings):
        return
    context.pythonExec = sys.executable
