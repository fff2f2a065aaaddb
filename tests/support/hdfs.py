"""A real HDFS on loopback, one NameNode and one DataNode: Hadoop 2.7.3 from the jars of pyspark 2.4.8, or the jars and
the Java that HOODIE_TEST_HDFS names, `java:folder`.

`cd tests && python -m support.hdfs FOLDER` runs one until its standard input ends, and says its address.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support.hive12 import hive_jars
from support.metastore import EXPORTS, OPENS, hive_site
from support.older_java import java_for_hadoop_2
from support.servers import Server, free_port, running

_LOG4J = """\
log4j.rootLogger=INFO,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
"""
_SERVERS = "org.apache.hadoop.hdfs.server"


class Hdfs:
    """The user who starts it is its superuser; permissions are checked for others, as by default.

    address   host:port of the NameNode
    namenode, datanode  may be stopped and started again, each by itself
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.conf = folder, folder / "conf"
        named = os.environ.get("HOODIE_TEST_HDFS", "")
        self._java, _, jars = named.partition(":") if named else (java_for_hadoop_2(), "", str(hive_jars()))
        self._jars = f"{jars}/*"
        self.address = f"127.0.0.1:{free_port()}"
        for webapp in ("hdfs", "datanode", "static"):  # pages that their HTTP servers insist on
            (folder / "webapps" / webapp).mkdir(parents=True)
        self.conf.mkdir()
        write_conf(self.conf, {"fs.defaultFS": f"hdfs://{self.address}", "hadoop.tmp.dir": f"{folder}/data"}, _hdfs())
        (self.conf / "log4j.properties").write_text(_LOG4J)
        self.namenode = Server(
            "namenode", self._command("namenode.NameNode"), folder, lambda said: "Starting Socket Reader" in said
        )
        self.datanode = Server("datanode", self._command("datanode.DataNode"), folder, _has_reported)

    def start(self) -> None:
        format_ = [*self._command("namenode.NameNode"), "-format", "-nonInteractive"]
        done = subprocess.run(format_, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the NameNode could not be formatted: {done.stdout[-3000:]}{done.stderr[-3000:]}")
        self.namenode.start()
        self.datanode.start()

    def stop(self) -> None:
        self.datanode.stop()
        self.namenode.stop()

    def _command(self, name: str) -> list[str]:
        return [
            *(self._java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *OPENS, *EXPORTS),
            *("-cp", f"{self.conf}:.:{self._jars}", f"{_SERVERS}.{name}"),
        ]


def _has_reported(said: str) -> bool:
    """Of a DataNode: the NameNode knows its blocks."""
    return "Got finalize command" in said or "Successfully sent block report" in said


def _hdfs() -> dict[str, str]:
    return {
        "dfs.replication": "1",
        "dfs.webhdfs.enabled": "false",  # needs jars that are not among those of pyspark
        "dfs.namenode.http-address": f"127.0.0.1:{free_port()}",
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.fs-limits.min-block-size": "4096",  # so that small files have several blocks
        "dfs.datanode.address": f"127.0.0.1:{free_port()}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{free_port()}",
        "dfs.datanode.http.address": f"127.0.0.1:{free_port()}",
        "dfs.datanode.hostname": "127.0.0.1",
    }


def write_conf(folder: Path, core: Mapping[str, str], hdfs: Mapping[str, str]) -> None:
    """The two files of a folder that HADOOP_CONF_DIR names."""
    (folder / "core-site.xml").write_text(hive_site(dict(core)))
    (folder / "hdfs-site.xml").write_text(hive_site(dict(hdfs)))


if __name__ == "__main__":
    with running(Hdfs(Path(sys.argv[1]).resolve())) as hdfs:
        print(hdfs.address, flush=True)
        sys.stdin.read()
