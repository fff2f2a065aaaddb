"""Spark's Thrift Server, which speaks the protocol of HiveServer2, on loopback: from the jars of pyspark."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.metastore import await_port, free_port
from support.zookeeper import JARS, java


@contextmanager
def running_thrift_server(folder: Path, metastore: str) -> Iterator[int]:
    """The port of a server on a metastore."""
    port = free_port()
    home = JARS.parent
    settings = {
        "spark.hadoop.hive.metastore.uris": metastore,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[1]"]
    command += ["--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += ["spark-internal", "--hiveconf", f"hive.server2.thrift.port={port}"]
    command += ["--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"]
    environment = {**os.environ, "SPARK_HOME": str(home), "JAVA_HOME": str(Path(java()).parents[1])}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        await_port(port, process, folder / "log")
        yield port
    finally:
        process.kill()
        process.wait()
