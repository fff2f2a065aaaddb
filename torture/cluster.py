"""A Spark standalone cluster on loopback, from the jars of pyspark, whose Python workers die and stand still at random
moments; and a writer on it, with speculation on.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pyspark

from hoodie.spark.java import ensure_java

#: Two names of one machine: Spark starts no second attempt of a task on the host where the first one runs.
HOSTS = ("127.0.0.1", "localhost")
_PATIENCE = 600.0
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.net.preferIPv4Stack=true"


@contextmanager
def troubled_writer(folder: Path, name: str, seed: int) -> Iterator[dict[str, int]]:
    """A Spark writer at work on the table below a folder, from its first batch on, and what is done to its tasks."""
    ensure_java()
    home = str(Path(pyspark.__file__).parent)
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))},
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": _JAVA,
        "PYSPARK_PYTHON": sys.executable,
    }
    done = {"Python workers killed": 0, "Python workers that stood still": 0}
    with ExitStack() as stack:

        def start(what: str, *command: str) -> tuple[subprocess.Popen[bytes], Path]:
            log = folder / f"spark-{what}.log"
            return stack.enter_context(_running(command, environment, log)), log

        run, package = f"{home}/bin/spark-class", "org.apache.spark.deploy"
        any_port = ("--port", "0", "--webui-port", "0")
        master = start("master", run, f"{package}.master.Master", "--host", HOSTS[0], *any_port)
        url = _said(*master, r"Starting Spark master at (spark://\S+)")
        size = ("--cores", "1", "--memory", "1g")
        workers = [
            start(f"worker{n}", run, f"{package}.worker.Worker", "--host", host, *any_port, *size,
                  "--work-dir", str(folder / f"work{n}"), url)
            for n, host in enumerate(HOSTS)
        ]  # fmt: skip
        for process, log in workers:
            _said(process, log, r"Successfully (registered) with master")
        driver = start("driver", sys.executable, "-m", "torture.spark_writer", name, str(folder), url)
        _said(*driver, r"(acknowledged) 1\b")
        over = threading.Event()
        trouble = threading.Thread(target=_trouble, args=([p.pid for p, _ in workers], seed, over, done))
        trouble.start()
        try:
            yield done
        finally:
            over.set()
            trouble.join()


def _trouble(workers: list[int], seed: int, over: threading.Event, done: dict[str, int]) -> None:
    """Kill Python workers amid their tasks, and stop others for a while: stragglers, whose tasks are begun again."""
    chance = random.Random(seed)
    while not over.wait(chance.uniform(0.2, 1.0)):
        python = [child for pid in workers for child in _python_below(pid)]
        if not python:
            continue
        victim = chance.choice(python)
        with suppress(psutil.Error):  # it has ended by itself
            if chance.random() < 0.5:
                victim.kill()
                done["Python workers killed"] += 1
            else:
                victim.suspend()
                over.wait(chance.uniform(1, 3))
                victim.resume()
                done["Python workers that stood still"] += 1


def _python_below(pid: int) -> list[psutil.Process]:
    found = []
    with suppress(psutil.Error):
        for child in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                if "python" in child.name():
                    found.append(child)
    return found


@contextmanager
def _running(command: tuple[str, ...], environment: Mapping[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
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
        with suppress(psutil.NoSuchProcess):
            below = psutil.Process(process.pid).children(recursive=True)
            process.terminate()
            _, alive = psutil.wait_procs([psutil.Process(process.pid), *below], timeout=20)
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
        time.sleep(0.2)
    raise RuntimeError(f"no {pattern!r} in {log}:\n{log.read_text(errors='replace')[-4000:]}")
