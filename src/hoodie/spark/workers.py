"""The Python workers of a session: their interpreter on this machine, and the library's code elsewhere."""

import os
import sys

import pyspark
from pyspark.sql import SparkSession

from hoodie.spark.code_archive import send
from hoodie.spark.session import require_session
from hoodie.spark.tasks import check_workers


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


def ship(session: SparkSession) -> None:
    """Send Hoodie's code to the Python workers of a session, and see that they can run it.

    The workers need its dependencies (pyarrow, numpy, fsspec, fastavro, …) themselves, and the driver's version of
    Python. A session that runs for weeks needs this once; where Hoodie is installed on all machines it does no harm.
    A job can do the same without code: `zip -r hoodie.zip hoodie` in site-packages, and `--py-files hoodie.zip`.

    Raises WorkerEnvironment naming what the workers still lack
    """
    require_session(session, "ship")
    send(session)
    check_workers(session)
