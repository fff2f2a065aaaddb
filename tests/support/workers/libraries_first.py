"""The daemon that Spark forks Python workers from, with the libraries that each of them needs read once.

A worker that starts with pyspark's own daemon reads numpy, pandas and pyarrow anew, about a second of it. Hoodie itself
is left to the workers, as in any session.
"""

import pandas
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet
import pyspark.sql.pandas.serializers
from pyspark.daemon import manager

READ = (pandas, pyarrow.compute, pyarrow.dataset, pyarrow.parquet, pyspark.sql.pandas.serializers)

if __name__ == "__main__":
    manager()
