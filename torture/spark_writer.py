"""The driver of a Spark writer in a storm: `python -m torture.spark_writer NAME FOLDER MASTER`. It writes until it is
ended."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import HoodieError
from torture.actor import Diary, options_in
from torture.ledger import Ledger, batch, read_ledgers

#: Tasks on executors for every batch, however small; rows shuffled to them.
SPREAD = {"hoodie.spark.driver.max.batch.bytes": "0"}
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.task.maxFailures": "20",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "200ms",
}


def main(name: str, folder: Path, master: str) -> None:
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in CONF.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    table = hoodie.open_table(str(folder / "table"), spark=spark, options={**options_in(folder), **SPREAD})
    ledger, diary = Ledger(folder / f"{name}.ledger"), Diary(folder / f"{name}.diary")
    while True:
        number = read_ledgers(folder)[name].acknowledged + 1
        ledger.note("begun", number)
        same = {
            "hoodie.datasource.write.streaming.checkpoint.identifier": name,
            "hoodie.datasource.write.streaming.batch.id": str(number),
        }
        try:
            result = table.upsert(spark.createDataFrame(batch(name, number).to_pandas()).repartition(4), options=same)
        except HoodieError as error:
            ledger.note("failed", number)
            diary.note(f"refused: {type(error).__name__}")
            time.sleep(0.2)
            continue
        ledger.note("acknowledged", number)
        diary.note("known already" if result.route == "known" else f"written by Spark ({result.route})")
        print("acknowledged", number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
