"""The real Hudi 1.x reads and writes by file lists that the library has kept, compacted, cleaned and archived."""

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import MetadataTableDropped, MetadataTableIgnored
from hoodie.metadata.validate import validate_metadata
from hoodie.model.instant import Action
from hoodie.reading.row_keys import read_keys
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from support.engine_cases import CASES, COLUMNS, Row, Step, comparable
from support.hudi_engine import HudiEngine
from support.metadata_tables import metadata_of

_SERVICES = {
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.clean.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
}
_LISTS = {"hoodie__metadata__enable": "true"}
_STATISTICS = {**_LISTS, "hoodie__enable__data__skipping": "true"}
#: All partitions that are kept, by the names that Hudi 1.1 and later have.
_ALL = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.index.type": "GLOBAL_RECORD_LEVEL_INDEX",
}
_PARTITIONS = {"files", "column_stats", "partition_stats", "bloom_filters", "record_index"}
_FILTERS = (
    "",
    "id = 'k1'",
    "id in ('k2', 'none')",
    "fare > 1",
    "fare < 1",
    "ts >= 7",
    "ts = 3",
    "city = 'oslo' and ts < 5",
)


@pytest.fixture(autouse=True)
def _nothing_is_ignored() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableIgnored)
        warnings.filterwarnings("ignore", ".*: a part of the metadata table", MetadataTableDropped)
        yield


def _step(name: str, ts: int) -> Step:
    row: Row = (f"k{ts % 5}", "rome", 20, ts, 0.5)
    return Step("upsert", (row, (f"{name}-{ts}", "oslo", 20, ts, 1.5)), columns=COLUMNS)


def _ours(options: Mapping[str, str]) -> dict[str, str]:
    """Options of our writes: the lists are kept without being asked for."""
    return {key: text for key, text in options.items() if key != "hoodie.metadata.enable"} | _SERVICES


def _problems(path: Path) -> tuple[str, ...]:
    state = load_state(LocalStorage(path))
    told = validate_metadata(state.storage, state.config, state.timeline, read_keys=read_keys)
    return told.problems


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_goes_on_with_lists_that_were_kept(hudi: HudiEngine, kind: str, tmp_path: Path) -> None:
    if hudi.version < "1":
        pytest.skip("Hudi 0.15 writes version 6")
    case, path = CASES[f"{kind}_plain"], tmp_path / kind
    version = "8" if hudi.version.startswith("1.0") else "9"
    options = {**case.options, "hoodie.write.table.version": version, "hoodie.metadata.enable": "true"}
    hudi.write(path, _step("first", 1).sql(), {**options, "hoodie.datasource.write.operation": "upsert"}, "overwrite")
    ts = 1
    for _ in range(2):
        for _ in range(8):
            ts += 1
            hoodie.hudi.write(_step("ours", ts).arrow(), str(path), _ours(options))
            assert _problems(path) == ()
        ours = hoodie.open_table(str(path), options={"hoodie.compact.inline": "false"})
        ours.rollback(ours.upsert(_step("undone", ts + 100).arrow()).instant)
        assert _problems(path) == ()
        rows = comparable(ours.snapshot(meta=True).to_arrow())
        assert rows == comparable(hudi.read(path, **_LISTS))
        state = load_state(LocalStorage(path))
        table = metadata_of(state)
        assert table.timeline.completed({Action.COMMIT})
        for _ in range(2):
            ts += 1
            hudi.write(path, _step("theirs", ts).sql(), {**options, "hoodie.datasource.write.operation": "upsert"})
            rows = comparable(hoodie.open_table(str(path)).snapshot(meta=True).to_arrow())
            assert (
                rows
                == comparable(hudi.read(path, **_LISTS))
                == comparable(hudi.read(path, hoodie__metadata__enable="false"))
            )
            assert sum(f'"ts": {ts}' in row for row in rows) == 2
        assert _problems(path) == ()


@pytest.mark.parametrize("maker", ["ours", "theirs"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_goes_on_with_statistics_filters_and_keys(hudi: HudiEngine, kind: str, maker: str, tmp_path: Path) -> None:
    if hudi.version < "1.1":
        pytest.skip("its statistics have another form")
    case, path = CASES[f"{kind}_plain"], tmp_path / kind
    options = {**case.options, **_ALL, "hoodie.write.table.version": "9", "hoodie.datasource.write.operation": "upsert"}
    ours = {**{key: text for key, text in options.items() if "global" not in key}, **_SERVICES}
    if maker == "ours":
        hoodie.hudi.write(_step("first", 1).arrow(), str(path), ours)
    else:
        hudi.write(path, _step("first", 1).sql(), options, "overwrite")
    for ts in range(2, 10):
        if ts % 3:
            hoodie.hudi.write(_step("ours", ts).arrow(), str(path), ours)
        else:
            hudi.write(path, _step("theirs", ts).sql(), options)
        assert set(load_state(LocalStorage(path)).config.metadata_partitions) == _PARTITIONS
        assert _problems(path) == ()
        for where in _FILTERS if ts % 3 == 1 else ():
            rows = comparable(hudi.read(path, where, hoodie__metadata__enable="false"))
            assert comparable(hudi.read(path, where, **_STATISTICS)) == rows, where


def test_hudi_filters_by_an_expression_whose_index_was_removed(hudi: HudiEngine, tmp_path: Path) -> None:
    if hudi.version < "1.1":
        pytest.skip("its statistics have another form")
    path, name = tmp_path / "expression", f"expression_{hudi.version.replace('.', '_')}"
    properties = "primaryKey = 'id', preCombineField = 'ts', type = 'mor'"
    hudi.sql(f"CREATE TABLE {name} (id string, ts bigint) USING hudi TBLPROPERTIES ({properties}) LOCATION '{path}'")
    hudi.sql(f"INSERT INTO {name} VALUES ('a', 1), ('b', 100000)")
    lock = "hoodie.write.lock.provider"
    hudi.sql(f"SET {lock}=org.apache.hudi.client.transaction.lock.InProcessLockProvider")
    day = "from_unixtime(ts, 'yyyy-MM-dd')"
    hudi.sql(f"CREATE INDEX day ON {name} USING column_stats(ts) OPTIONS(expr='from_unixtime', format='yyyy-MM-dd')")
    hudi.sql(f"RESET {lock}")
    with pytest.warns(MetadataTableDropped, match="expr_index_day"):
        hoodie.open_table(str(path)).upsert(pa.table({"id": ["c"], "ts": [2]}))
    hudi.sql("SET hoodie.enable.data.skipping=true")
    rows = hudi.sql(f"SELECT id FROM {name} WHERE {day} = '1970-01-01' ORDER BY id")
    assert [row["id"] for row in rows] == ["a", "c"]
