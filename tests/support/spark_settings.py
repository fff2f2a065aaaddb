"""Settings of Spark sessions that move few rows: small shuffles, a JVM and Python workers that start fast."""

from __future__ import annotations

from pathlib import Path

#: On the workers' module path: libraries_first.
WORKERS = str(Path(__file__).parent / "workers")
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.python.daemon.module": "libraries_first",
    "spark.executorEnv.PYTHONPATH": WORKERS,
}
