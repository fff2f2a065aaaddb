"""The stream of a table's changes as Spark drives it: offsets, micro-batches that are sent again, what is refused.

No Spark runs: `Query` calls the reader in the order that Spark does, and keeps its checkpoint.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import StructType

import hoodie
from hoodie.commit.heartbeat import heartbeat_path
from hoodie.errors import (
    HistoryGone,
    HollowCommit,
    InvalidInput,
    InvalidOption,
    SchemaMismatch,
    TableNotFound,
    UnsupportedTable,
)
from hoodie.schema.by_id import Drop
from hoodie.services.alter_columns import alter_columns
from hoodie.sources import change_stream
from hoodie.sources.answers import load_stream
from hoodie.sources.change_stream import ChangeStream
from hoodie.sources.views import HudiSource
from hoodie.table.settings import Settings

START, MOST = "hoodie.datasource.streaming.startOffset", "hoodie.datasource.streaming.max.commits.per.trigger"
POLICY = "hoodie.read.timeline.holes.resolution.policy"
ALL = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true"}
SEVERAL = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "InProcessLockProvider",
    "hoodie.parquet.small.file.limit": "0",  # each to a file group of its own
}
NO_SERVICES = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}

Rows = list[tuple[str, int]]


class Query:
    """A streaming query: its checkpoint outlives the reader, which lives as long as one run."""

    def __init__(self, path: str, **options: Any) -> None:
        self.source = {"path": path, **{key.lower(): str(value) for key, value in options.items()}}
        self.offsets: list[str] = []  # the ends of the batches that were planned
        self.done = 0  # how many of them were taken
        self.columns = ("id", "at")

    def run(self, dies: Callable[[int], bool] = lambda number: False) -> list[Rows]:
        """All that there is now, in micro-batches. dies: whether the sink's work on a batch is not noted any more"""
        source = HudiSource(self.source)
        reader = source.streamReader(source.schema())
        assert isinstance(reader, ChangeStream)
        reader.prepareForTriggerAvailableNow()
        batches: list[Rows] = []
        planned = self.done < len(self.offsets)  # and not finished: Spark asks for no other end
        if planned and not self._take(reader, batches, dies):
            return batches
        while True:
            start = self.offsets[-1] if self.offsets else json.dumps(reader.initialOffset())
            end = json.dumps(reader.latestOffset(json.loads(start), reader.getDefaultReadLimit()))
            if end == start and self.offsets:
                return batches
            self.offsets.append(end)
            if not self._take(reader, batches, dies):
                return batches

    def _take(self, reader: ChangeStream, batches: list[Rows], dies: Callable[[int], bool]) -> bool:
        end = json.loads(self.offsets[-1])
        start = json.loads(self.offsets[-2]) if len(self.offsets) > 1 else reader.initialOffset()
        rows: Rows = []
        for task in reader.partitions(start, end):
            for batch in reader.read(task):
                rows += zip(*(batch.column(name).to_pylist() for name in self.columns), strict=True)
        batches.append(sorted(rows))
        if dies(len(self.offsets) - 1):
            return False
        self.done = len(self.offsets)
        return True


def rows_of(*rows: tuple[str, int]) -> pa.Table:
    return pa.table({"id": [row[0] for row in rows], "at": [row[1] for row in rows]})


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return made(tmp_path / "t", request.param)


def made(path: Path, kind: str = "COPY_ON_WRITE") -> Any:
    return hoodie.create_table(
        str(path), name=path.name, record_key="id", ordering="at", table_type=kind, options=NO_SERVICES
    )


def test_each_micro_batch_has_the_rows_of_the_commits_since_the_last(table):
    table.upsert(rows_of(("a", 1), ("b", 1)))
    query = Query(table.path)
    assert query.run() == [[("a", 1), ("b", 1)]]
    assert query.run() == []
    table.upsert(rows_of(("b", 2)))
    table.delete(rows_of(("a", 1)))
    table.upsert(rows_of(("c", 3)))
    assert query.run() == [[("b", 2), ("c", 3)]]


def test_a_micro_batch_takes_at_most_so_many_commits_each_row_as_it_was_then(table):
    for at in range(5):
        table.upsert(rows_of(("a", at), (f"k{at}", at)))
    ones = [[("a", at), (f"k{at}", at)] for at in range(5)]
    assert Query(table.path, **{MOST: 1}).run() == ones
    twos = [[("a", 1), ("k0", 0), ("k1", 1)], [("a", 3), ("k2", 2), ("k3", 3)], ones[4]]
    assert Query(table.path, **{MOST: 2}).run() == twos


