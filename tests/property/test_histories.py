"""Random histories of writes, some of which fail: after each the table holds what a dict of rows does, in all views,
and its files, filters, statistics and earlier states are right."""

import itertools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.config.write import WriteOperation
from hoodie.errors import DamagedLog, MetadataTableDropped, RecordIndexIgnored
from hoodie.testing.storage import MemoryStorage
from support.histories import History
from support.history_model import BY_ORDERING, CROWDED, OVERWRITE
from support.metadata_fresh import check_kept
from support.nightly import by_day, scaled
from support.strategies import Shape, Step, histories, indexes, operations_with, shapes

#: Files hold a handful of rows, and a filter for as many, so that some grow and others are closed.
SIZES = st.fixed_dictionaries(
    {
        "hoodie.parquet.max.file.size": st.sampled_from([2_500, 6_000, 20_000]),
        "hoodie.parquet.small.file.limit": st.sampled_from([0, 5_000, 20_000]),
        "hoodie.copyonwrite.record.size.estimate": st.sampled_from([100, 1_000]),
        "hoodie.record.size.estimation.threshold": st.sampled_from([0.0, 1.0]),
        "hoodie.index.bloom.num_entries": st.sampled_from([0, 2, 8]),
    }
)
LOGS = st.fixed_dictionaries(
    {
        "hoodie.logfile.max.size": st.sampled_from([500, 1_000_000]),
        "hoodie.logfile.data.block.max.size": st.sampled_from([300, 1_000_000]),
        "hoodie.logfile.data.block.format": st.sampled_from(["avro", "parquet"]),
    }
)
#: The same in two partitions, between which keys move under a global index.
MOVING = replace(
    CROWDED,
    schema=CROWDED.schema.append(pa.field("part", pa.string())),
    partition="part",
    domains={**CROWDED.domains, "part": ("x", "y")},
)


NAMES = {OVERWRITE: "overwrite", BY_ORDERING: "by_ordering"}
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
#: The record index is kept by writes that ask it, or that have another look keys up.
#: The model places keys by base files, where a record index has forgotten those that a log deletes: see
#: test_index_histories for RECORD_INDEX on Merge-on-Read.
_BESIDE = {"hoodie.index.type": "BLOOM", "hoodie.metadata.record.index.enable": "true"}
RECORD_INDEXES: Mapping[str, tuple[dict[str, str], ...]] = {
    TYPES[0]: (
        {"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": "true"},
        {"hoodie.index.type": "RECORD_INDEX"},
        _BESIDE,
    ),
    TYPES[1]: (_BESIDE,),
}
TABLE_TYPES = pytest.mark.parametrize("table_type", TYPES)
#: An example is a whole history: fewer than of others.
HALF, FEW = settings(max_examples=scaled(7, 50)), settings(max_examples=scaled(5, 20))


def types_and_payloads(*by_days: tuple[str, str]) -> pytest.MarkDecorator:
    """Both table types with both payloads, of which the default suite runs those of the days."""
    cases = by_day(itertools.product(TYPES, (OVERWRITE, BY_ORDERING)), by_days.__contains__)
    return pytest.mark.parametrize(("table_type", "payload"), cases, ids=NAMES.get)


@types_and_payloads((TYPES[0], BY_ORDERING), (TYPES[1], OVERWRITE))
@HALF
@given(data=st.data())
def test_a_table_holds_what_a_dict_of_rows_does_after_each_write(
    table_type: str, payload: str, data: st.DataObject
) -> None:
    shape = data.draw(shapes(), label="shape")
    index = data.draw(indexes(), label="index")
    run(shape, table_type, payload, index, data, histories(shape, operations=operations_with(index)))


@types_and_payloads((TYPES[1], BY_ORDERING))
@HALF
@given(data=st.data())
def test_late_and_equal_versions_and_deletes_meet_as_in_a_dict_of_rows(
    table_type: str, payload: str, data: st.DataObject
) -> None:
    operations = (*[WriteOperation.UPSERT] * 5, WriteOperation.DELETE)
    shape = data.draw(st.sampled_from([CROWDED, MOVING]), label="shape")
    run(
        shape,
        table_type,
        payload,
        data.draw(indexes(), label="index"),
        data,
        histories(shape, least=3, operations=operations),
    )


