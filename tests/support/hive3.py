"""Hive 3.1.3 with the input formats of Hudi 0.15: a metastore of its own release, and its command line."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.metastore import await_port, hive_site
from support.servers import free_port
from tools.engines import hive_class_path, hive_launcher, java_home

#: Without these a job counts the rows of all file versions: see docs/engines/hive.md.
INPUT_FORMAT = {"hive.input.format": "org.apache.hudi.hadoop.hive.HoodieCombineHiveInputFormat"}
_END = "-- end of a query"
_OPENS = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.lang", "java.net", "java.util", "java.nio")
]
_SMALL = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC"]
_METASTORE = {
    "javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName={folder}/db;create=true",
    "metastore.warehouse.dir": "{folder}/warehouse",
    "hive.metastore.warehouse.dir": "{folder}/warehouse",
    "datanucleus.schema.autoCreateAll": "true",
    "hive.metastore.schema.verification": "false",
    "hive.metastore.event.db.notification.api.auth": "false",
    "hive.in.test": "true",
    "metastore.client.capability.check": "false",
    "metastore.stats.autogather": "false",
    "fs.defaultFS": "file:///",
    "metastore.thrift.bind.host": "127.0.0.1",
}
_SESSION = {
    "hive.metastore.uris": "{uri}",
    "hive.metastore.client.socket.timeout": "300",
    "mapreduce.framework.name": "local",
    "fs.defaultFS": "file:///",
    "hive.execution.engine": "mr",
    "hive.exec.mode.local.auto": "true",
    "hive.exec.submitviachild": "false",
    "hive.exec.submit.local.task.via.child": "false",
    "hive.auto.convert.join": "false",
    "hive.stats.autogather": "false",
    "hive.compute.query.using.stats": "false",
    "hive.exec.scratchdir": "{folder}/scratch",
    "hive.exec.local.scratchdir": "{folder}/local",
    "hive.downloaded.resources.dir": "{folder}/resources",
    "hive.querylog.location": "{folder}/log",
    "hadoop.tmp.dir": "{folder}/tmp",
    "mapreduce.cluster.local.dir": "{folder}/jobs",
    "hive.metastore.event.db.notification.api.auth": "false",
    "hive.support.concurrency": "false",
    "hive.notification.event.poll.interval": "0s",
    "hive.materializedview.rewriting": "false",
    "hive.server2.materializedviews.registry.impl": "DUMMY",
    "hive.vectorized.execution.enabled": "false",
    "hive.cbo.enable": "false",
    "hive.cli.errors.ignore": "true",
    "hive.session.silent": "true",
}
_LOGGING = """\
status=error
name=hive
appenders=console
appender.console.type=Console
appender.console.name=console
appender.console.target=SYSTEM_ERR
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%p %c{1}: %m%n%throwable{20}
rootLogger.level=WARN
rootLogger.appenderRefs=root
rootLogger.appenderRef.root.ref=console
"""


class Hive:
    """`uri` is the address of its metastore."""

    def __init__(self, folder: Path) -> None:
        """Raises Missing"""
        self.folder, self.port = folder, free_port()
        self._java = java_home(11) / "bin" / "java"
        self._launcher, self._jars = hive_launcher(), hive_class_path()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    def start(self) -> None:
        folder = self.folder / "metastore"
        main = ["org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(self.port)]
        with self._log(folder).open("ab") as log:
            self._process = subprocess.Popen(
                self._command(folder, "512m", _METASTORE, main),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        await_port(self.port, self._process, self._log(folder), 420)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def query(self, *queries: str, settings: Mapping[str, str] = INPUT_FORMAT) -> list[list[list[str]]]:
        """The rows of each query, whose values are texts; a query that fails has none. One session for all.

        settings  over those of the session
        """
        folder = self.folder / "session"
        folder.mkdir(exist_ok=True)
        script, output = folder / "queries.sql", folder / "rows.tsv"
        script.write_text("".join(f"{query};\n!echo {_END};\n" for query in queries))
        main = ["org.apache.hadoop.hive.cli.CliDriver", "-f", str(script)]
        command = self._command(folder, "1g", {**_SESSION, **settings}, main)
        with output.open("wb") as rows, self._log(folder).open("wb") as log:
            subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=rows, stderr=log, check=False)
        answers: list[list[list[str]]] = [[]]
        for line in output.read_text(errors="replace").splitlines():
            if line == _END:
                answers.append([])
            elif not line.startswith("# WARNING"):  # of the library that measures objects
                answers[-1].append(line.split("\t"))
        if len(answers) != len(queries) + 1:
            raise RuntimeError(f"Hive ended early: {self.errors()}")
        return answers[:-1]

    def errors(self) -> str:
        """The end of what the last session said beside its rows."""
        return self._log(self.folder / "session").read_text(errors="replace")[-3000:]

    def _log(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        return folder / "log"

    def _command(self, folder: Path, memory: str, settings: Mapping[str, str], main: Sequence[str]) -> list[str]:
        conf = folder / "conf"
        conf.mkdir(exist_ok=True)
        named = {key: text.format(folder=folder, uri=self.uri) for key, text in settings.items()}
        (conf / "hive-site.xml").write_text(hive_site(named))
        (conf / "hive-log4j2.properties").write_text(_LOGGING)
        return [
            *(str(self._java), f"-Xmx{memory}", *_SMALL, *_OPENS),
            *(f"-Djava.io.tmpdir={folder}", f"-Dderby.stream.error.file={folder}/derby.log"),
            f"-Dlog4j.configurationFile={conf}/hive-log4j2.properties",
            *("-cp", str(self._launcher), "Launcher", ":".join(map(str, [conf, *self._jars])), *main),
        ]


if __name__ == "__main__":
    hive = Hive(Path(sys.argv[1]).resolve())
    hive.start()
    try:
        print(hive.uri, flush=True)
        sys.stdin.read()
    finally:
        hive.stop()