def test_a_column_that_is_lost_says_to_start_the_stream_again(table, monkeypatch):
    table.upsert(rows_of(("a", 1)).append_column("v", [["x"]]))
    query = Query(table.path)
    source = HudiSource(query.source)
    reader = source.streamReader(source.schema())
    monkeypatch.setattr(change_stream, "read_schema", lambda state: pa.schema([("id", "string"), ("at", "int64")]))
    start, end = reader.initialOffset(), reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    with pytest.raises(
        SchemaMismatch, match=r"no longer has .*v: dropped or renamed .* start the stream again, with its"
    ):
        reader.partitions(start, end)


def altered_while_streamed(table, first, then):
    """The rows of a micro-batch of `then`, of a stream that began with the fields of `first`."""
    kinds = {"x": pa.int32(), "y": pa.string()}

    def upsert(at, value):
        kind = pa.struct([(name, kinds[name]) for name in value])
        table.upsert(pa.table({"id": ["a"], "at": [at], "s": pa.array([value], kind)}))

    upsert(1, first)
    query = Query(table.path, **{START: table.history()[0][0].requested})
    query.columns = ("id", "at", "s")
    source = HudiSource(query.source)
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    then(upsert)
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    return [row for task in reader.partitions(start, end) for batch in reader.read(task) for row in batch.to_pylist()]


def test_a_field_that_a_struct_gets_later_comes_after_a_restart(table):
    rows = altered_while_streamed(table, {"x": 1}, lambda upsert: upsert(2, {"x": 2, "y": "new"}))
    assert [(row["id"], row["at"], row["s"]) for row in rows] == [("a", 2, {"x": 2})]


def test_a_field_that_is_lost_says_to_start_the_stream_again(table):
    def drop_field(upsert):
        alter_columns(table.storage, [Drop(("s", "y"))], Settings.of({}), on_read=True)
        upsert(2, {"x": 2})

    with pytest.raises(SchemaMismatch, match=r"no longer has s\.y: dropped or renamed"):
        altered_while_streamed(table, {"x": 1, "y": "old"}, drop_field)


def test_a_stream_begins_where_it_is_told_to(table):
    first = table.upsert(rows_of(("a", 1)))
    table.upsert(rows_of(("b", 2)))
    late, after = Query(table.path, **{START: "latest"}), Query(table.path, **{START: first.instant})
    assert late.run() == [[]]
    assert after.run() == [[("b", 2)]]
    table.upsert(rows_of(("c", 3)))
    assert late.run() == after.run() == [[("c", 3)]]


def test_a_first_batch_that_is_sent_again_begins_where_it_began(table):
    """Spark asks again where the query begins: "latest" is another instant by then."""
    table.upsert(rows_of(("a", 1)))
    query = Query(table.path, **{START: "latest"})
    assert query.run(dies=lambda number: True) == [[]]
    table.upsert(rows_of(("b", 2)))
    assert query.run(dies=lambda number: number == 1) == [[], [("b", 2)]]
    table.upsert(rows_of(("c", 3)))
    assert query.run() == [[("b", 2)], [("c", 3)]]


def test_a_commit_that_completes_late_is_waited_for(table):
    table.upsert(rows_of(("a", 1)))
    query = Query(table.path)
    assert query.run() == [[("a", 1)]]
    slow = table.upsert(rows_of(("b", 2)), options=SEVERAL).instant
    (completed,) = (file for file in Path(table.path, ".hoodie").glob(f"{slow}.*commit"))
    aside = completed.rename(completed.with_name("aside"))  # its writer is not done yet
    table.storage.write(heartbeat_path(slow), b"")
    table.upsert(rows_of(("c", 3)), options=SEVERAL)
    assert query.run() == []
    with pytest.raises(HollowCommit):
        Query(table.path, **{POLICY: "FAIL"}).run()
    assert Query(table.path, **{POLICY: "USE_TRANSITION_TIME"}).run()[0][-1] == ("c", 3)
    aside.rename(completed)
    assert query.run() == [[("b", 2), ("c", 3)]]


def test_a_stream_goes_on_after_its_last_commit_was_rolled_back(table):
    table.upsert(rows_of(("a", 1)))
    query = Query(table.path)
    second = table.upsert(rows_of(("b", 2)))
    assert query.run() == [[("a", 1), ("b", 2)]]
    table.rollback(second.instant)
    assert query.run() == []
    table.upsert(rows_of(("c", 3)))
    assert query.run() == [[("c", 3)]]


