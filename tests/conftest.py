"""Real tables to test on, and how hard Hypothesis tries."""

import gc
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, settings

from support.oracles import unpack_table

_IN_MEMORY = "/dev/shm"
_SPARK_FILES = sorted(f"tests/spark/{file.name}" for file in (Path(__file__).parent / "spark").glob("test_*.py"))

# The same examples in each run: a failure in one run fails in the next. Without a deadline: machines are shared.
_patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=30, **_patient)
settings.register_profile("nightly", max_examples=100, print_blob=True, **_patient)
settings.register_profile("search", max_examples=2000, print_blob=True, **_patient)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def _room_in_memory() -> int:
    """Bytes that tests may write to a file system in memory: 0 where there is none for them."""
    try:
        system = os.statvfs(_IN_MEMORY)
    except OSError:
        return 0
    if not os.access(_IN_MEMORY, os.W_OK) or system.f_flag & os.ST_NOEXEC:  # some tests write programs
        return 0
    return min(system.f_bavail * system.f_frsize, psutil.virtual_memory().available // 2)


def pytest_configure(config: pytest.Config) -> None:
    """Files start in their order in the tree: those of clusters and servers, which take minutes, come early.

    pytest-xdist would start the files with the most tests first, and those of one long test last.
    What tests write need not outlive a power failure: no call waits for a disk, and memory takes it where it has room.
    """
    os.fsync = lambda file: None
    if _room_in_memory() > 8 << 30:  # a run writes 3 GB
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _IN_MEMORY)
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: the garbage collector need not go through it each time."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # else modules in C say at the end that they leaked


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """All processes but one have a Spark session: to warm one up takes as long as 100 tests."""
    from xdist.scheduler import LoadFileScheduling

    sessions = max(config.option.numprocesses - 1, 1)

    class FilesOfOneSession(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return f"session {_SPARK_FILES.index(file) % sessions}" if file in _SPARK_FILES else file

    return FilesOfOneSession(config, log) if config.option.dist == "loadfile" else None


@pytest.fixture
def fixture_table(tmp_path: Path) -> Callable[[str], Path]:
    """Unpacks a table of tests/fixtures/tables by name, a fresh copy at each call; the folder that holds .hoodie."""
    count = itertools.count()
    return lambda name: unpack_table(name, tmp_path / f"fixture-{next(count)}")


@pytest.fixture(scope="module")
def hbase() -> Iterator[object]:
    """A Thrift gateway of HBase: the one that HOODIE_TEST_HBASE names, or a stand-in."""
    from hoodie.testing.hbase import gateway_for_tests  # needs an extra; most tests do without

    with gateway_for_tests() as gateway:
        yield gateway


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """host:port of a real ZooKeeper, started when the first test asks for it."""
    from support.servers import running
    from support.zookeeper import ZooKeeper  # needs a Java; most tests do without

    with running(ZooKeeper(tmp_path_factory.mktemp("zookeeper"))) as server:
        yield server.address
