"""`hoodie.spark.ship`: for clusters whose workers have the libraries that Hoodie needs, but not Hoodie itself."""

from __future__ import annotations

from pyspark.sql import SparkSession

from hoodie.spark.code_archive import send
from hoodie.spark.tasks import check_workers


def ship(session: SparkSession) -> None:
    """Send Hoodie's code to the Python workers of a session, and see that they can run it.

    The workers need its dependencies (pyarrow, numpy, fsspec, fastavro, …) themselves, and the driver's version of
    Python. A session that runs for weeks needs this once; where Hoodie is installed on all machines it does no harm.
    A job can do the same without code: `zip -r hoodie.zip hoodie` in site-packages, and `--py-files hoodie.zip`.

    Raises WorkerEnvironment naming what the workers still lack
    """
    send(session)
    check_workers(session)
