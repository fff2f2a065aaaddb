"""The daemon that Spark forks Python workers from, with what each of them needs read once.

A worker that starts with pyspark's own daemon reads numpy, pandas, pyarrow and Hoodie anew, two seconds of it, compiles
pyspark from Spark's zip, whose directory it reads again for each task, and collects garbage behind each among all that
they hold. That was most of what the workers of the tests did.
"""

import gc
import sys

sys.path[:] = [place for place in sys.path if not place.endswith(".zip")]

import pandas  # noqa: E402
import pyarrow.dataset  # noqa: E402
import pyspark.sql.pandas.serializers  # noqa: E402
from pyspark.daemon import manager  # noqa: E402

import hoodie.spark.lookup.hits  # noqa: E402
import hoodie.spark.lookup.locate  # noqa: E402
import hoodie.spark.write.executors  # noqa: E402
import hoodie.spark.write.staging  # noqa: E402

READ = (pandas, pyarrow.dataset, pyspark.sql.pandas.serializers, hoodie)

if __name__ == "__main__":
    gc.freeze()
    manager()
