"""A Spark standalone cluster on loopback, and drivers that run scenarios on it."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from torture.standalone import Standalone, running, standalone

SCENARIO = Path(__file__).parent / "scenario.py"
_PATIENCE = 120.0


@dataclass(frozen=True)
class Cluster(Standalone):
    """A cluster that tests run scenarios on."""

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

    def run(
        self,
        scenario: str,
        path: Path,
        watch: Callable[[], None] = lambda: None,
        timeout: float = 400,
        python: str = sys.executable,
        conf: Mapping[str, str] | None = None,
    ) -> None:
        """Run the driver of a scenario to its end; `watch` is called again and again meanwhile.

        python  the interpreter of Spark's Python workers
        conf    of the session, beside the scenario's
        """
        log = self.logs / f"{scenario}.log"
        command = [sys.executable, str(SCENARIO), scenario, self.url, str(path)]
        environment = {**self.environment, "PYSPARK_PYTHON": python, "SCENARIO_CONF": json.dumps(dict(conf or {}))}
        with running(command, environment, log) as driver:
            end = time.monotonic() + timeout
            while driver.poll() is None:
                watch()
                if time.monotonic() > end:
                    pytest.fail(f"scenario {scenario} is not over after {timeout} s:\n{log.read_text()[-6000:]}")
                time.sleep(0.1)
        if driver.returncode != 0:
            pytest.fail(f"scenario {scenario} ended with {driver.returncode}:\n{log.read_text()[-6000:]}")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that does not start is a failure."""
    with standalone(tmp_path_factory.mktemp("cluster"), _PATIENCE) as made:
        yield Cluster(**vars(made))
