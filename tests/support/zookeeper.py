"""A real ZooKeeper server on loopback, and Curator's own lock in a JVM: both from the jars of pyspark."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark

from hoodie.spark.java import ensure_java

JARS = Path(pyspark.__file__).parent / "jars"
_PATIENCE = 60.0
_CONFIG = """\
tickTime=500
dataDir={folder}/data
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=ruok,srvr,mntr,envi
"""


class ZooKeeper:
    """A server that can be stopped and started again on the same data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        config = self.folder / "zoo.cfg"
        config.write_text(_CONFIG.format(folder=self.folder, port=self.port))
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(java(), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*"),
                    *("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        end = time.monotonic() + _PATIENCE
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"ZooKeeper did not start: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _is_ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"srvr")  # "ruok" has its answer before the server takes sessions
                with connection.makefile("rb") as answer:
                    return b"Mode: standalone" in answer.read()
        except OSError:
            return False


def java() -> str:
    """The path of a Java that runs what is in the jars."""
    home = ensure_java()
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    assert found is not None
    return found


@contextmanager
def running_zookeeper(folder: Path) -> Iterator[ZooKeeper]:
    server = ZooKeeper(folder)
    try:
        server.start()
        yield server
    finally:
        server.stop()


class Curator:
    """A JVM with Curator's client: what Hudi's ZookeeperBasedLockProvider locks with."""

    def __init__(self, gateway: Any, address: str) -> None:
        self._jvm = gateway.jvm
        curator = self._jvm.org.apache.curator
        retry = curator.retry.RetryOneTime(100)
        self.client = curator.framework.CuratorFrameworkFactory.newClient(address, 4000, 4000, retry)
        self.client.start()

    def mutex(self, path: str) -> Any:
        """An `InterProcessMutex`. It belongs to the thread of the JVM that acquires it: call from one thread."""
        return self._jvm.org.apache.curator.framework.recipes.locks.InterProcessMutex(self.client, path)

    def acquire(self, mutex: Any, seconds: float) -> bool:
        return bool(mutex.acquire(int(seconds * 1000), self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS))


@contextmanager
def running_curator(address: str) -> Iterator[Curator]:
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    port = launch_gateway(
        classpath=os.pathsep.join(str(jar) for jar in sorted(JARS.glob("*.jar"))),
        java_path=java(),
        javaopts=["-Xmx128m", "-XX:TieredStopAtLevel=1"],
        die_on_exit=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        yield Curator(gateway, address)
    finally:
        gateway.shutdown()
