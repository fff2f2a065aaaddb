"""The compose file of the servers that cannot run in the tests, and the script that compares them: read, not run."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import duckdb
import yaml

from demo.engines import compare

FOLDER = Path(compare.__file__).parent
#: The mount of what whoever runs it brings: no address to download from is written down.
JAR = re.compile(r"^\$\{HUDI_JAR:\?[^}]+\}(?=:/jars/)")


def test_the_compose_file_names_what_is_there() -> None:
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    services = compose["services"]
    assert {command[0] for command in compare.ENGINES.values()} <= services.keys()
    assert {"minio", "metastore"} <= services.keys()
    for service in services.values():
        assert re.fullmatch(r"[\w/.-]+:[\w.-]+", service["image"])
        assert set(service.get("depends_on", {})) <= services.keys()
        for mount in service.get("volumes", []):
            jar, given = JAR.subn("", mount)
            assert given or (FOLDER / jar.split(":")[0]).exists()
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:")


def test_all_engines_have_the_metastore_and_the_store_of_the_compose_file() -> None:
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    minio = compose["services"]["minio"]["environment"]
    keys = (minio["MINIO_ROOT_USER"], minio["MINIO_ROOT_PASSWORD"])
    assert (compare.STORAGE["key"], compare.STORAGE["secret"]) == keys
    for engine in ("trino", "presto"):
        for name in ("hudi", "hive"):
            lines = (FOLDER / engine / f"{name}.properties").read_text().splitlines()
            found = dict(line.split("=", 1) for line in lines)
            assert found["connector.name"].startswith(name)
            assert found["hive.metastore.uri"] == "thrift://metastore:9083"
            prefix = "s3" if engine == "trino" else "hive.s3"
            assert found[f"{prefix}.endpoint"] == "http://minio:9000"
            assert (found[f"{prefix}.aws-access-key"], found[f"{prefix}.aws-secret-key"]) == keys
    site = ElementTree.parse(FOLDER / "hive" / "hive-site.xml").getroot()
    settings = {item.findtext("name"): item.findtext("value") for item in site}
    assert (settings["fs.s3a.access.key"], settings["fs.s3a.secret.key"]) == keys


def test_the_questions_have_the_answers_that_sql_gives(tmp_path: Path) -> None:
    trips = compare.make("trips", "COPY_ON_WRITE", str(tmp_path), None)
    devices = compare.make("devices", "MERGE_ON_READ", str(tmp_path), None)
    asked = compare.all_questions(trips, devices)
    tables = {
        "trips": trips.snapshot().to_arrow(),
        "devices_ro": devices.snapshot(optimized=True).to_arrow(),
        "devices_rt": devices.snapshot().to_arrow(),
        "devices": devices.snapshot().to_arrow(),
    }
    assert tables["devices_ro"].num_rows != tables["devices_rt"].num_rows

    def ask(engine: str, sql: str) -> compare.Answer:
        with duckdb.connect() as connection:
            for name, rows in tables.items():
                connection.register(name, rows)
            return sorted(tuple(map(str, row)) for row in connection.execute(sql).fetchall())

    assert len(asked) == 3 * len(tables)
    assert compare.compare(asked, {"duckdb": ()}, ask) == []
    tables["devices_rt"] = tables["devices_ro"]
    assert len(compare.compare(asked, {"duckdb": ()}, ask)) == 3
    tables["devices"] = tables["devices_ro"]
    assert compare.compare(asked, {"trino": ()}, ask) == [], "it reads base files alone"
    assert "hive" in compare.ENGINES["presto"]
