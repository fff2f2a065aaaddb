"""A real Hive metastore on loopback, on a Derby database of its own: from the jars of pyspark.

`cd tests && python -m support.metastore FOLDER` runs one until its standard input ends, and says its address.
"""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from support.servers import Server, answers, free_port, running
from support.zookeeper import JARS, java

_PATIENCE = 180.0
OPENS = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in (
        *("java.lang", "java.lang.reflect", "java.io", "java.net", "java.nio"),
        *("java.util", "java.util.concurrent", "sun.nio.ch"),
    )
]
EXPORTS = ["--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED"]
_SETTINGS = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName={folder}/db;create=true",
    "hive.metastore.warehouse.dir": "{folder}/warehouse",
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    "hive.async.log.enabled": "false",  # its jar is not among those of pyspark
    "datanucleus.connectionPoolingType": "HikariCP",
    "hive.in.test": "true",
}


class Metastore:
    """A server that can be stopped and started again on the same database.

    quick     it starts sooner, and is slower then: for short tests
    settings  over its usual ones
    """

    def __init__(self, folder: Path, *, quick: bool = True, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._settings = {**_SETTINGS, **(settings or {})}
        compiler = ["-XX:TieredStopAtLevel=1"] if quick else []
        self.port = free_port()
        command = [
            *(java(), "-Xmx512m", "-XX:+UseSerialGC", *compiler, *OPENS, *EXPORTS),
            *(f"-Djava.io.tmpdir={folder}", f"-Dderby.stream.error.file={folder}/derby.log"),
            *("-cp", f"{folder / 'conf'}:{JARS}/*", "org.apache.hadoop.hive.metastore.HiveMetaStore"),
            *("-p", str(self.port)),
        ]
        self._server = Server("metastore", command, folder, lambda _: answers(self.port))

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    def start(self) -> None:
        conf = self.folder / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        (conf / "hive-site.xml").write_text(
            hive_site({k: v.format(folder=self.folder) for k, v in self._settings.items()})
        )
        self._server.start(_PATIENCE)

    def stop(self) -> None:
        self._server.stop()


def hive_site(settings: dict[str, str]) -> str:
    entries = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items())
    return f"<configuration>{''.join(entries)}</configuration>"


def await_port(port: int, process: subprocess.Popen[bytes], log: Path, patience: float = _PATIENCE) -> None:
    """Wait until a server answers. Raises RuntimeError with the end of its log when it does not."""
    end = time.monotonic() + patience
    while not answers(port):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"no server on port {port}: {log.read_text()[-3000:]}")
        time.sleep(0.2)


if __name__ == "__main__":
    with running(Metastore(Path(sys.argv[1]).resolve(), quick=False)) as metastore:
        print(metastore.uri, flush=True)
        sys.stdin.read()