@pytest.mark.parametrize(
    ("version", "table_type", "payload"),
    by_day(
        itertools.product(("8", "9"), TYPES, (OVERWRITE, BY_ORDERING)),
        {("8", TYPES[0], OVERWRITE), ("9", TYPES[1], BY_ORDERING)}.__contains__,
    ),
    ids=lambda value: NAMES.get(value, value),
)
@FEW
@given(data=st.data())
def test_a_table_of_a_later_version_holds_what_a_dict_of_rows_does(
    version: str, table_type: str, payload: str, data: st.DataObject
) -> None:
    shape = data.draw(st.one_of(shapes(), st.sampled_from([CROWDED, MOVING])), label="shape")
    index = data.draw(indexes(), label="index")
    steps = histories(shape, least=3, operations=operations_with(index))
    run(shape, table_type, payload, index, data, steps, {"hoodie.write.table.version": version}, check_folders)


def check_folders(history: History) -> None:
    """Nothing of the timeline lies where version 6 has it, and no two instants have a time in common."""
    assert not [entry.name for entry in history.storage.list(".hoodie") if entry.name[:1].isdigit()]
    instants = history.table.state().timeline.instants
    times = [time for instant in instants for time in (instant.requested, instant.completed) if time]
    assert len(times) == len(set(times))


@pytest.mark.parametrize("table_type", by_day(TYPES, TYPES[1].__eq__))
@settings(max_examples=scaled(3, 20))
@given(data=st.data())
def test_a_metadata_table_follows_histories(table_type: str, data: st.DataObject) -> None:
    """All its partitions tell what is there after each write, and after each that failed and was taken back: what a
    build of the files tells."""
    shape = data.draw(shapes(), label="shape")
    listed = {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.compact.max.delta.commits": data.draw(st.sampled_from([1, 2, 4]), label="compacted after"),
        "hoodie.table.services.enabled": "true",
    }
    index = data.draw(st.sampled_from([{}, *RECORD_INDEXES[table_type]]), label="index")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordIndexIgnored)  # of a table that has a key twice
        warnings.simplefilter("ignore", MetadataTableDropped)
        operations = operations_with({"hoodie.index.type": "SIMPLE", **index})
        steps = histories(shape, least=3, operations=operations)
        run(shape, table_type, OVERWRITE, index, data, steps, listed, check_listed)


def check_listed(history: History) -> None:
    check_kept(history.storage)


@pytest.mark.nightly
@TABLE_TYPES
@given(data=st.data())
def test_batches_that_pass_through_temporary_files_make_the_same_table(table_type: str, data: st.DataObject) -> None:
    shape = data.draw(shapes(), label="shape")
    index = data.draw(indexes(), label="index")
    spilled = {"hoodie.spark.driver.max.batch.bytes": 0}
    run(shape, table_type, OVERWRITE, index, data, histories(shape, operations=operations_with(index)), spilled)


def run(
    shape: Shape,
    table_type: str,
    payload: str,
    index: Mapping[str, str],
    data: st.DataObject,
    steps: st.SearchStrategy[tuple[Step, ...]],
    more: Mapping[str, object] | None = None,
    check: Callable[[History], None] = lambda history: None,
) -> None:
    options = {
        **data.draw(SIZES, label="sizes"),
        **index,
        **(data.draw(LOGS, label="logs") if table_type == "MERGE_ON_READ" else {}),
        "hoodie.datasource.write.payload.class": payload,
        "hoodie.datasource.write.table.type": table_type,
    }
    options |= more or {}
    history = History(shape, options, MemoryStorage())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedLog)  # of writers that died, until the next one takes their write back
        for step in data.draw(steps, label="history"):
            history.take(step)
            check(history)
            at = data.draw(st.integers(0, 11), label="as of")  # whether or not a write with a fault was published
            if states := sorted(history.states):
                history.check_as_of(states[at % len(states)])
