"""A real ZooKeeper server on loopback, and Curator's own lock in a JVM: both from the jars of pyspark."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark

from hoodie.spark.java import ensure_java
from support.servers import Server, free_port

JARS = Path(pyspark.__file__).parent / "jars"
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
        self.port = free_port()
        config = folder / "zoo.cfg"
        config.write_text(_CONFIG.format(folder=folder, port=self.port))
        command = [
            *(java(), "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*"),
            *("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)),
        ]
        self._server = Server("zookeeper", command, folder, lambda _: takes_sessions(self.port))

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()


def takes_sessions(port: int) -> bool:
    """Whether a ZooKeeper does."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
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
