"""The embedded default: a Spark session on this machine that finds its own Java and Python."""

import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from pyspark.sql import SparkSession

from hoodie.errors import InvalidInput
from hoodie.spark.java import ensure_java

#: Lines of the JVM and of Spark that tell the user nothing: printed before any logging is set up.
_NOISE = re.compile(
    rb"WARNING: Using incubator modules: |WARNING: package sun\.security\.action not in java\.base|"
    rb"Using Spark's default log4j profile|Setting default log level to |To adjust logging level use sc\.setLogLevel"
)
_PANDAS = "PySpark does not yet fully support pandas"

#: Logs of errors, and nothing below; Spark's own default is WARN.
LOG4J = Path(__file__).with_name("log4j2.properties")


def java_options(options: str) -> str:
    """Options of a JVM that logs errors only.

    options  those that the user wants; a log configuration among them stays as it is
    """
    return options if "log4j" in options else f"{options} -Dlog4j2.configurationFile={LOG4J.as_uri()}".strip()


def ignore_logged_sql_errors() -> None:
    """PySpark logs each error of a query as some hundred lines of JSON, and raises it as well: raised is enough."""
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


@contextmanager
def filtered_stderr() -> Iterator[None]:
    """Processes that start within the block, such as the JVM, write to standard error through a filter that drops
    `_NOISE`. It passes all else on for as long as such a process lives.
    """
    try:
        before = os.dup(2)
    except OSError:  # a process without standard error
        yield
        return
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    Thread(target=_pass_on, args=(reading, os.dup(before)), name="hoodie-stderr", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _pass_on(source: int, target: int) -> None:
    with os.fdopen(source, "rb", buffering=0) as lines, os.fdopen(target, "wb", buffering=0) as out:
        for line in lines:
            if not _NOISE.match(line):
                try:
                    out.write(line)
                except OSError:  # standard error is closed; the process must not block on a full pipe
                    continue


_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def require_session(session: object, call: str) -> None:
    """Raises InvalidInput on what is no session of Spark's; call: who is told"""
    if not hasattr(session, "conf"):
        raise InvalidInput(f"{call} takes a SparkSession first, and not a {type(session).__name__}: {call}(spark, …)")


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
    # A notice comes with every conversion: what this library uses of pandas 3 is tested.
    warnings.filterwarnings("ignore", message=_PANDAS, category=FutureWarning)
    ignore_logged_sql_errors()
    with filtered_stderr():
        return builder.getOrCreate()
