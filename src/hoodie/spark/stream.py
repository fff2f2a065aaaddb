"""Micro-batches of a stream into a table, each once, whatever dies in between."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidInput
from hoodie.spark.worker_errors import raise_worker_errors
from hoodie.spark.write.run import check_frame
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.writing.result import failures_heard
from hoodie.writing.run import run
from hoodie.writing.write import refuse_dropping

_OPERATIONS = (WriteOperation.UPSERT, WriteOperation.INSERT, WriteOperation.BULK_INSERT, WriteOperation.DELETE)


@dataclass(frozen=True, slots=True)
class StreamWriter:
    """What `foreachBatch` calls; picklable.

    A batch that the table has already, as a commit of its number says, is not even looked at: Spark sends one again
    whose writer died before Spark had noted it in the checkpoint.
    """

    storage: Storage
    operation: WriteOperation
    options: Options
    name: str

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Write one micro-batch. Raises as `HoodieTable.upsert`: the query fails then, and may be started again."""
        if not hasattr(batch, "sparkSession"):
            raise InvalidInput(f"a stream's batch is a Spark DataFrame, not a {type(batch).__name__}")
        batch_options = Options(
            {
                **self.options,
                "hoodie.datasource.write.streaming.checkpoint.identifier": self.name,
                "hoodie.datasource.write.streaming.batch.id": str(number),
            }
        )
        with failures_heard(self.storage, self.operation), raise_worker_errors():
            run(check_frame(batch.sparkSession, self.storage, self.operation, batch, Settings.read(batch_options)))


def stream_writer(storage: Storage, name: str, operation: str, options: Options) -> Callable[[DataFrame, int], None]:
    """Raises InvalidInput without a name, or on another operation."""
    if not name:
        raise InvalidInput("the stream needs a name: by it and the batch's number the table knows what it has")
    operations = {word.value: word for word in _OPERATIONS}
    if operation not in tuple(operations):
        raise InvalidInput(f"operation {operation!r}: a stream can {', '.join(operations)}")
    refuse_dropping(operations[operation], Settings.read(options))
    return StreamWriter(storage, operations[operation], options, name)
