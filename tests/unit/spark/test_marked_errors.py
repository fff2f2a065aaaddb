"""Errors that come back from Spark as text: those of streams are raised as what they were, others as Spark has them."""

import gc
import traceback

import pytest
from pyspark import TaskContext

from hoodie.errors import CorruptFile, FileGone, HistoryGone, InvalidInput, WorkerEnvironment
from hoodie.spark import worker_errors
from hoodie.spark.worker_errors import mark_worker_errors, raise_marked_errors, raise_worker_errors


def told(error: Exception) -> str:
    """What Spark makes of a worker's error."""
    try:
        with mark_worker_errors():
            raise error
    except Exception as raised:
        return "[STREAM_FAILED] " + "".join(traceback.format_exception(raised))


@pytest.mark.parametrize(
    ("text", "raised"),
    [
        (told(HistoryGone("1", "2", "archived", "3")), HistoryGone),
        ("[PYTHON_DATA_SOURCE_ERROR] ModuleNotFoundError: No module named 'hoodie'", WorkerEnvironment),
        ("[FAILED_READ_FILE.NO_HINT] a Parquet file of somebody else's is not a Parquet file", RuntimeError),
    ],
)
def test_only_what_is_marked_or_lacks_hoodie_becomes_an_error_of_ours(text: str, raised: type[Exception]) -> None:
    with pytest.raises(raised), raise_marked_errors():
        raise RuntimeError(text)


@pytest.mark.parametrize(
    ("problem", "raised"),
    [
        ("java.nio.file.NoSuchFileException: /t/o/f.parquet", FileGone),
        ("java.io.FileNotFoundException: File file:/t/o/f.parquet does not exist", FileGone),
        ("java.lang.RuntimeException: file:/t/o/f.parquet is not a Parquet file", CorruptFile),
        ("java.io.IOException: Input/output error", RuntimeError),
    ],
)
def test_a_file_that_goes_while_a_task_reads_it_is_gone_and_a_damaged_one_is_corrupt(
    problem: str, raised: type[Exception]
) -> None:
    """Spark says NO_HINT of both; of a file that is gone before it is opened it says FILE_NOT_EXIST."""
    text = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///t/o/f.parquet.  SQLSTATE: KD001"
    with pytest.raises(raised, match=r"/t/o/f\.parquet"), raise_worker_errors():
        raise RuntimeError(f"{text}\n\tat org.apache.spark.X(Y.scala:1)\nCaused by: {problem}\n\tat z")


def test_a_subquery_of_several_rows_is_told_as_it_is_without_spark() -> None:
    text = "An error occurred while calling o1.getResult.\nCaused by: org.apache.spark.SparkException: "
    with pytest.raises(InvalidInput, match="stands for a value gives more than one row"), raise_worker_errors():
        raise RuntimeError(f"{text}[SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row returned by a subquery")


def test_the_first_task_of_a_worker_leaves_what_it_has_loaded_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    freezes: list[bool] = []
    monkeypatch.setattr(gc, "freeze", lambda: freezes.append(True))
    monkeypatch.setattr(worker_errors, "_frozen", False)
    with mark_worker_errors():  # on the driver
        assert not freezes
    monkeypatch.setattr(TaskContext, "_taskContext", TaskContext())
    for _ in range(2):
        with mark_worker_errors():
            assert freezes == [True]