def test_history_that_is_gone_is_an_error_that_names_the_earliest_begin(table):
    query = Query(table.path)
    table.upsert(rows_of(("a", 0)))
    query.run()
    for at in range(1, 8):
        table.upsert(rows_of(("a", at)))
    table.clean(options={"hoodie.cleaner.commits.retained": 1})
    table.archive(options={"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3})
    one_commit_each = {"hoodie.datasource.streaming.max.commits.per.trigger": 1}
    with pytest.raises(HistoryGone, match="cleaned away"):  # the row as it was then
        Query(table.path, **one_commit_each).run()
    assert query.run() == [[("a", 7)]]  # the archive has the commits, and the newest file is there
    assert Query(table.path, **ALL).run() == [[("a", 7)]]
    assert Query(table.path, **{START: "latest"}).run() == [[]]


def test_change_data_comes_as_a_stream_deletes_and_images_included(tmp_path):
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        table = hoodie.create_table(
            str(tmp_path / kind),
            name="t",
            record_key="id",
            ordering="at",
            table_type=kind,
            options={**NO_SERVICES, "hoodie.table.cdc.enabled": "true"},
        )
        table.upsert(rows_of(("a", 1), ("b", 1)))
        options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.query.incremental.format": "cdc"}
        query = Query(table.path, **options)
        query.columns = ("op", "after")
        ((first, second),) = query.run()
        assert (first[0], json.loads(first[1])["id"], second[0]) == ("i", "a", "i")
        table.upsert(rows_of(("b", 2)))
        table.delete(rows_of(("a", 1)))
        query.columns = ("op", "before")
        assert [(op, json.loads(before)["id"]) for op, before in query.run()[0]] == [("d", "a"), ("u", "b")]
    plain = made(tmp_path / "plain")
    plain.upsert(rows_of(("a", 1)))
    with pytest.raises(UnsupportedTable, match=r"hoodie\.table\.cdc\.enabled"):
        Query(plain.path, **options).run()


def test_a_checkpoint_of_another_table_or_another_order_is_refused(table, tmp_path):
    table.upsert(rows_of(("a", 1)))
    query = Query(table.path)
    query.run()
    other = made(tmp_path / "other")
    other.upsert(rows_of(("z", 1)))
    query.source["path"] = other.path
    with pytest.raises(InvalidInput, match=r"checkpoint is of table 't' at .*startOffset=2"):
        query.run()
    query.source |= {"path": table.path, POLICY: "USE_TRANSITION_TIME"}
    with pytest.raises(InvalidInput, match="counts by instant"):
        query.run()
    query.offsets[-1] = '{"logOffset": 3}'
    with pytest.raises(InvalidInput, match="not of a stream of hudi"):
        query.run()


def test_a_stream_goes_on_where_its_table_has_been_upgraded_meanwhile(table):
    table.upsert(rows_of(("a", 1)))
    query, began = Query(table.path, **{MOST: 1}), Query(table.path)
    assert query.run() == [[("a", 1)]]
    began.run(dies=lambda number: True)
    table.upsert(rows_of(("b", 2)))
    table.upgrade(8)
    assert began.run() == [[("a", 1)], [("b", 2)]]  # the batch that died, and the rest
    table.upsert(rows_of(("c", 3)))
    assert query.run() == [[("b", 2)], [("c", 3)]]
    table.upgrade(9)
    table.upsert(rows_of(("d", 4)))
    assert query.run() == [[("d", 4)]]
    later = Query(table.path)
    later.run()
    table.downgrade(6)
    table.upsert(rows_of(("e", 5)))
    assert query.run() == [[("e", 5)]]
    with pytest.raises(InvalidInput, match=rf"counts by completion, .* the table's version .*{START}=2") as error:
        later.run()
    begin = str(error.value).partition(f"{START}=")[2][:17]
    assert Query(table.path, **{START: begin}).run() == [[("e", 5)]]


@pytest.mark.parametrize(("word", "rows"), [("EARLIEST", [("a", 1)]), ("Latest", []), (" Earliest ", [("a", 1)])])
def test_words_for_the_begin_are_read_in_any_case(table, word, rows):
    table.upsert(rows_of(("a", 1)))
    assert Query(table.path, **{START: word}).run() == [rows]


def session_of(settings: dict[str, str]) -> Any:
    return SimpleNamespace(conf=SimpleNamespace(get=lambda key, default=None: default, getAll=settings))


def test_settings_of_the_session_say_how_a_stream_reads_and_not_what(tmp_path):
    """Hudi's streams take nothing of the session: what it says for queries neither moves a stream nor stops it."""
    table = made(tmp_path / "t")
    table.upsert(rows_of(("a", 1)))
    how = {"hoodie.read.ignore.missing.files": "true", "spark.hoodie.memory.merge.max.size": "1000000"}
    what = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "earliest",
        "hoodie.datasource.query.incremental.format": "cdc",
        START: "latest",
        POLICY: "FAIL",
    }
    own = {"hoodie.memory.merge.max.size": "2000000"}
    options, columns = load_stream(session_of({**how, **what}), table.path, own)
    assert options == {"path": table.path, "hoodie.read.ignore.missing.files": "true", **own}
    assert columns.names[-2:] == ["id", "at"]
    with pytest.raises(InvalidOption, match="RESET removes it"):
        load_stream(session_of({"hoodie.read.ignore.missing.file": "true"}), table.path, {})


def test_bad_options_are_refused_before_spark_sees_them(tmp_path):
    table = made(tmp_path / "t")
    session = session_of({})
    with pytest.raises(InvalidInput, match="no columns yet"):
        load_stream(session, table.path, {})
    table.upsert(rows_of(("a", 1)))
    assert load_stream(session, table.path, {START.lower(): "latest"})[0] == {START: "latest", "path": table.path}
    with pytest.raises(TableNotFound):
        load_stream(session, str(tmp_path / "nowhere"), {})
    for options in (
        {"hoodie.datasource.query.type": "read_optimized"},
        {"hoodie.datasource.read.begin.instanttime": "earliest"},
        {MOST: "-1"},
        {"hoodie.datasource.streaming.startOfset": "latest"},
    ):
        with pytest.raises(InvalidOption):
            load_stream(session, table.path, options)
    with pytest.raises(InvalidInput, match="neither an instant nor"):
        Query(table.path, **{START: "yesterday"}).run()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)),
        st.tuples(st.just("delete"), st.lists(st.sampled_from("abcd"), min_size=1, max_size=2, unique=True)),
        st.tuples(st.sampled_from(["compact", "clean", "archive", "pull", "pull"]), st.just([])),
        st.tuples(st.just("die"), st.just([])),
    ),
    min_size=3,
    max_size=12,
)


