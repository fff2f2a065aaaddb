"""A Spark session on a Hive metastore, with its Thrift Server: a process of its own, as a JVM's first session fixes the
catalog of all.

`python -m support.spark_hive URI PORT FOLDER` prints "ready" and runs until its standard input ends. Each line of it is
a query of Python's (`spark` and `hoodie` are there), answered by one line of JSON.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.metastore import await_port
from support.servers import free_port
from support.zookeeper import JARS, java

READY = "ready"


class SparkOnHive:
    """The process, asked in Python or over the protocol of HiveServer2."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self._process, self.port = process, port

    def ask(self, expression: str) -> Any:
        """What a Python expression gives there, by JSON; {"error": class, "problem": text} where it raises."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{json.dumps(expression)}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def beeline(self, *queries: str, folder: Path) -> list[list[list[str]]]:
        """The rows of each query through Hive's own client, as text. Raises AssertionError where one fails."""
        end = "-- end of a query"
        script = folder / "queries.sql"
        script.write_text("".join(f"{query};\nSELECT '{end}';\n" for query in queries))
        done = subprocess.run(
            [
                *(java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*"),
                *("org.apache.hive.beeline.BeeLine", "-u", f"jdbc:hive2://127.0.0.1:{self.port}", "-n", "tests"),
                *("--silent=true", "--showHeader=false", "--outputformat=tsv2", "-f", str(script)),
            ],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        assert done.returncode == 0, done.stdout + done.stderr
        found: list[list[list[str]]] = [[]]
        for line in lines:
            if line == end:
                found.append([])
            else:
                found[-1].append(line.split("\t"))
        return found[:-1]


@contextmanager
def running_spark_on_hive(folder: Path, uri: str) -> Iterator[SparkOnHive]:
    """folder  for what Spark leaves; uri  of the metastore"""
    port = free_port()
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "support.spark_hive", uri, str(port), str(folder)],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout
        said = process.stdout.readline().strip()
        if said != READY:
            raise RuntimeError(f"Spark on Hive said {said!r}: {(folder / 'log').read_text()[-3000:]}")
        await_port(port, process, folder / "log")  # type: ignore[arg-type]
        yield SparkOnHive(process, port)
    finally:
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(60)
        finally:
            process.kill()


def main(uri: str, port: str, folder: str) -> None:
    import hoodie

    spark = hoodie.spark.local_session(
        cores=2,
        **{
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": uri,
            "spark.hadoop.hive.server2.thrift.port": port,
            "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": 2,
        },
    )
    jvm: Any = spark._jvm  # of a test alone: the library makes no such call
    jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2.startWithSparkSession(spark._jsparkSession, False)
    print(READY, flush=True)
    for line in sys.stdin:
        try:
            answer = eval(json.loads(line), {"spark": spark, "hoodie": hoodie})
        except Exception as problem:
            answer = {"error": type(problem).__name__, "problem": str(problem)[:2000]}
        print(json.dumps(answer, default=str), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
