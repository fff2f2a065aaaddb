"""Runs dbt in a process whose Spark session takes Hudi tables: `python run.py build`, `python run.py docs generate`."""

import sys

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

import hoodie

# With Hive support Spark keeps the names of tables from one run to the next: in a metastore, here in this folder.
builder = SparkSession.builder.appName("dbt").enableHiveSupport().config("spark.sql.session.timeZone", "UTC")
for setting in [word for word in sys.argv[1:] if word.startswith("spark.")]:
    builder = builder.config(*setting.split("=", 1))
spark = builder.getOrCreate()
hoodie.register(spark)
words = [word for word in sys.argv[1:] if not word.startswith("spark.")]
sys.exit(0 if dbtRunner().invoke(words).success else 1)
