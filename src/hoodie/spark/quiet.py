"""A JVM that starts without the lines that it and Spark print about themselves. Errors are shown as ever."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

#: Lines of the JVM and of Spark that tell the user nothing: printed before any logging is set up.
_NOISE = re.compile(
    rb"WARNING: Using incubator modules: |WARNING: package sun\.security\.action not in java\.base|"
    rb"Using Spark's default log4j profile|Setting default log level to |To adjust logging level use sc\.setLogLevel"
)
_PANDAS = "PySpark does not yet fully support pandas"

#: Logs of errors, and nothing below; Spark's own default is WARN.
LOG4J = Path(__file__).with_name("log4j2.properties")


def java_options(given: str) -> str:
    """Options of a JVM that logs errors only.

    given  those that the user wants; a log configuration among them stays as it is
    """
    return given if "log4j" in given else f"{given} -Dlog4j2.configurationFile={LOG4J.as_uri()}".strip()


def ignore_logged_sql_errors() -> None:
    """PySpark logs each error of a query as some hundred lines of JSON, and raises it as well: raised is enough."""
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


def ignore_pandas_notice() -> None:
    """Drop PySpark's notice about pandas 3, which comes with every conversion: what this library uses is tested."""
    warnings.filterwarnings("ignore", message=_PANDAS, category=FutureWarning)


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
