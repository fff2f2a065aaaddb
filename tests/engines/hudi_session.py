"""Runs in the other Python, with PySpark 3.5 and the jar of one Hudi: a request a line on standard input, an answer a
line on the file given.

    python hudi_session.py JAR FOLDER ANSWERS

A request is {"read": path, "options": {}, "where": condition}, {"write": path, "rows": SQL, "options": {}, "mode": ""}
or {"sql": text}; an answer is {"rows": [...]} or {"error": text}.
"""

import base64
import datetime
import decimal
import json
import sys
import time

from pyspark.sql import Row, SparkSession


def session(jar, folder):
    builder = SparkSession.builder.master("local[2]").appName("hudi")
    settings = {
        "spark.jars": jar,
        "spark.driver.extraClassPath": jar,
        "spark.driver.memory": "1500m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Duser.timezone=UTC "
        f"-Dderby.system.home={folder}",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": folder,
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.ui.enabled": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def plain(value):
    """A value as JSON has it: decimals as text, times as ISO in UTC, bytes as base64, maps as sorted pairs."""
    if isinstance(value, Row):
        return {name: plain(item) for name, item in value.asDict(recursive=False).items()}
    if isinstance(value, dict):
        return sorted(([plain(key), plain(item)] for key, item in value.items()), key=repr)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, decimal.Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and value != value:
        return "NaN"
    return value


def answer(spark, request):
    if "read" in request:
        frame = spark.read.format("hudi").options(**request.get("options", {})).load(request["read"])
        if request.get("where"):
            frame = frame.filter(request["where"])
    elif "write" in request:
        frame = spark.sql(request["rows"]).write.format("hudi").options(**request["options"])
        frame.mode(request["mode"]).save(request["write"])
        return []
    else:
        frame = spark.sql(request["sql"])
    return [plain(row) for row in frame.collect()]


def main():
    jar, folder, path = sys.argv[1:]
    time.tzset()
    spark = session(jar, folder)
    with open(path, "w") as answers:
        print(json.dumps({"rows": []}), file=answers, flush=True)
        for line in sys.stdin:
            try:
                found = {"rows": answer(spark, json.loads(line))}
            except Exception as error:
                found = {"error": f"{type(error).__name__}: {error}"[:600]}
            print(json.dumps(found), file=answers, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
