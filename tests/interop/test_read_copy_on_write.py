"""Rows of real tables, read as Arrow without Spark: snapshots, time travel, read-optimized, incremental base files."""

import datetime as dt
import io
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hudi import HudiReadOptions, HudiTableBuilder

from hoodie import open_table
from hoodie.errors import CorruptFile, InvalidInput, NoRowsYet, UnsupportedTable
from hoodie.formats.timeline.commit_json import encode_commit
from hoodie.model.commit import Operation
from hoodie.model.files import FileSlice
from hoodie.model.instant import Action
from hoodie.reading.snapshot import read_slices_arrow
from hoodie.reading.table_schema import table_schema
from hoodie.schema.schema import with_meta_fields
from hoodie.storage.local import LocalStorage
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.state import load_state
from hoodie.timeline.load import read_commit
from hoodie.view.load import load_view
from hoodie.view.slices import latest_base_files, merged_slices
from support.oracles import META, assert_same_rows, expected_rows, fixture_facts, fixture_names

COPY_ON_WRITE = [name for name in fixture_names() if "cow" in name]
MERGE_ON_READ = [name for name in fixture_names("hudi-0.15") if "mor" in name]
EXPECTED = [name for name in COPY_ON_WRITE if name != "v5_cow_nonpartitioned"]


def opened(path):
    state = load_state(LocalStorage(path))
    return state, load_view(state.storage, state.timeline, state.config)


def rows_of(state, view, files):
    schema = table_schema(state, view)
    schema = with_meta_fields(schema) if state.config.meta_fields else schema
    slices = [FileSlice(group, file.instant, file) for group, file in files.items()]
    return read_slices_arrow(state.storage, slices, schema)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_snapshot_has_the_rows_that_hudi_reads(name, fixture_table):
    rows = open_table(fixture_table(name)).snapshot(meta=True).to_arrow()
    assert rows.num_rows > 0
    assert_same_rows(rows, expected_rows(name))
    if name != "cow_no_meta_fields":
        assert tuple(rows.column_names[:5]) == META


def test_a_table_of_version_five_is_read(fixture_table):
    rows = open_table(fixture_table("v5_cow_nonpartitioned")).snapshot(meta=True).to_arrow()
    assert rows.num_rows == 2
    assert tuple(rows.column_names) == (*META, "id", "name", "ts", "dt", "hh")
    assert rows.column("_hoodie_commit_time").to_pylist() == ["20231127051653361"] * 2


def test_a_table_without_meta_fields_has_the_users_columns_only(fixture_table):
    rows = open_table(fixture_table("cow_no_meta_fields")).snapshot(meta=True).to_arrow()
    assert set(rows.column_names) == {"id", "ds", "ts", "qty", "price", "note"}


#: Tables with commits on the timeline whose files were cleaned.
CLEANED = {"cow_archived", "cow_savepoint"}


@pytest.mark.parametrize("name", [name for name in COPY_ON_WRITE if not name.startswith("v5")])
def test_time_travel_has_the_rows_that_hudi_rs_reads(name, fixture_table):
    path = fixture_table(name)
    state, _ = opened(path)
    table = HudiTableBuilder.from_base_uri(str(path)).build()
    for instant in state.timeline.commits:
        batches = table.read(HudiReadOptions().with_as_of_timestamp(instant.requested))
        try:
            rows = open_table(path).snapshot(as_of=instant.requested, meta=True).to_arrow()
        except InvalidInput as refused:  # hudi-rs gives the rows that are left
            assert name in CLEANED, refused  # noqa: PT017
            assert "cleaning removed" in str(refused)  # noqa: PT017
            assert instant != state.timeline.commits[-1]
            continue
        count = sum(batch.num_rows for batch in batches)
        assert rows.num_rows == count
        if count:
            expected = pa.concat_tables([pa.Table.from_batches([b]) for b in batches], promote_options="permissive")
            missing = [name for name in expected.column_names if name not in rows.column_names]
            # hudi-rs has the columns of today, and the meta columns of tables that do without
            assert all(expected.column(name).null_count == count or name in META for name in missing)
            assert_same_rows(rows, expected.drop_columns(missing))


def test_a_read_as_of_an_instant_has_the_columns_of_then(fixture_table):
    path = fixture_table("cow_schema_evolution")
    first, second, third = (step["instant"] for step in fixture_facts("cow_schema_evolution")["steps"])
    types = [
        (table.schema.field("qty").type, "extra" in table.column_names)
        for table in (
            open_table(path).snapshot(as_of=instant, meta=True).to_arrow() for instant in (first, second, third)
        )
    ]
    assert types == [(pa.int32(), False), (pa.int32(), True), (pa.int64(), True)]


def test_before_the_first_commit_is_said_to_be_so(fixture_table):
    path = fixture_table("cow_upserts_delete")
    first = load_state(LocalStorage(path)).timeline.commits[0].requested
    for point in ("2001-01-01", "20010101000000000", dt.date(2001, 1, 1)):
        with pytest.warns(NoRowsYet, match=f"has no rows yet: its first commit is {first}"):
            rows = open_table(path).snapshot(as_of=point, meta=True).to_arrow()
        assert rows.num_rows == 0
        assert rows.column_names == open_table(path).snapshot(meta=True).schema.names


@pytest.mark.parametrize("name", MERGE_ON_READ)
def test_read_optimized_has_the_rows_of_the_base_files(name, fixture_table):
    state, view = opened(fixture_table(name))
    rows = rows_of(state, view, latest_base_files(view))
    expected = expected_rows(name, "read_optimized")
    assert_same_rows(rows.select(expected.column_names), expected)


