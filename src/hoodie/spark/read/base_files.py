"""Base files as DataFrames, by Spark's own Parquet reader on an explicit list of files."""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hoodie.spark.columns import few_texts, holds_floating, quoted, tested_by_row, tested_texts
from hoodie.spark.tasks import is_classic
from hoodie.spark.types import as_ddl
from hoodie.spark.worker_errors import raise_missing_paths

_WILDCARDS = re.compile(r"[\\{}\[\]*?]")
#: Paths without characters that mean something to Spark or Hadoop.
_PLAIN = re.compile(r"[A-Za-z0-9_./:@-]+")
#: Spark's own name for the option that has it take paths as they are. Escaping does not do: a path that has both a
#: wildcard and a colon fails in Hadoop's globbing, and `basePath` is never expanded.
_EXPAND = "__globPaths__"
#: By its class, as `spark.sql.sources.useV1SourceList` may give its name to a reader without positions of rows.
_FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
#: Files without Spark's version in their footer have no dates of the Julian calendar, whatever the session says.
_OPTIONS = {"datetimeRebaseMode": "CORRECTED"}
_LISTING_JOB = "spark.sql.sources.parallelPartitionDiscovery.threshold"
#: Paths that Spark looks at without a job, unless the session's threshold is another.
_LISTED_HERE = 32
_conf_lock = threading.Lock()


def read_parquet(
    session: SparkSession,
    root: str,
    paths: Sequence[str],
    schema: StructType,
    *,
    hive_partitions: bool = False,
    others: Sequence[str] = (),
    floats_tested: bool = True,
) -> DataFrame:
    """The rows of some base files, columns by name; columns that a file lacks are null.

    root             of the table, as Spark reaches it: `route.route_to`
    paths            relative to the table; empty: no rows
    hive_partitions  let Spark take partition columns from `column=value` folders, so that it prunes by them. Only for
                     tables whose folder names say exactly what the column holds
    others           files elsewhere, whole paths. Not with `hive_partitions`
    floats_tested    false: the caller sees to `tested_by_row`
    Raises           FileGone
    """
    if not paths and not others:
        return session.createDataFrame([], schema)
    reader = session.read.schema(as_ddl(schema) or schema)
    full = [*(f"{root}/{path}" for path in paths), *others]
    if any(_WILDCARDS.search(path) for path in full):
        reader = reader.option(_EXPAND, "false")
    if hive_partitions:
        reader = reader.option("basePath", root)
    elif not all(map(_PLAIN.fullmatch, full)):
        # Else Spark would infer partition columns from `column=value` folders, with types of its own, and drop the
        # file's; and take paths with wildcards for patterns in spite of the option above.
        reader = reader.option("recursiveFileLookup", "true")
    with _no_listing_job(session, len(full)), raise_missing_paths():
        frame = reader.load(full, _FORMAT, **_OPTIONS)
        if not is_classic(session):
            frame.schema  # noqa: B018  only this makes a server resolve the paths
    if not floats_tested:
        return frame
    if not any(holds_floating(field.dataType) for field in schema):
        return frame.select("*")  # INSERT into a view of the files alone is one of Spark's, which would overwrite them
    return tested_columns(frame, schema, (), in_order=not hive_partitions)


def tested_columns(frame: DataFrame, schema: StructType, hidden: Sequence[str], *, in_order: bool) -> DataFrame:
    """The columns of a schema, and no others, floating ones `tested_by_row`.

    hidden    columns that the frame has besides
    in_order  false: the frame has the columns in another order, or others
    """
    if (texts := few_texts(schema, hidden) if in_order else tested_texts(schema)) is not None:
        return frame.selectExpr(*texts)
    columns = ((field.name, tested_by_row(quoted(field.name), field.dataType)) for field in schema)
    return frame.select(*(column.alias(name) for name, column in columns))


@contextmanager
def _no_listing_job(session: SparkSession, count: int) -> Iterator[None]:
    """Above 32 explicit paths Spark starts a job to look at each; the threshold is session-wide, so put it back."""
    if count <= _LISTED_HERE:
        yield
        return
    with _conf_lock:
        before = session.conf.get(_LISTING_JOB)
        if int(before or 0) > count:
            yield
            return
        session.conf.set(_LISTING_JOB, str(count + 1))
        try:
            yield
        finally:
            session.conf.set(_LISTING_JOB, before or str(_LISTED_HERE))
