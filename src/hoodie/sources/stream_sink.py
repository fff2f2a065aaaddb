"""`writeStream.format("hudi")`: what `foreachBatch` does with each micro-batch, exactly once."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import DataFrame

from hoodie.api.write_client import write
from hoodie.config.options import Options
from hoodie.errors import CorruptFile
from hoodie.spark.worker_errors import mark_worker_errors, raise_worker_errors
from hoodie.storage import storage_for

IDENTIFIER = "hoodie.datasource.write.streaming.checkpoint.identifier"
BATCH = "hoodie.datasource.write.streaming.batch.id"


@dataclass(frozen=True, slots=True)
class StreamSink:
    """Writes micro-batches as `hoodie.hudi.write` does, the first of which may make the table. Pickles.

    options     as checked; with `IDENTIFIER`, if the job gave one
    checkpoint  its folder. By the query's id in there, and the batch's number, the table knows what it has
    """

    path: str
    options: Options
    checkpoint: str

    def __call__(self, batch: DataFrame, number: int) -> None:
        name = self.options.get(IDENTIFIER) or query_id(self.checkpoint)
        with mark_worker_errors(), raise_worker_errors():
            write(batch, self.path, {**self.options, IDENTIFIER: name, BATCH: str(number)})


def query_id(checkpoint: str) -> str:
    """The id of a query, as its checkpoint has it from its start on. Raises CorruptFile; FileNotFoundError"""
    text = storage_for(checkpoint).read("metadata")
    try:
        return str(json.loads(text)["id"])
    except (ValueError, KeyError, TypeError) as problem:
        raise CorruptFile(f"{checkpoint}/metadata", f"no query id: {problem!r}") from problem
