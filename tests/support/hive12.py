"""Hive 1.2 itself: its command line with local MapReduce, from the jars of pyspark 2.4.8.

`HOODIE_TEST_HIVE_JARS` names the folder of these jars; without it they are downloaded once (221 MB, from PyPI). It
needs a JDK of version 17 to 22: one with a compiler, for the launcher, and with what Hadoop 2 asks of Java's security.
"""

import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.metastore import EXPORTS, OPENS, hive_site
from support.older_java import CACHE, runs_hadoop_2
from support.zookeeper import java

_LAUNCHER = """\
import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.logging.ConsoleHandler;
import java.util.logging.Logger;

public class Hive {
  static final Logger PARQUET = Logger.getLogger("parquet");  // without a handler it would write among the rows

  public static void main(String[] given) throws Exception {
    PARQUET.setUseParentHandlers(false);
    PARQUET.addHandler(new ConsoleHandler());
    System.setProperty("java.version", "1.8.0_292");  // its Hadoop cannot read those of newer Javas
    List<URL> urls = new ArrayList<>();
    urls.add(new File(given[0]).toURI().toURL());
    for (File file : new File(given[1]).listFiles()) {
      if (file.getName().endsWith(".jar")) urls.add(file.toURI().toURL());
    }
    ClassLoader loader = new URLClassLoader(urls.toArray(new URL[0]), ClassLoader.getPlatformClassLoader());
    Thread.currentThread().setContextClassLoader(loader);
    loader.loadClass("org.apache.hadoop.hive.cli.CliDriver").getMethod("main", String[].class)
        .invoke(null, (Object) Arrays.copyOfRange(given, 2, given.length));
  }
}
"""


def hive_12(folder: Path, uri: str, queries: Sequence[str]) -> list[list[list[str]]]:
    """The rows of each query, as text. Raises AssertionError where one fails; skips the test without a JDK for it.

    folder  for what Hive leaves
    uri     of the metastore
    """
    _require_jdk()
    end = "-- end of a query"
    conf = folder / "conf"
    conf.mkdir()
    settings = {
        "hive.metastore.uris": uri,
        "mapreduce.framework.name": "local",
        "fs.defaultFS": "file:///",
        "hive.cbo.enable": "false",
        "hive.auto.convert.join": "false",  # its local task is a script of Hadoop's, which is not there
        "hive.exec.scratchdir": f"{folder}/scratch",
        "hive.exec.local.scratchdir": f"{folder}/local",
        "hive.downloaded.resources.dir": f"{folder}/resources",
        "hive.querylog.location": f"{folder}/log",
    }
    (conf / "hive-site.xml").write_text(hive_site(settings))
    (folder / "Hive.java").write_text(_LAUNCHER)
    (folder / "queries.sql").write_text("".join(f"{query};\n!echo {end};\n" for query in queries))
    done = subprocess.run(
        [
            *(java(), "-Xmx768m", *OPENS, *EXPORTS, f"-Djava.io.tmpdir={folder}", str(folder / "Hive.java")),
            *(f"{conf}/", str(hive_jars()), "-f", str(folder / "queries.sql")),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[list[list[str]]] = [[]]
    for line in done.stdout.splitlines():
        if line == end:
            found.append([])
        else:
            found[-1].append(line.split("\t"))
    return found[:-1]


def _require_jdk() -> None:
    modules = subprocess.run([java(), "--list-modules"], capture_output=True, text=True, check=True).stdout
    if "jdk.compiler" not in modules or not runs_hadoop_2():
        pytest.skip("Hive 1.2 needs a JDK with a compiler, of version 17 to 22")


def hive_jars() -> Path:
    """The folder of the jars."""
    if given := os.environ.get("HOODIE_TEST_HIVE_JARS"):
        return Path(given)
    jars = CACHE / "pyspark-2.4.8" / "deps" / "jars"
    if not jars.is_dir():
        fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
        subprocess.run([*fetch, "--no-binary", ":all:", "-d", str(CACHE), "pyspark==2.4.8"], check=True)
        with tarfile.open(CACHE / "pyspark-2.4.8.tar.gz") as archive:
            wanted = [member for member in archive if member.name.startswith("pyspark-2.4.8/deps/jars/")]
            archive.extractall(CACHE, wanted, filter="data")
    return jars
