"""Trino and Presto on loopback, with catalogs of a Hive metastore, and queries to them.

`cd tests && python -m support.query_servers trino FOLDER thrift://host:port` runs one until its standard input ends.
"""

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.metastore import OPENS
from support.servers import Server, free_port, running
from tools.engines import PRESTO, java_home, presto, trino

_SMALL = ["-Xmx1200m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256M"]
_TRINO_MODULES = (
    "--add-modules=jdk.incubator.vector",
    "--enable-native-access=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)
_CONFIG = """\
coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port={port}
discovery.uri=http://127.0.0.1:{port}
query.max-memory=400MB
query.max-memory-per-node=400MB
"""
_NODE = """\
node.environment=test
node.id=one
node.data-dir={folder}/data
node.internal-address=127.0.0.1
node.bind-ip=127.0.0.1
"""


class QueryFailed(Exception):
    """The engine's own error."""


class QueryServer:
    """A coordinator that is its only worker.

    name      "trino" or "presto"
    catalogs  name -> lines of its properties file
    """

    def __init__(self, name: str, folder: Path, catalogs: Mapping[str, Mapping[str, str]]) -> None:
        """Raises Missing"""
        self.name, self.folder, self.port = name, folder, free_port()
        etc = folder / "etc"
        (etc / "catalog").mkdir(parents=True)
        config, home, main, version = (_trino if name == "trino" else _presto)()
        (etc / "config.properties").write_text(_CONFIG.format(port=self.port) + config)
        (etc / "node.properties").write_text(_NODE.format(folder=folder))
        (etc / "log.properties").write_text("io.trino=WARN\nio.airlift=WARN\ncom.facebook=WARN\n")
        for catalog, properties in catalogs.items():
            lines = "".join(f"{key}={value}\n" for key, value in properties.items())
            (etc / "catalog" / f"{catalog}.properties").write_text(lines)
        plugins = folder / "plugin"
        plugins.mkdir()
        for connector in {properties["connector.name"] for properties in catalogs.values()}:
            (plugins / connector).symlink_to(home / "plugin" / connector)  # with all of them it starts much later
        java = java_home(version) / "bin" / "java"
        settings = {
            "java.io.tmpdir": folder,
            "config": etc / "config.properties",
            "log.levels-file": etc / "log.properties",
            "catalog.config-dir": etc / "catalog",
            "plugin.dir": plugins,
            "jdk.attach.allowAttachSelf": "true",
            **dict(line.split("=", 1) for line in _NODE.format(folder=folder).splitlines()),
        }
        modules = _TRINO_MODULES if name == "trino" else OPENS
        options = [*_SMALL, *modules, *(f"-D{key}={value}" for key, value in settings.items())]
        command = [str(java), *options, "-cp", f"{home}/lib/*", main]
        self._server = Server(name, command, folder, lambda _: self._is_ready())

    def start(self) -> None:
        self._server.start(420)

    def stop(self) -> None:
        self._server.stop()

    def query(self, sql: str, catalog: str, schema: str = "default") -> list[tuple[Any, ...]]:
        """The rows, as JSON has them. Raises QueryFailed

        Seconds after a start the coordinator may not know yet that its worker has this catalog: no other query tells.
        """
        end = time.monotonic() + 60
        while True:
            try:
                return self._query(sql, catalog, schema)
            except QueryFailed as error:
                if not str(error).startswith("NO_NODES_AVAILABLE") or time.monotonic() > end:
                    raise
                time.sleep(0.5)

    def _query(self, sql: str, catalog: str, schema: str) -> list[tuple[Any, ...]]:
        prefix = f"X-{self.name.capitalize()}"
        headers = {
            f"{prefix}-User": "test",
            f"{prefix}-Catalog": catalog,
            f"{prefix}-Schema": schema,
            f"{prefix}-Time-Zone": "UTC",
        }
        url, body, rows = f"http://127.0.0.1:{self.port}/v1/statement", sql.encode(), list[Sequence[Any]]()
        while True:
            answer = _answer(urllib.request.Request(url, data=body, headers=headers))
            rows += answer.get("data") or []
            if answer.get("error"):
                raise QueryFailed(_causes(answer["error"]))
            if not answer.get("nextUri"):
                return [tuple(row) for row in rows]
            url, body = answer["nextUri"], None

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/info", timeout=2) as answer:
                if json.load(answer).get("starting") is not False:
                    return False
            self._query("select 1", "system", "runtime")
        except (OSError, ValueError, QueryFailed):
            return False
        return True


def trino_catalogs(metastore: str) -> dict[str, dict[str, str]]:
    """Those of docs/engines/trino.md: `hudi`, and `hive` that sends on to it; `hiveonly` does not."""
    files = {"hive.metastore.uri": metastore, "fs.hadoop.enabled": "true"}
    return {
        "hudi": {"connector.name": "hudi", **files},
        "hive": {"connector.name": "hive", **files, "hive.hudi-catalog-name": "hudi"},
        "hiveonly": {"connector.name": "hive", **files},
    }


def presto_catalogs(metastore: str) -> dict[str, dict[str, str]]:
    """Those of docs/engines/presto.md: `hive`; `hudi` and `positions` are what it warns of."""
    uri = {"hive.metastore.uri": metastore}
    return {
        "hudi": {"connector.name": "hudi", **uri},
        "hive": {"connector.name": "hive-hadoop2", **uri, "hive.parquet.use-column-names": "true"},
        "positions": {"connector.name": "hive-hadoop2", **uri},
    }


CATALOGS = {"trino": trino_catalogs, "presto": presto_catalogs}


def _trino() -> tuple[str, Path, str, int]:
    return "catalog.management=static\n", trino(), "io.trino.server.TrinoServer", 25


def _presto() -> tuple[str, Path, str, int]:
    config = f"discovery-server.enabled=true\npresto.version={PRESTO}\nquery.max-total-memory-per-node=600MB\n"
    return config, presto(), "com.facebook.presto.server.PrestoServer", 11


def _answer(request: urllib.request.Request) -> dict[str, Any]:
    for _ in range(60):
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                answer: dict[str, Any] = json.load(response)
                return answer
        except urllib.error.HTTPError as error:
            if error.code not in (502, 503):
                raise QueryFailed(f"HTTP {error.code}") from error
            time.sleep(0.2)
    raise QueryFailed("it is unavailable for 12 s")


def _causes(error: Mapping[str, Any]) -> str:
    texts, cause = [str(error["message"])], (error.get("failureInfo") or {}).get("cause")
    while cause:
        texts.append(f"{cause.get('type')}: {cause.get('message')}")
        cause = cause.get("cause")
    return f"{error.get('errorName')}: " + " | ".join(text[:300] for text in texts)


if __name__ == "__main__":
    name, folder, metastore = sys.argv[1:]
    with running(QueryServer(name, Path(folder).resolve(), CATALOGS[name](metastore))) as server:
        print(server.port, flush=True)
        sys.stdin.read()
