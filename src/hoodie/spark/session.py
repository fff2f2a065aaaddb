"""The embedded default: a Spark session on this machine that finds its own Java and Python."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from hoodie.spark.java import ensure_java
from hoodie.spark.quiet import filtered_stderr, ignore_logged_sql_errors, ignore_pandas_notice, java_options

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def local_session(
    app_name: str = "hoodie", *, cores: int | str = "*", memory: str = "2g", **conf: object
) -> SparkSession:
    """A Spark session in this process, `local[cores]`, with settings that suit it; the one that runs, if one does.

    cores   threads that run tasks; "*": one for each core of the machine
    memory  heap of the JVM, which is driver and executor in one; has no effect once a session ran in this process
    conf    any Spark setting, which wins over those made here: `**{"spark.sql.shuffle.partitions": 8}`
    Raises  JavaNotFound when there is no Java 17 or later

    The session time zone stays what Spark takes it to be. Nothing listens on the network: no web UI, and Spark's own
    ports are on the loopback address. The console stays quiet: the JVM logs errors only (`spark.log.level` changes
    that), PySpark's notice about pandas 3 is not shown, and errors of queries are raised without being logged, too.
    Sets PYSPARK_PYTHON, unless it is set, to this interpreter; Spark's workers would otherwise run whatever `python3`
    is on PATH.
    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # set: spark-submit has started the JVM, whatever Java it found
        ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings: dict[str, object] = {
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        **conf,
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName(app_name)
    settings[_JAVA_OPTIONS] = java_options(str(settings.get(_JAVA_OPTIONS, "")))
    for key, value in settings.items():
        builder = builder.config(key, str(value).lower() if isinstance(value, bool) else str(value))
    ignore_pandas_notice()
    ignore_logged_sql_errors()
    with filtered_stderr():
        return builder.getOrCreate()
