"""Real engines, fetched once into a cache outside the checkout: XDG_CACHE_HOME, else ~/.cache, below hoodie-engines.

    python -m tools.engines hudi        fetch, and say where it lies

Jars come by their Maven coordinates through `mvn`, which needs no setting; PySpark 3.5 comes into a virtual environment
of its own. What is complete is not fetched again.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Releases of Hudi that run, and the bytes of their bundles.
HUDI = {"0.15.0": 109_001_611, "1.2.0": 80_667_825}
SPARK = "3.5.9"
_GET = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get"


class Missing(Exception):
    """What an engine needs is not there. The text says what."""


def cache() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hoodie-engines"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def java_17() -> Path:
    """The home of a Java 17: JAVA_HOME, or that of `java`. Raises Missing"""
    program = Path(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else shutil.which("java")
    if not program or not Path(program).exists():
        raise Missing("Java 17 is needed, and there is no java: install one, or set JAVA_HOME")
    text = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', text)
    if version is None or version[1] != "17":
        raise Missing(f"Java 17 is needed, and {program} is {version[1] if version else 'none'}: set JAVA_HOME")
    return Path(program).resolve().parents[1]


def jar(group: str, name: str, version: str) -> Path:
    """The path of a jar, without what it depends on. Raises Missing"""
    repository = cache() / "maven"
    path = repository.joinpath(*group.split("."), name, version, f"{name}-{version}.jar")
    with _one_at_a_time():
        if not path.exists():
            if not shutil.which("mvn"):
                raise Missing("Maven is needed, and there is no mvn: install it")
            coordinates = f"{group}:{name}:{version}"
            command = ["mvn", "-B", "-q", f"-Dmaven.repo.local={repository}", _GET]
            command += [f"-Dartifact={coordinates}", "-Dtransitive=false"]
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            if ended.returncode or not path.exists():
                lines = [line for line in (ended.stdout + ended.stderr).splitlines() if "ERROR" in line]
                raise Missing(f"{coordinates} could not be fetched: {lines[0] if lines else 'mvn said nothing'}")
    return path


def hudi_bundle(version: str) -> Path:
    """The jar of Hudi for Spark 3.5. Raises Missing"""
    return jar("org.apache.hudi", "hudi-spark3.5-bundle_2.12", version)


def spark_3_5() -> Path:
    """The interpreter of a virtual environment with PySpark 3.5. Raises Missing"""
    folder = cache() / f"spark-{SPARK}"
    python, stamp = folder / "bin" / "python", folder / "complete"
    with _one_at_a_time():
        if not stamp.exists():
            venv.create(folder, clear=True, with_pip=True)
            command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"pyspark=={SPARK}"]
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            if ended.returncode:
                raise Missing(f"pyspark {SPARK} could not be installed: {ended.stderr.strip()[-300:]}")
            stamp.touch()
    return python


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Two test processes do not fetch the same thing at once."""
    with (cache() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    try:
        print(java_17())
        print(spark_3_5())
        for version in HUDI:
            print(hudi_bundle(version))
    except Missing as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
