"""What Spark's web UI shows of a session that works on S3: nothing of the credentials."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.s3_server import running_s3

pytestmark = pytest.mark.nightly

SECRET, KEY = "a-secret-that-nobody-may-read", "a-key-of-nobody"

#: A session with a UI, in a process of its own: writes and reads by all routes, then every page and answer of the UI.
_SHOWN = """
import json, sys, urllib.request
import hoodie

storage, out = json.loads(sys.argv[1]), open(sys.argv[2], "w", encoding="utf-8")
ui = {"spark.ui.enabled": "true", "spark.ui.port": "0", "spark.sql.shuffle.partitions": 2}
spark = hoodie.spark.local_session("hoodie-ui", cores=2, **ui)
rows = [(f"k{n:02}", n % 3, n) for n in range(30)]
frame = spark.createDataFrame(rows, "id string, city int, ts long")
for kind, limit in (("MERGE_ON_READ", "268435456"), ("COPY_ON_WRITE", "0")):
    table = hoodie.create_table(
        f"s3://web-ui/{kind}", spark=spark, name="t", record_key="id", partition_by="city", ordering="ts",
        table_type=kind, options={"hoodie.spark.driver.max.batch.bytes": limit}, storage_options=storage,
    )
    table.bulk_insert(frame)
    done = table.upsert(frame.where("ts < 10"))
    assert table.snapshot(filters="ts < 20").count() == 20
    assert table.changes(done.instant).count() == 0
hoodie.register(spark)
given = {f"hoodie.storage.{name}": json.dumps(v) if isinstance(v, dict) else v for name, v in storage.items()}
job = {"hoodie.datasource.write.recordkey.field": "id", **given}
frame.write.format("hudi").options(**job).save("s3://web-ui/job")
read = spark.read.format("hudi").options(**given).load("s3://web-ui/job")
read.createOrReplaceTempView("of_a_job")
assert spark.sql("SELECT count(*) FROM of_a_job").first()[0] == 30
try:
    spark.read.format("hudi").options(**given).load("s3://web-ui/nothing").count()
except Exception as error:
    out.write(str(error))
stream = spark.readStream.format("hudi").options(**given).load("s3://web-ui/job").writeStream.format("noop")
stream.trigger(availableNow=True).start().awaitTermination(60)
assert len(spark.range(3).selectExpr("concat('shown-in-', id) AS text").collect()) == 3  # what plans do show

base, app = spark.sparkContext.uiWebUrl, spark.sparkContext.applicationId
api = f"{base}/api/v1/applications/{app}"
jobs = json.load(urllib.request.urlopen(f"{api}/jobs"))
runs = json.load(urllib.request.urlopen(f"{api}/sql?details=true&planDescription=true&length=1000"))
stages = json.load(urllib.request.urlopen(f"{api}/stages?details=true"))
assert jobs and runs and stages
pages = [f"{api}/{name}" for name in ("environment", "jobs", "stages?details=true", "executors", "storage/rdd")]
pages += [f"{api}/sql?details=true&planDescription=true&length=1000"]
tabs = ("jobs", "stages", "storage", "environment", "executors", "SQL", "StreamingQuery")
pages += [f"{base}/{name}/" for name in tabs]
pages += [f"{base}/SQL/execution/?id={run['id']}" for run in runs]
pages += [f"{base}/jobs/job/?id={job['jobId']}" for job in jobs]
pages += [f"{base}/stages/stage/?id={stage['stageId']}&attempt={stage['attemptId']}" for stage in stages]
for page in pages:
    out.write(urllib.request.urlopen(page).read().decode())
out.close()
print(len(pages), len(runs))
spark.stop()
"""


def test_the_ui_shows_no_credentials(tmp_path: Path) -> None:
    out = tmp_path / "shown"
    with running_s3("web-ui", KEY, SECRET) as storage:
        said = shown(storage, out)
    assert said.returncode == 0, said.stderr[-3000:]
    pages, runs = map(int, said.stdout.split()[-2:])
    assert pages > 30
    assert runs > 10
    text = out.read_text(encoding="utf-8")
    assert "shown-in-" in text
    for place, told in (("the UI", text), ("stdout", said.stdout), ("stderr", said.stderr)):
        for name, value in (("secret", SECRET), ("key", KEY)):
            at = told.find(value)
            assert at < 0, f"{place} shows the {name}: {told[max(0, at - 300) : at]}"


def shown(storage: dict[str, Any], out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _SHOWN, json.dumps(storage), str(out)]
    return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, cwd=out.parent)
