"""Random histories: the changes between any two commits are those that a dict of rows tells."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.config.write import WriteOperation
from hoodie.errors import DamagedLog, InvalidInput, MetadataTableDropped
from hoodie.reading.scan import ScanKind
from hoodie.testing.storage import Crash, MemoryStorage
from hoodie.testing.tables import REFUSED, ArrowTable
from hoodie.timeline.load import read_commit
from support.by_position import rows_by_position
from support.history_model import BY_ORDERING, CROWDED, OVERWRITE, TableModel, placement, text_of
from support.metadata_fresh import KEPT, check_kept
from support.mode_model import ModeModel
from support.nightly import nightly, scaled
from support.scans import plan_scan
from support.strategies import Shape, Step, histories, shapes

NOT_COMPARED = ["_hoodie_commit_seqno", "_hoodie_file_name"]
SIZES = st.fixed_dictionaries(
    {
        "hoodie.parquet.max.file.size": st.sampled_from([2_500, 20_000]),
        "hoodie.parquet.small.file.limit": st.sampled_from([0, 5_000]),
        "hoodie.copyonwrite.record.size.estimate": st.sampled_from([100, 1_000]),
        "hoodie.logfile.data.block.format": st.sampled_from(["avro", "parquet"]),
    }
)


class History:
    """A table, and a model of it after each commit."""

    def __init__(self, shape: Shape, options: dict[str, Any]) -> None:
        alone = {"hoodie.spark.driver.threads": 1, "hoodie.compact.inline": "false"}  # the model knows no compaction
        self.table = ArrowTable.create(MemoryStorage(), {**shape.options, **alone, **options})
        model = TableModel if options["hoodie.write.table.version"] == "6" else ModeModel
        self.states: dict[str, TableModel] = {"": model(shape, str(options["hoodie.datasource.write.payload.class"]))}
        self.points = {"": "earliest"}  # what a range takes for an instant: from version 8 on its completion

    def take(self, step: Step) -> None:
        model = self.states[max(self.states)]
        if step.fault is not None:
            self.table.fail_next(step.fault.calls, step.fault.dying)
        try:
            if step.operation is WriteOperation.DELETE_PARTITION:
                self.table.delete_partitions([model.path_of(value) for value in step.partitions], options=step.options)
            else:
                self.table.write(step.operation, step.table, step.options)
        except (Crash, *REFUSED, InvalidInput):  # the last: a partition that is not there
            pass
        timeline = self.table.state().timeline
        for commit in timeline.commits:
            if (time := commit.requested) not in self.states:
                metadata = read_commit(self.table.storage, timeline, commit)
                model, _ = model.after(step, time, placement(self.table.storage, metadata, time))
                self.states[time], self.points[time] = model, commit.completed or time

    def check(self, after: str, up_to: str) -> None:
        newest = self.states[max(self.states)].schema
        if newest is None:  # deletes only: no columns yet
            return
        expected = replace(self.states[up_to], schema=newest).changes(after, up_to)
        begin, end = self.points[after], self.points[up_to]
        rows = self.table.changes(begin, end)
        scan = plan_scan(self.table.state(), ScanKind.CHANGES, begin=begin, end=end)
        assert text_of(rows_by_position(scan)) == text_of(rows)
        assert rows.schema.names[5:] == newest.names
        assert rows.schema.types[5:] == newest.types
        told, wanted = text_of(rows.drop_columns(NOT_COMPARED)), text_of(expected)
        if self.states[up_to].duplicates:
            # A log tells of a change to a key once, however many rows of that key a base file holds.
            told, wanted = sorted(set(told)), sorted(set(wanted))
        assert told == wanted


@pytest.mark.parametrize(
    ("table_type", "payload"),
    [
        nightly("COPY_ON_WRITE", OVERWRITE, id="COPY_ON_WRITE-overwrite"),
        pytest.param("COPY_ON_WRITE", BY_ORDERING, id="COPY_ON_WRITE-by_ordering"),
        pytest.param("MERGE_ON_READ", OVERWRITE, id="MERGE_ON_READ-overwrite"),
        nightly("MERGE_ON_READ", BY_ORDERING, id="MERGE_ON_READ-by_ordering"),
    ],
)
@settings(max_examples=scaled(7, 50))
@given(data=st.data())
def test_changes_between_two_commits_are_those_of_a_dict_of_rows(
    table_type: str, payload: str, data: st.DataObject
) -> None:
    run(table_type, payload, data)


TABLE_TYPES = st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"])


@settings(max_examples=2)
@given(table_type=TABLE_TYPES, data=st.data())
def test_changes_are_the_same_beside_a_metadata_table(table_type: str, data: st.DataObject) -> None:
    run(table_type, OVERWRITE, data, KEPT)


@pytest.mark.nightly
@settings(max_examples=30)
@given(table_type=TABLE_TYPES, data=st.data())
def test_changes_are_the_same_beside_a_metadata_table_in_many_histories(table_type: str, data: st.DataObject) -> None:
    run(table_type, OVERWRITE, data, KEPT)


def run(table_type: str, payload: str, data: st.DataObject, more: Mapping[str, str] | None = None) -> None:
    """more  options of a metadata table, which is compared after each step"""
    shape = data.draw(st.just(CROWDED) | shapes(), label="shape")
    options = {
        **data.draw(SIZES, label="sizes"),
        "hoodie.datasource.write.payload.class": payload,
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.write.table.version": data.draw(st.sampled_from(["6", "8", "9"]), label="version"),
        **(more or {}),
    }
    history = History(shape, options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedLog)  # of writers that died, until the next one takes their write back
        warnings.simplefilter("ignore", MetadataTableDropped)  # a key in two partitions ends the record index
        for step in data.draw(histories(shape, least=2, most=6), label="history"):
            history.take(step)
            check_kept(history.table.storage)
        if len(history.states) == 1:
            return  # no write got through
        instants = st.sampled_from(sorted(history.states))
        for _ in range(3):
            after, up_to = sorted(data.draw(st.tuples(instants, instants), label="range"))
            if up_to:
                history.check(after, up_to)
