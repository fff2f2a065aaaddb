"""A stream into a table: each micro-batch once, across a process that is killed between commit and checkpoint."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import InvalidInput
from support.spark_settings import SMALL

COLUMNS = "id string, at long"

#: Writes a micro-batch of one file after the other, and is killed after its second commit, before the checkpoint.
KILLED = """
import json, os, signal, sys
import hoodie
from hoodie.spark.session import local_session

folder = sys.argv[1]
spark = local_session("killed", cores=1, memory="1g", **json.loads(sys.argv[2]))
table = hoodie.open_table(folder + "/table", spark=spark)
write = table.stream_upsert("incoming", operation="insert")

def once(batch, number):
    write(batch, number)
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)

source = spark.readStream.schema("id string, at long").option("maxFilesPerTrigger", 1).json(folder + "/incoming")
stream = source.writeStream.foreachBatch(once).option("checkpointLocation", folder + "/checkpoint")
stream.trigger(availableNow=True).start().awaitTermination()
"""


@pytest.mark.nightly
def test_a_batch_that_is_sent_again_after_a_kill_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    table = hoodie.create_table(str(tmp_path / "table"), spark=spark, name="t", record_key="id", ordering="at")
    for number in range(3):
        rows = spark.createDataFrame([(f"k{number}", number)], COLUMNS)
        rows.coalesce(1).write.mode("append").json(str(tmp_path / "incoming"))
    command = [sys.executable, "-c", KILLED, str(tmp_path), json.dumps(SMALL)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr[-2000:]
    assert len(table.history()) == 2

    source = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).json(str(tmp_path / "incoming"))
    stream = source.writeStream.foreachBatch(table.stream_upsert("incoming", operation="insert"))
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    stream.start().awaitTermination()
    assert len(table.history()) == 3
    rows_now = hoodie.open_table(table.path).snapshot(columns=["id", "at"]).to_arrow().to_pylist()
    assert sorted((row["id"], row["at"]) for row in rows_now) == [("k0", 0), ("k1", 1), ("k2", 2)]


def test_a_stream_without_a_name_or_of_another_operation_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = hoodie.create_table(str(tmp_path / "table"), spark=spark, name="t", record_key="id")
    with pytest.raises(InvalidInput, match="name"):
        table.stream_upsert("")
    with pytest.raises(InvalidInput, match="insert_overwrite"):
        table.stream_upsert("x", operation="insert_overwrite")
