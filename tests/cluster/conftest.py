"""A Spark standalone cluster on loopback, from the jars of pyspark: a master and two workers, each a process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark
import pytest

from hoodie.spark.java import ensure_java

SCENARIO = Path(__file__).parent / "scenario.py"
#: Two names of one machine: Spark starts no second attempt of a task on the host where the first one runs.
HOSTS = ("127.0.0.1", "localhost")
_PATIENCE = 120.0


@dataclass(frozen=True)
class Cluster:
    """A running cluster. `logs` is the folder with what its processes said."""

    url: str
    workers: tuple[int, ...]  # process ids
    environment: Mapping[str, str]
    logs: Path

    def executors(self) -> list[psutil.Process]:
        """The executors that run now: children of the workers."""
        found = []
        for worker in self.workers:
            found += [child for child in psutil.Process(worker).children() if "java" in child.name()]
        return found

    def kill_executor_of(self, python_worker: int) -> int:
        """Kill the executor that a Python worker belongs to, as the kernel kills what takes too much memory."""
        above = {process.pid for process in psutil.Process(python_worker).parents()}
        (executor,) = (process for process in self.executors() if process.pid in above)
        executor.kill()
        return int(executor.pid)

    def run(self, scenario: str, path: Path, watch: Callable[[], None] = lambda: None, timeout: float = 400) -> None:
        """Run the driver of a scenario to its end; `watch` is called again and again meanwhile."""
        log = self.logs / f"{scenario}.log"
        with log.open("w") as out:
            driver = subprocess.Popen(
                [sys.executable, str(SCENARIO), scenario, self.url, str(path)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=dict(self.environment),
            )
            try:
                end = time.monotonic() + timeout
                while driver.poll() is None:
                    watch()
                    if time.monotonic() > end:
                        pytest.fail(f"scenario {scenario} is not over after {timeout} s:\n{log.read_text()[-6000:]}")
                    time.sleep(0.1)
            finally:
                _stop(driver)
        if driver.returncode != 0:
            pytest.fail(f"scenario {scenario} ended with {driver.returncode}:\n{log.read_text()[-6000:]}")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers of one core each. A cluster that does not start is a failure."""
    ensure_java()
    logs = tmp_path_factory.mktemp("cluster")
    home = str(Path(pyspark.__file__).parent)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.net.preferIPv4Stack=true",
        "PYSPARK_PYTHON": sys.executable,  # else executors run the python3 of their PATH
    }
    with ExitStack() as stack:

        def start(name: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Path]:
            log = logs / f"{name}.log"
            command = [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]]
            process = stack.enter_context(_running(command, environment, log))
            return process, log

        master, log = start("master", "master.Master", "--host", HOSTS[0], "--port", "0", "--webui-port", "0")
        url = _said(master, log, r"Starting Spark master at (spark://\S+)")
        _said(master, log, r"New state: (ALIVE)")
        options = ["--port", "0", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
        workers = [
            start(f"worker{n}", "worker.Worker", "--host", host, *options, "--work-dir", str(logs / f"work{n}"), url)
            for n, host in enumerate(HOSTS)
        ]
        for process, log in workers:
            _said(process, log, r"Successfully (registered) with master")
        yield Cluster(url, tuple(process.pid for process, _ in workers), environment, logs)


@contextmanager
def _running(command: list[str], environment: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=dict(environment)
        )
        try:
            yield process
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started here, and what it started."""
    if process.poll() is None:
        below = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        _, alive = psutil.wait_procs([psutil.Process(process.pid), *below], timeout=15)
        for left in alive:
            left.kill()
    process.wait()


def _said(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        text = log.read_text(errors="replace")
        if found := re.search(pattern, text):
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    pytest.fail(f"the cluster did not start: no {pattern!r} in\n{log.read_text(errors='replace')[-6000:]}")
