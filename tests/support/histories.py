"""A history of writes on a table, step by step beside its model: after each the table holds what a dict of rows does,
in all views, and its files, filters, statistics and earlier states are right."""

import io
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidInput
from hoodie.formats.parquet.base_footer import read_footer
from hoodie.formats.parquet.bloom import might_contain
from hoodie.model.commit import CommitMetadata, WriteStat
from hoodie.model.files import BaseFile
from hoodie.model.instant import Action
from hoodie.storage.protocol import Storage
from hoodie.testing.storage import Crash
from hoodie.testing.tables import REFUSED, ArrowTable
from hoodie.timeline.load import read_commit
from hoodie.view.load import data_files, list_partitions
from hoodie.writing.result import WriteResult
from support.by_position import rows_by_position
from support.history_model import META, Counts, IndexKind, TableModel, java_order, placement, text_of
from support.mode_model import ModeModel
from support.scans import plan_scan
from support.strategies import Shape, Step


class History:
    """A table and its model, step by step."""

    def __init__(self, shape: Shape, options: Mapping[str, Any], storage: Storage) -> None:
        self.storage = storage
        # The model knows no compaction, and has nulls where a batch lacks columns.
        nulls = {"hoodie.write.set.null.for.missing.columns": "true"}
        alone = {"hoodie.spark.driver.threads": 1, "hoodie.compact.inline": "false", **nulls}
        self.table = ArrowTable.create(self.storage, {**shape.options, **alone, **options})
        self.merge_on_read = options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ"
        payload = str(options["hoodie.datasource.write.payload.class"])
        version = int(options.get("hoodie.write.table.version", 6))
        model = TableModel if version == 6 else ModeModel
        self.model: TableModel = model(shape, payload, IndexKind.of(options), self.merge_on_read)
        self.states: dict[str, TableModel] = {}  # by instant
        self.unswept: set[str] = set()  # instants that a write with a fault published or rolled back by
        self.sound: set[str] = set()  # files that were looked into

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
                result = self.table.delete_partitions(paths, options=step.options)
            else:
                result = self.table.write(step.operation, step.table, step.options)
        except (Crash, *REFUSED):
            self.after_fault(step)
        else:
            if step.fault is not None:
                self.unswept.add(result.instant)
            self.published(step, result.instant, result)
            self.check_leftovers()

    def after_fault(self, step: Step) -> None:
        """All of the write is there or nothing."""
        timeline = self.table.state().timeline
        self.unswept |= {rollback.requested for rollback in timeline.completed({Action.ROLLBACK})}
        new = [i.requested for i in timeline.commits if i.requested not in self.states]
        assert len(new) < 2
        if new:
            self.unswept.add(new[0])
            self.published(step, new[0], None)
        elif step.fault is not None and step.fault.dying is None and not timeline.pending(Action):
            self.check_leftovers()  # the writer lived to take its write back
        self.check_rows()

    def published(self, step: Step, instant: str, result: WriteResult | None) -> None:
        self.model, counts = self.model.after(step, instant, placement(self.storage, self.commits()[instant], instant))
        self.states[instant] = self.model
        if result is not None:
            told = Counts(result.inserted, result.updated, result.deleted)
            assert told == counts, (told, counts)
        self.check_rows()
        self.check_files()

    def commits(self) -> dict[str, CommitMetadata]:
        timeline = self.table.state().timeline
        return {found.requested: read_commit(self.storage, timeline, found) for found in timeline.commits}

    # --- what must hold ---

    def check_rows(self) -> None:
        if self.model.schema is None:
            return
        rows = self.table.snapshot()
        check_rows(rows, self.model.schema, self.model.snapshot())
        check_rows(rows_by_position(plan_scan(self.table.state())), self.model.schema, self.model.snapshot())
        optimized = self.table.read_optimized()
        check_rows(optimized, self.model.schema, self.model.read_optimized())
        slices = self.table.slices()
        names = {slice_.base.name for slice_ in slices if slice_.base} | {slice_.group.file_id for slice_ in slices}
        assert set(rows.column("_hoodie_file_name").to_pylist()) <= names
        if not self.model.duplicates:
            assert max(Counter(rows.column("_hoodie_commit_seqno").to_pylist()).values(), default=1) == 1

    def check_as_of(self, instant: str) -> None:
        model = self.states[instant]
        if model.schema is not None:
            check_rows(self.table.as_of(instant), model.schema, model.snapshot())
            by_position = rows_by_position(plan_scan(self.table.state(), as_of=instant))
            check_rows(by_position, model.schema, model.snapshot())

    def check_files(self) -> dict[str, str]:
        """Every commit's statistics tell what its files are; no file is in two. Instants by path."""
        named: dict[str, str] = {}
        for instant, commit in self.commits().items():
            for partition, stats in commit.stats.items():
                for stat in stats:
                    assert stat.path is not None
                    assert named.setdefault(stat.path, instant) == instant
                    if stat.path not in self.sound:
                        check_stat(self.storage, stat, partition)
                        self.sound.add(stat.path)
        return named

    def check_leftovers(self) -> None:
        """No files but those of commits, and no markers. Logs of a failed write stay, with one that takes them back."""
        named = self.check_files()
        files = data_files(list_partitions(self.storage))
        assert set(named) <= {file.path for file in files}
        assert [file for file in files if file.path not in named and isinstance(file, BaseFile)] == []
        if not self.merge_on_read:
            assert len(files) == len(named)
        markers = {folder.split("/")[2] for folder in self.storage.list_tree(".hoodie/.temp")}
        assert markers <= self.unswept  # markers of a completed instant mean nothing


def check_rows(rows: pa.Table, schema: pa.Schema, expected: pa.Table) -> None:
    assert rows.schema.names[5:] == schema.names
    assert rows.schema.types[5:] == schema.types
    assert text_of(rows.drop_columns(["_hoodie_commit_seqno", "_hoodie_file_name"])) == text_of(expected)


def check_stat(storage: Storage, stat: WriteStat, partition: str) -> None:
    assert stat.path is not None
    assert stat.partition == partition
    assert stat.file_size == stat.total_write_bytes == storage.size(stat.path)
    name = stat.path.rpartition("/")[2]
    assert name.removeprefix(".").partition("_")[0] == stat.file_id
    if stat.log_version is None:
        assert check_base_file(storage, stat.path, partition) == stat.num_writes
    else:
        assert name.startswith(f".{stat.file_id}_{stat.prev_commit}.log.{stat.log_version}_")


def check_base_file(storage: Storage, path: str, partition: str) -> int:
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
