"""Settings of Spark sessions that move few rows: small shuffles, a JVM and Python workers that start fast."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from hoodie.spark.session import local_session

#: On the workers' module path: libraries_first.
WORKERS = str(Path(__file__).parent / "workers")
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    # With one compiler alone the JVM would keep 48 MB of compiled code, which Spark fills: it compiled again and again.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
    "spark.python.daemon.module": "libraries_first",
    "spark.executorEnv.PYTHONPATH": WORKERS,
}


@contextmanager
def small_session(warehouse: Path) -> Iterator[SparkSession]:
    """local[2] in UTC, set up for tests, which move few rows. It stops at the end."""
    settings = {**SMALL, "spark.sql.session.timeZone": "UTC", "spark.sql.warehouse.dir": warehouse}
    session = local_session("hoodie-tests", cores=2, memory="2g", **settings)
    yield session
    session.stop()
