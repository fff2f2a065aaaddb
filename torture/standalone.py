"""A Spark standalone cluster on loopback, from the jars of pyspark: a master and two workers, each a process."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyspark

from hoodie.spark.java import ensure_java

#: Two names of one machine: Spark starts no second attempt of a task on the host where the first one runs.
HOSTS = ("127.0.0.1", "localhost")
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.net.preferIPv4Stack=true"


@dataclass(frozen=True)
class Standalone:
    """A running cluster. `logs` is the folder with what its processes said."""

    url: str
    workers: tuple[int, ...]  # process ids
    environment: Mapping[str, str]
    logs: Path


@contextmanager
def standalone(logs: Path, patience: float) -> Iterator[Standalone]:
    """A master and two workers of one core each, until the block ends. Raises RuntimeError when one does not start."""
    ensure_java()
    home = str(Path(pyspark.__file__).parent)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": _JAVA,
        "PYSPARK_PYTHON": sys.executable,  # else executors run the python3 of their PATH
    }
    with ExitStack() as stack:

        def start(name: str, kind: str, *options: str) -> tuple[subprocess.Popen[bytes], Path]:
            log = logs / f"spark-{name}.log"
            command = [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{kind}", *options]
            return stack.enter_context(running(command, environment, log)), log

        any_port = ("--port", "0", "--webui-port", "0")
        master, log = start("master", "master.Master", "--host", HOSTS[0], *any_port)
        url = said(master, log, r"Starting Spark master at (spark://\S+)", patience)
        said(master, log, r"New state: (ALIVE)", patience)
        size = ("--cores", "1", "--memory", "1g")
        workers = [
            start(f"worker{n}", "worker.Worker", "--host", host, *any_port, *size, "--work-dir", f"{logs}/work{n}", url)
            for n, host in enumerate(HOSTS)
        ]
        for process, log in workers:
            said(process, log, r"Successfully (registered) with master", patience)
        yield Standalone(url, tuple(process.pid for process, _ in workers), environment, logs)


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process, which ends with the block, and what it says in a file."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=Path(__file__).parents[1],
        )
    try:
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started here, and what it started."""
    if process.poll() is None:
        below = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        _, alive = psutil.wait_procs([psutil.Process(process.pid), *below], timeout=20)
        for left in alive:
            left.kill()
    process.wait()


def said(process: subprocess.Popen[bytes], log: Path, pattern: str, patience: float) -> str:
    """Wait for what a process says: the first group of the pattern. Raises RuntimeError when it does not."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        text = log.read_text(errors="replace")
        if found := re.search(pattern, text):
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(f"no {pattern!r} in {log}:\n{log.read_text(errors='replace')[-6000:]}")
