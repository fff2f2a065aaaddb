"""What a writer with a Spark session does for its table after a commit."""

from __future__ import annotations

from functools import partial

from pyspark.sql import SparkSession

from hoodie.spark.compaction import carry_out
from hoodie.storage.protocol import Storage
from hoodie.sync.after_commit import after_commit as all_services
from hoodie.table.settings import Settings
from hoodie.table.state import TableState


def after_commit_of_spark(
    session: SparkSession, storage: Storage, settings: Settings, instant: str, state: TableState | None = None
) -> None:
    """As `sync.after_commit.after_commit`; compactions that are not small run on executors."""
    run = partial(carry_out, session)
    all_services(storage, settings, instant, state, run_compaction=run, spark_version=session.version)