@pytest.mark.nightly
@settings(max_examples=40)
@given(STEPS, st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]), st.sampled_from([0, 1, 2]))
def test_nothing_is_lost_and_nothing_comes_twice_whatever_runs_in_between(tmp_path_factory, steps, kind, most):
    table = made(tmp_path_factory.mktemp("stream") / "t", kind)
    table.upsert(rows_of(("a", 0)))
    written = {("a", 0)}
    query = Query(table.path, **{MOST: most})
    taken: list[tuple[str, int]] = []  # what a sink has that knows its batches
    numbers: set[int] = set()

    def pull(dies: bool) -> None:
        first = query.done
        found = query.run(dies=lambda number: dies)
        for number, rows in enumerate(found, first):
            if number not in numbers:
                numbers.add(number)
                taken.extend(rows)

    for at, (step, keys) in enumerate(steps, 1):
        if step == "upsert":
            table.upsert(rows_of(*((key, at) for key in keys)))
            written |= {(key, at) for key in keys}
        elif step == "delete":
            table.delete(rows_of(*((key, at) for key in keys)))
        elif step == "compact":
            if kind == "COPY_ON_WRITE":
                continue
            table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": 1})
            table.compact()
        elif step == "clean":
            table.clean(options={"hoodie.cleaner.commits.retained": 4})
        elif step == "archive":
            table.archive(options={"hoodie.keep.min.commits": 5, "hoodie.keep.max.commits": 6})
        else:
            pull(step == "die")
    pull(False)
    assert len(taken) == len(set(taken))  # nothing twice
    assert set(taken) <= written
    assert {(row["id"], row["at"]) for row in hoodie.open_table(table.path).snapshot().to_arrow().to_pylist()} <= set(
        taken
    )  # nothing lost


def test_a_stream_on_a_pyspark_before_4_2_says_which_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.upsert(pa.table({"id": [1]}))
    monkeypatch.delitem(sys.modules, "hoodie.sources.change_stream")
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)  # as it is not there
    with pytest.raises(InvalidInput, match=r"readStream of a table needs PySpark 4\.2: pip install 'pyspark>=4\.2'"):
        HudiSource({"path": str(tmp_path / "t")}).streamReader(StructType())
