"""The engines that run, and the process of each as seen from this one."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.meter import Meter, Reading
from tools.engines import DELTA, HUDI, ICEBERG, delta_jars, hudi_bundle, iceberg_jar, java_home, spark_3_5

_ROOT = Path(__file__).parents[2]
_MEMORY = "1500m"
#: What another Spark would take from this one.
_OWN = ("PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS")


class EngineFailed(Exception):
    """The engine's own error, or the end of its output where it ended."""


@dataclass(frozen=True)
class Engine:
    """kind  the class of `tables`
    jars  what it needs; None: the project's own PySpark, and no jar
    """

    title: str
    kind: str
    jars: Callable[[], list[Path]] | None


ENGINES: Mapping[str, Engine] = {
    "plain": Engine("plain Spark", "Plain", lambda: []),
    "plain-here": Engine("plain Spark, as Hoodie's", "Plain", None),
    "hoodie": Engine("Hoodie", "Hoodie", None),
    "delta": Engine(f"Delta Lake {DELTA}", "Delta", delta_jars),
    "iceberg": Engine(f"Iceberg {ICEBERG}", "Iceberg", lambda: [iceberg_jar()]),
    **{
        f"hudi-{version}": Engine(f"Hudi {version}", "Hudi", lambda version=version: [hudi_bundle(version)])  # type: ignore[misc]
        for version in HUDI
    },
}
USUAL = ("plain", "plain-here", "hoodie", "delta", "iceberg", "hudi-1.1.1")


class Session:
    """A Spark session of an engine in a process of its own. It ends with `stop`, or when this process ends."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        """Raises tools.engines.Missing where the engine cannot be fetched"""
        self.engine, self.folder = engine, folder
        folder.mkdir(parents=True)
        jars = None if engine.jars is None else engine.jars()
        settings = _settings(folder, jars or [])
        python = sys.executable if jars is None else str(spark_3_5())
        answers, theirs = os.pipe()
        self._answers = os.fdopen(answers)
        self._log = folder / "session.log"
        command = [python, "-m", "bench.spark_peers.session", engine.kind, str(folder), json.dumps(settings)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, f"/dev/fd/{theirs}"],
                cwd=_ROOT,
                env=_environment(own=jars is None),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs],
                text=True,
                start_new_session=True,  # Ctrl-C is for this process
            )
        os.close(theirs)

    def wait(self) -> str:
        """Until it has a session; its version of Spark. Raises EngineFailed"""
        return str(self._answer())

    def call(self, name: str, *arguments: Any) -> Any:
        """Raises EngineFailed"""
        assert self._process.stdin is not None
        try:
            print(json.dumps({"call": name, "with": arguments}), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise EngineFailed(self._end_of_log()) from None
        return self._answer()

    def measure(self, name: str, *arguments: Any) -> tuple[Any, Reading]:
        """The value, and what the engine's processes took. Raises EngineFailed"""
        with Meter(self._process.pid) as meter:
            value = self.call(name, *arguments)
        return value, meter.reading

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()

    def _answer(self) -> Any:
        line = self._answers.readline()
        if not line:
            raise EngineFailed(self._end_of_log())
        answer = json.loads(line)
        if "error" in answer:
            raise EngineFailed(answer["error"])
        return answer["value"]

    def _end_of_log(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f"{self.engine.title} ended: {lines[-1][:300] if lines else 'it said nothing'}"


def _settings(folder: Path, jars: list[Path]) -> dict[str, str]:
    """Of each session the same: two cores, two partitions of a shuffle, nothing on the network."""
    names = [str(jar) for jar in jars]
    return {
        "spark.driver.memory": _MEMORY,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        **({"spark.jars": ",".join(names), "spark.driver.extraClassPath": ":".join(names)} if names else {}),
    }


def _environment(*, own: bool) -> dict[str, str]:
    """own  with what this interpreter finds its packages by"""
    environment = {name: value for name, value in os.environ.items() if own or name not in _OWN}
    environment |= {"TZ": "UTC", "SPARK_LOCAL_IP": "127.0.0.1"}
    return environment if own else environment | {"JAVA_HOME": str(java_home(17))}
