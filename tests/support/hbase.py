"""A real HBase 2.5 on loopback: ZooKeeper, one master, one region server and the Thrift gateway, each a process.

`cd tests && python -m support.hbase FOLDER` runs one until its standard input ends, and says its address.
"""

import sys
import threading
from contextlib import ExitStack
from pathlib import Path

from support.metastore import EXPORTS, OPENS, hive_site
from support.servers import Server, answers, free_port, running
from support.zookeeper import takes_sessions
from tools.engines import hbase_jars, java_home

_LOG4J = """\
log4j.rootLogger=INFO,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""
_ZOOKEEPER = """\
tickTime=2000
maxSessionTimeout=60000
dataDir={folder}/data
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
maxClientCnxns=0
4lw.commands.whitelist=srvr
"""
_SITE = {
    "hbase.cluster.distributed": "true",
    "hbase.rootdir": "file://{folder}/root",
    "hbase.tmp.dir": "{folder}/tmp",
    "hbase.zookeeper.quorum": "127.0.0.1",
    "hbase.zookeeper.property.clientPort": "{zookeeper}",
    "hbase.unsafe.stream.capability.enforce": "false",  # a local folder has no durable log
    "hbase.wal.provider": "filesystem",
    "hbase.master.ipc.address": "127.0.0.1",
    "hbase.regionserver.ipc.address": "127.0.0.1",
    "hbase.master.hostname": "127.0.0.1",
    "hbase.unsafe.regionserver.hostname": "127.0.0.1",
    "hbase.master.info.port": "-1",
    "hbase.regionserver.info.port": "-1",
    "hbase.thrift.info.port": "-1",
    "hbase.regionserver.handler.count": "10",
    "hbase.master.wait.on.regionservers.timeout": "500",
    "hbase.master.wait.on.regionservers.interval": "250",
    "hbase.procedure.remote.dispatcher.delay.msec": "20",
    "hbase.regionserver.msginterval": "500",
    "hbase.client.retries.number": "7",
    "hbase.client.pause": "50",
    "zookeeper.session.timeout": "20000",  # with 5 s a busy machine loses its region server
}
_SMALL = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


class HBase:
    """`address` is host:port of the gateway."""

    def __init__(self, folder: Path) -> None:
        """Raises Missing"""
        self.folder, self.conf = folder, folder / "conf"
        self._java, self._jars = java_home(17) / "bin" / "java", hbase_jars()
        zookeeper, gateway = free_port(), free_port()
        self.address = f"127.0.0.1:{gateway}"
        self.conf.mkdir(parents=True)
        site = {key: value.format(folder=folder, zookeeper=zookeeper) for key, value in _SITE.items()}
        (self.conf / "hbase-site.xml").write_text(hive_site(site))
        (self.conf / "log4j.properties").write_text(_LOG4J)
        (folder / "zoo.cfg").write_text(_ZOOKEEPER.format(folder=folder, port=zookeeper))
        quorum = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        bind = ["-b", "127.0.0.1", "-p", str(gateway), "--infoport", "-1", "start"]
        self._zookeeper = Server(
            "zookeeper", self._command(quorum, "128m", f"{folder}/zoo.cfg"), folder, lambda _: takes_sessions(zookeeper)
        )
        self._region_server = Server(
            "regionserver",
            self._command(
                "org.apache.hadoop.hbase.regionserver.HRegionServer",
                "256m",
                *("-D", f"hbase.regionserver.port={free_port()}", "start"),
            ),
            folder,
            lambda said: "Serving as " in said,
        )
        self._master = Server(
            "master",
            self._command(
                "org.apache.hadoop.hbase.master.HMaster", "256m", "-D", f"hbase.master.port={free_port()}", "start"
            ),
            folder,
            lambda said: "Master has completed initialization" in said,
        )
        self._gateway = Server(
            "gateway",
            self._command("org.apache.hadoop.hbase.thrift.ThriftServer", "256m", *bind),
            folder,
            lambda _: answers(gateway),
        )

    def start(self) -> None:
        self._zookeeper.start()
        problems: list[BaseException] = []

        def start(server: Server) -> None:
            try:
                server.start(300)
            except BaseException as problem:
                problems.append(problem)

        # They wait for each other.
        starts = [threading.Thread(target=start, args=(server,)) for server in (self._region_server, self._master)]
        for thread in starts:
            thread.start()
        for thread in starts:
            thread.join()
        if problems:
            raise problems[0]
        self._gateway.start()

    def stop(self) -> None:
        with ExitStack() as ends:
            for server in (self._zookeeper, self._region_server, self._master, self._gateway):
                ends.callback(server.stop)

    def _command(self, main: str, heap: str, *arguments: str) -> list[str]:
        modules = [*OPENS, *EXPORTS, "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED"]
        options = [f"-Xmx{heap}", *_SMALL, *modules, "-Djava.net.preferIPv4Stack=true", "-Dhbase.log.dir=."]
        return [str(self._java), *options, "-cp", f"{self.conf}:{self._jars}/*", main, *arguments]


if __name__ == "__main__":
    with running(HBase(Path(sys.argv[1]).resolve())) as hbase:
        print(hbase.address, flush=True)
        sys.stdin.read()
