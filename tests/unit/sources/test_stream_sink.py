"""What writeStream.format("hudi") does with a micro-batch: each once, by the query that its checkpoint names."""

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CorruptFile, InvalidInput, InvalidOption
from hoodie.sources.answers import IDENTIFIER, stream_sink

KEY = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.operation": "insert"}


class Session:
    """All that is asked of a session here."""

    def __init__(self, **conf: str) -> None:
        self.conf = conf


def batch(*keys: str) -> Any:
    return pa.table({"id": list(keys), "city": ["oslo"] * len(keys)})


def test_a_batch_that_is_sent_again_is_written_once_and_another_querys_is_its_own(tmp_path: Path) -> None:
    checkpoint, path = tmp_path / "checkpoint", str(tmp_path / "t")
    options = {**KEY, "checkpointLocation": str(checkpoint)}
    sink = pickle.loads(pickle.dumps(stream_sink(Session(), path, options, ["city"], "append", None)))  # type: ignore[arg-type]
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text('{"id": "one"}')
    sink(batch("a"), 0)
    sink(batch("b"), 1)
    sink(batch("b"), 1)
    sink(batch("a"), 0)
    table = hoodie.open_table(path)
    assert (table.count(), len(table.history())) == (2, 2)
    assert (tmp_path / "t" / "oslo").is_dir()
    (checkpoint / "metadata").write_text('{"id": "two"}')  # a new checkpoint counts from 0 again
    sink(batch("c"), 0)
    assert table.count() == 3
    named = stream_sink(Session(), path, {**options, IDENTIFIER: "one"}, [], "update", None)  # type: ignore[arg-type]
    named(batch("d"), 1)
    assert table.count() == 3
    whole = stream_sink(Session(), path, options, [], "complete", None)  # type: ignore[arg-type]
    whole(batch("e"), 1)
    assert table.count() == 1
    (checkpoint / "metadata").write_text("{}")
    with pytest.raises(CorruptFile, match="query id"):
        sink(batch("f"), 7)


def test_a_stream_needs_a_checkpoint_that_stays_and_options_that_are_known(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    shared = Session(**{"spark.sql.streaming.checkpointLocation": str(tmp_path)})
    with pytest.raises(InvalidInput, match="checkpointLocation"):
        stream_sink(shared, path, KEY, [], "append", None)  # type: ignore[arg-type]
    assert stream_sink(shared, path, KEY, [], "append", "q").checkpoint == str(tmp_path / "q")  # type: ignore[arg-type]
    with pytest.raises(InvalidOption):
        stream_sink(shared, path, {**KEY, "hoodie.tabel.name": "t"}, [], "append", "q")  # type: ignore[arg-type]
