"""INSERT INTO a view, as Spark's committer and tasks carry it out; queries that a view refuses; and a Hudi jar that has
the format's name."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidInput, InvalidOption, JarPresent
from hoodie.sources.views import HudiSource, ViewWriter


def rows_of(*rows: tuple[str, int]) -> pa.Table:
    return pa.table({"id": [row[0] for row in rows], "at": [row[1] for row in rows]})


@pytest.fixture
def path(tmp_path: Path) -> str:
    table = hoodie.create_table(str(tmp_path / "t"), name="t", record_key="id", ordering="at")
    table.upsert(rows_of(("a", 1)))
    return str(tmp_path / "t")


def writer(path: str, overwrite: bool = False, **options: Any) -> ViewWriter:
    source = HudiSource({"path": path, **{key: str(value) for key, value in options.items()}})
    found = source.writer(schema=source.schema(), overwrite=overwrite)
    assert isinstance(found, ViewWriter)
    copy = pickle.loads(pickle.dumps(found))
    assert isinstance(copy, ViewWriter)
    return copy


def content(path: str) -> list[tuple[str, int]]:
    return sorted((row["id"], row["at"]) for row in hoodie.open_table(path).snapshot().to_arrow().to_pylist())


def left_over(path: str) -> list[Path]:
    return [file for file in Path(path, ".hoodie", ".temp").rglob("*") if file.is_file()]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"hoodie.datasource.query.incremental.format": "cdc"}, "cdc is for incremental queries"),
        ({"hoodie.datasource.query.type": "incremental"}, "needs hoodie.datasource.read.begin.instanttime"),
    ],
)
def test_a_view_refuses_the_queries_that_a_read_refuses(path: str, options: dict[str, str], problem: str):
    source = HudiSource({"path": path, **options})
    schema = HudiSource({"path": path}).schema()
    with pytest.raises(InvalidOption, match=problem):
        source.reader(schema).partitions()
    with pytest.raises(InvalidOption, match=problem):
        hoodie.hudi.read(path, options)


def test_only_attempts_that_won_are_written_and_nothing_stays_behind(path):
    insert = writer(path)
    lost = insert.write(iter(rows_of(("lost", 1)).to_batches()))
    won = insert.write(iter(rows_of(("b", 2), ("c", 2)).to_batches()))
    empty = insert.write(iter([]))
    assert lost.path != won.path
    insert.commit([won, None, empty])
    assert content(path) == [("a", 1), ("b", 2), ("c", 2)]
    assert not left_over(path)


def test_a_job_that_fails_leaves_nothing(path):
    insert = writer(path)
    staged = insert.write(iter(rows_of(("b", 2)).to_batches()))
    insert.abort([staged, None])
    assert not left_over(path)
    bad = writer(path)
    staged = bad.write(iter(pa.table({"id": pa.array([None], pa.string()), "at": [1]}).to_batches()))
    with pytest.raises(InvalidInput):
        bad.commit([staged])
    bad.abort([staged])
    assert not left_over(path)
    assert content(path) == [("a", 1)]
    assert len(hoodie.open_table(path).history()) == 1


def test_options_say_what_an_insert_does_and_overwrite_replaces_all(path):
    upsert = writer(path, **{"hoodie.spark.sql.insert.into.operation": "upsert"})
    upsert.commit([upsert.write(iter(rows_of(("a", 5)).to_batches()))])
    assert content(path) == [("a", 5)]
    strict = writer(path, **{"hoodie.sql.insert.mode": "strict"})
    with pytest.raises(InvalidInput, match="keys"):
        strict.commit([strict.write(iter(rows_of(("a", 6)).to_batches()))])
    assert content(path) == [("a", 5)]
    replace = writer(path, overwrite=True)
    replace.commit([replace.write(iter(rows_of(("z", 1)).to_batches()))])
    assert content(path) == [("z", 1)]
    with pytest.raises(InvalidInput, match="TRUNCATE"):
        writer(path, overwrite=True).commit([])
    with pytest.raises(InvalidOption, match="latest rows"):
        writer(path, **{"as.of.instant": hoodie.open_table(path).history()[0][0].requested})


def test_a_batch_that_one_process_should_not_write_is_refused_with_advice(path):
    insert = writer(path, **{"hoodie.spark.driver.max.batch.bytes": 100})
    with pytest.raises(InvalidInput, match=r"hoodie\.hudi\.write"):
        insert.write(iter(rows_of(*((str(number), 1) for number in range(50))).to_batches()))
    insert.abort([])
    parts = [insert.write(iter(rows_of(("b", 2), ("c", number)).to_batches())) for number in range(4)]
    with pytest.raises(InvalidInput, match=r"up to 100 bytes.*hoodie\.spark\.sql"):
        insert.commit(parts)
    assert not left_over(path)
    assert content(path) == [("a", 1)]


class WithJar:
    """A session that has a Hudi jar on its class path."""

    def __init__(self) -> None:
        self.dataSource = self
        self.conf = {"spark.master": "spark://elsewhere:7077"}
        self.registered: list[str] = []

    def register(self, source: Any) -> None:
        if "hudi" in source.name():
            raise RuntimeError(f"[DATA_SOURCE_ALREADY_EXISTS] Data source '{source.name()}' already exists.")
        self.registered.append(source.name())


def test_a_jars_names_stay_its_own_unless_told():
    from hoodie.sources import calls

    session: Any = WithJar()
    others = set(calls.CAUGHT)  # of sessions that another test of this process registered
    calls.CAUGHT.clear()
    try:
        with pytest.warns(JarPresent, match="shadow=True"):
            hoodie.register(session)
        assert session.registered == ["hoodie"]
        assert [calls.ours(name) for name in ("hudi", "org.apache.hudi", "hoodie", "parquet")] == [
            False,
            False,
            True,
            False,
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            hoodie.register(session, shadow=True)
        assert calls.ours("HUDI")
    finally:
        hoodie.spark.unregister(session)
        names = set(calls.CAUGHT)
        calls.CAUGHT.update(others)
    assert not names
