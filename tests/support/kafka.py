"""A real Kafka on loopback: one process that is broker and controller (KRaft).

`cd tests && python -m support.kafka FOLDER` runs one until its standard input ends, and says its address.
"""

import subprocess
import sys
from pathlib import Path

from support.servers import Server, answers, free_port, running
from tools.engines import java_home, kafka_jars

_SMALL = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.segment.bytes=134217728
"""


class Kafka:
    """`address` is host:port of the broker."""

    def __init__(self, folder: Path) -> None:
        """Raises Missing"""
        folder.mkdir(parents=True, exist_ok=True)
        port, settings = free_port(), folder / "server.properties"
        self.address = f"127.0.0.1:{port}"
        settings.write_text(_SETTINGS.format(port=port, controller=free_port(), folder=folder))
        java = [str(java_home(17) / "bin" / "java"), *_SMALL, "-cp", f"{kafka_jars()}/*"]
        tool, name = [*java, "kafka.tools.StorageTool"], "hoodie-hoodie-hoodie00"
        subprocess.run([*tool, "format", "-t", name, "-c", str(settings)], check=True, capture_output=True)
        command = [*java, "kafka.Kafka", str(settings)]
        self._server = Server("kafka", command, folder, lambda _: answers(port))  # its jars have no logger

    def start(self) -> None:
        self._server.start(180)

    def stop(self) -> None:
        self._server.stop()


if __name__ == "__main__":
    with running(Kafka(Path(sys.argv[1]).resolve())) as server:
        print(server.address, flush=True)
        sys.stdin.read()