# --- columns and filters ---


@pytest.fixture
def evolved(fixture_table):
    return fixture_table("cow_schema_evolution")


@pytest.mark.parametrize("name", ["cow_schema_evolution", "mor_deletes"])
def test_rows_without_columns_are_counted(name, fixture_table):
    path = fixture_table(name)
    rows = open_table(path).snapshot(columns=[]).to_arrow()
    assert (rows.num_columns, rows.num_rows) == (0, open_table(path).snapshot(meta=True).to_arrow().num_rows)


def test_a_column_that_no_file_of_a_slice_has_is_null(evolved):
    rows = open_table(evolved).snapshot(columns=["extra"]).to_arrow()
    assert rows.num_rows == 120
    assert 0 < rows.column("extra").null_count < 120


@pytest.mark.parametrize(
    "filters",
    [
        [("qty", ">", 100), ("ds", "=", "2024-03-01")],
        [[("qty", ">", 100), ("ds", "=", "2024-03-01")]],
        (pc.field("qty") > 100) & (pc.field("ds") == "2024-03-01"),
    ],
)
def test_filters_may_name_columns_that_are_not_read(evolved, filters):
    rows = open_table(evolved).snapshot(columns=["id"], filters=filters).to_arrow()
    whole = open_table(evolved).snapshot(meta=True).to_arrow()
    kept = whole.filter(pc.and_(pc.greater(whole["qty"], 100), pc.equal(whole["ds"], "2024-03-01")))
    assert 0 < rows.num_rows < whole.num_rows
    assert sorted(rows["id"].to_pylist()) == sorted(kept["id"].to_pylist())


# --- what is refused ---


def test_slices_with_logs_need_a_merge(fixture_table):
    path = fixture_table("mor_logs")
    state, view = opened(path)
    slices = merged_slices(view).values()
    schema = with_meta_fields(table_schema(state, view))
    with pytest.raises(UnsupportedTable, match="log files"):
        read_slices_arrow(state.storage, slices, schema)
    asked = []

    def merge(slice_, schema, columns):
        asked.append(slice_)
        return pa.table({name: ["merged"] for name in columns}, pa.schema([schema.field(name) for name in columns]))

    rows = read_slices_arrow(state.storage, slices, schema, columns=["id"], merge=merge)
    assert asked == [slice_ for slice_ in slices if slice_.logs] != []
    assert rows.column("id").to_pylist().count("merged") == len(asked)


def test_a_damaged_base_file_is_named(fixture_table):
    path = fixture_table("cow_upserts_delete")
    _, view = opened(path)
    file = next(iter(latest_base_files(view).values()))
    whole = (path / file.path).read_bytes()
    for damaged in (b"", whole[:100], whole[:-1], whole[: len(whole) // 2] + b"PAR1"):
        (path / file.path).write_bytes(damaged)
        with pytest.raises(CorruptFile, match=file.name):
            open_table(path).snapshot(meta=True).to_arrow()


def test_a_base_file_that_was_cleaned_away_meanwhile_is_not_corrupt(fixture_table):
    path = fixture_table("cow_upserts_delete")
    state, view = opened(path)
    file = next(iter(latest_base_files(view).values()))
    (path / file.path).unlink()
    with pytest.raises(FileNotFoundError):
        rows_of(state, view, latest_base_files(view))


class OpensLate(WrappedStorage):
    """As drivers of object stores, which find out at the first read that a file is not there."""

    fault = FileNotFoundError

    def open_input(self, path, size=None):
        fault = self.fault

        class Absent(io.RawIOBase):
            def seekable(self):
                return True

            readable = seekable

            def seek(self, offset, whence=0):
                raise fault(path)

        return Absent()


@pytest.mark.parametrize("fault", [FileNotFoundError, PermissionError, ConnectionResetError, TimeoutError])
def test_a_fault_of_the_storage_is_not_taken_for_damage(fixture_table, fault):
    state, view = opened(fixture_table("cow_upserts_delete"))
    schema = with_meta_fields(table_schema(state, view))
    storage = OpensLate(state.storage)
    storage.fault = fault
    with pytest.raises(fault):
        read_slices_arrow(storage, merged_slices(view).values(), schema)


# --- schema ---


def test_without_a_commit_that_says_the_schema_is_that_of_creation_or_of_a_file(fixture_table):
    path = fixture_table("v6_cow_nonpartitioned")
    state, view = opened(path)
    known = table_schema(state, view)
    for instant in state.timeline.commits:
        (path / state.timeline.path(instant)).write_bytes(b"")
    created = table_schema(state, view)
    assert created.names == known.names
    assert created.types == known.types
    properties = path / ".hoodie/hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if "create.schema" not in line]
    properties.write_text("\n".join(kept))
    state, view = opened(path)
    assert state.config.create_schema == ""
    assert table_schema(state, view).types == known.types
    assert_same_rows(open_table(path).snapshot(meta=True).to_arrow(), expected_rows("v6_cow_nonpartitioned"))


def test_a_clustering_does_not_say_the_schema(fixture_table):
    path = fixture_table("cow_clustering")
    state, view = opened(path)
    known = table_schema(state, view)
    (clustering,) = state.timeline.completed({Action.REPLACE_COMMIT})
    metadata = read_commit(state.storage, state.timeline, clustering)
    assert metadata.operation is Operation.CLUSTER
    wrong = replace(metadata, extra={"schema": '{"type":"record","name":"r","fields":[{"name":"x","type":"int"}]}'})
    (path / state.timeline.path(clustering)).write_bytes(encode_commit(wrong))
    assert table_schema(state, view, clustering.requested) == known
