"""A Spark standalone cluster whose Python workers die and stand still at random moments; and a writer on it, with
speculation on.
"""

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from torture.standalone import running, said, standalone

_PATIENCE = 600.0


@contextmanager
def troubled_writer(folder: Path, name: str, seed: int) -> Iterator[dict[str, int]]:
    """A Spark writer at work on the table below a folder, from its first batch on, and what is done to its tasks."""
    done = {"Python workers killed": 0, "Python workers that stood still": 0}
    command = [sys.executable, "-m", "torture.spark_writer", name, str(folder)]
    log = folder / "spark-driver.log"
    with (
        standalone(folder, _PATIENCE) as cluster,
        running([*command, cluster.url], cluster.environment, log) as driver,
    ):
        said(driver, log, r"(acknowledged) 1\b", _PATIENCE)
        over = threading.Event()
        trouble = threading.Thread(target=_trouble, args=(cluster.workers, seed, over, done))
        trouble.start()
        try:
            yield done
        finally:
            over.set()
            trouble.join()


def _trouble(workers: tuple[int, ...], seed: int, over: threading.Event, done: dict[str, int]) -> None:
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
