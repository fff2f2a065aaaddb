"""Random histories of writes, some of which fail: after each the table holds what a dict of rows does, and its files,
filters, statistics and earlier states are right."""

from __future__ import annotations

import io
from collections import Counter

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from history_model import BY_ORDERING, META, OVERWRITE, Counts, TableModel, java_order, shown
from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidInput
from hoodie.formats.base_footer import read_footer
from hoodie.formats.bloom import might_contain
from hoodie.table.result import WriteResult
from hoodie.testing.storage import Crash, MemoryStorage
from hoodie.testing.strategies import Shape, Step, histories, shapes
from hoodie.testing.tables import ArrowTable, StorageError
from hoodie.timeline.load import read_commit
from hoodie.view.load import data_files, list_partitions

#: Files hold a handful of rows, and a filter for as many, so that some grow and others are closed.
SIZES = st.fixed_dictionaries(
    {
        "hoodie.parquet.max.file.size": st.sampled_from([2_500, 6_000, 20_000]),
        "hoodie.parquet.small.file.limit": st.sampled_from([0, 5_000, 20_000]),
        "hoodie.copyonwrite.record.size.estimate": st.sampled_from([100, 1_000]),
        "hoodie.record.size.estimation.threshold": st.sampled_from([0.0, 1.0]),
        "hoodie.index.bloom.num_entries": st.sampled_from([0, 2, 8]),
        "hoodie.index.type": st.sampled_from(["SIMPLE", "BLOOM"]),
    }
)


class History:
    """A table and its model, step by step."""

    def __init__(self, shape: Shape, options: dict[str, object]) -> None:
        self.storage = MemoryStorage()
        self.table = ArrowTable.create(self.storage, {**shape.options, "hoodie.spark.near.threads": 1, **options})
        self.model = TableModel(shape, str(options["hoodie.datasource.write.payload.class"]))
        self.states: dict[str, TableModel] = {}  # by instant
        self.unswept: set[str] = set()  # instants that were published by a write with a fault
        self.sound: set[str] = set()  # names of base files that were looked into

    def take(self, step: Step) -> None:
        paths = [self.model.path_of(value) for value in step.partitions]
        if not set(paths) <= {slice_.group.partition for slice_ in self.table.slices()}:
            with pytest.raises(InvalidInput, match="nothing was deleted"):
                self.table.delete_partitions(paths)
            self.check_rows()
            return
        if step.fault is not None:
            self.table.fail_next(step.fault.calls, step.fault.dying)
        try:
            if step.operation is WriteOperation.DELETE_PARTITION:
                result = self.table.delete_partitions(paths, step.options)
            else:
                result = self.table.write(step.operation, step.table, step.options)
        except (Crash, StorageError):
            self.after_fault(step)
        else:
            if step.fault is not None:
                self.unswept.add(result.instant)
            self.published(step, result.instant, result)
            self.check_leftovers()

    def after_fault(self, step: Step) -> None:
        """All of the write is there or nothing."""
        new = [i.requested for i in self.table.state().timeline.commits if i.requested not in self.states]
        assert len(new) < 2
        if new:
            self.unswept.add(new[0])
            self.published(step, new[0], None)
        elif step.fault is not None and step.fault.dying is None:
            self.check_leftovers()  # the writer lived to take its write back
        self.check_rows()

    def published(self, step: Step, instant: str, result: WriteResult | None) -> None:
        self.model, counts = self.model.after(step, instant)
        self.states[instant] = self.model
        if result is not None:
            told = Counts(result.inserted, result.updated, result.deleted)
            assert told == counts, (told, counts)
        self.check_rows()
        self.check_files()

    # --- what must hold ---

    def check_rows(self) -> None:
        if self.model.schema is None:
            return
        rows = self.table.snapshot()
        assert rows.schema.names[5:] == self.model.schema.names
        assert rows.schema.types[5:] == self.model.schema.types
        assert shown(rows.drop_columns(["_hoodie_commit_seqno", "_hoodie_file_name"])) == shown(self.model.table())
        if not self.model.duplicates:
            assert max(Counter(rows.column("_hoodie_commit_seqno").to_pylist()).values(), default=1) == 1

    def check_as_of(self, instant: str) -> None:
        model = self.states[instant]
        if model.schema is None:
            return
        rows = self.table.as_of(instant)
        assert rows.schema.names[5:] == model.schema.names
        assert shown(rows.drop_columns(["_hoodie_commit_seqno", "_hoodie_file_name"])) == shown(model.table())

    def check_files(self) -> None:
        """Every commit's statistics tell what its files are; no file is in two."""
        state = self.table.state()
        named: dict[str, str] = {}
        for instant in state.timeline.commits:
            for partition, stats in read_commit(self.storage, state.timeline, instant).stats.items():
                for stat in stats:
                    assert stat.path is not None
                    assert stat.path not in named
                    named[stat.path] = instant.requested
                    assert stat.partition == partition
                    if stat.path in self.sound:
                        continue
                    self.sound.add(stat.path)
                    assert stat.file_size == stat.total_write_bytes == self.storage.size(stat.path)
                    assert check_base_file(self.storage, stat.path, partition) == stat.num_writes
                    assert stat.file_id == stat.path.rpartition("/")[2].partition("_")[0]
        self.named = named

    def check_leftovers(self) -> None:
        """Only files that commits name, and no markers."""
        self.check_files()
        found = {file.path for file in data_files(list_partitions(self.storage))}
        assert found == set(self.named)
        markers = {path.split("/")[2] for path in self.storage.snapshot() if path.startswith(".hoodie/.temp/")}
        assert markers <= self.unswept  # markers of a completed instant mean nothing


def check_base_file(storage: MemoryStorage, path: str, partition: str) -> int:
    """Meta columns, filter and key range of a base file; its number of rows."""
    data = storage.read(path)
    rows = pq.read_table(io.BytesIO(data), columns=[*META, "_hoodie_file_name"])
    assert set(rows.column("_hoodie_file_name").to_pylist()) <= {path.rpartition("/")[2]}
    assert set(rows.column("_hoodie_partition_path").to_pylist()) <= {partition}
    footer = read_footer(io.BytesIO(data), path)
    keys = rows.column("_hoodie_record_key").combine_chunks()
    bloom = footer.bloom(path)
    assert bloom is not None
    assert might_contain(bloom, keys).all()
    if len(keys):
        assert footer.min_key is not None
        assert footer.max_key is not None
        texts = sorted(map(java_order, keys.to_pylist()))
        assert java_order(footer.min_key) <= texts[0]
        assert texts[-1] <= java_order(footer.max_key)
    return footer.rows


@pytest.mark.parametrize("payload", [OVERWRITE, BY_ORDERING], ids=["overwrite", "by_ordering"])
@settings(max_examples=settings().max_examples)
@given(st.data())
def test_a_copy_on_write_table_holds_what_a_dict_of_rows_does(payload: str, data: st.DataObject) -> None:
    shape = data.draw(shapes(), label="shape")
    options = data.draw(SIZES, label="sizes")
    history = History(shape, {**options, "hoodie.datasource.write.payload.class": payload})
    for step in data.draw(histories(shape), label="history"):
        history.take(step)
        if history.states:
            history.check_as_of(data.draw(st.sampled_from(sorted(history.states)), label="as of"))
