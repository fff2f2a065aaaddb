"""The library and the real Hudi write one table in turns."""

import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import hoodie
from hoodie.doctor.findings import Severity
from hoodie.errors import MetadataTableDropped, MetadataTableIgnored
from hoodie.metadata.validate import validate_metadata
from hoodie.reading.row_keys import read_keys
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from support.engine_cases import CASES, COLUMNS, Row, Step, comparable, write
from support.hudi_engine import HudiEngine

_TURNS = [
    f"{kind}_{name}"
    for kind in ("cow", "mor")
    for name in ("plain", "cleaned", "bucket", "complex_keys", "global_bloom")
]
_AS_6 = {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}


def _step(name: str, key: str, ts: int) -> Step:
    row: Row = (key, "rome", 20, ts, 0.5)
    return Step("upsert", (row, (f"{key}-{ts}", "rome", 20, ts, 1.5)), columns=COLUMNS)


@pytest.mark.parametrize("metadata", ["false", "true"])
@pytest.mark.parametrize("name", _TURNS)
def test_hudi_writes_into_a_table_of_the_library_and_the_library_goes_on(
    hudi: HudiEngine, name: str, metadata: str, tmp_path: Path
) -> None:
    case, path = CASES[name], tmp_path / name
    write(case, path)
    options = {**case.options, **_AS_6, "hoodie.metadata.enable": metadata}
    for ts in (20, 22):
        step = _step(name, "k4", ts)
        hudi.write(path, step.sql(), {**options, "hoodie.datasource.write.operation": "upsert"})
        table = hoodie.open_table(str(path))
        rows = comparable(table.snapshot(meta=True).to_arrow())
        assert rows == comparable(hudi.snapshot(path))
        assert sum(f'"ts": {ts}' in row for row in rows) == 2

        batch = _step(name, "k4", ts + 1).arrow()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MetadataTableDropped)  # partitions that Hudi 1.x adds
            hoodie.hudi.write(batch, str(path), {**case.options, "hoodie.metadata.enable": metadata})
        rows = comparable(table.snapshot(meta=True).to_arrow())
        assert rows == comparable(hudi.snapshot(path))
        assert rows == comparable(hudi.read(path, hoodie__metadata__enable=metadata))
        assert sum(f'"ts": {ts + 1}' in row for row in rows) == 2
        _assert_listed(path, metadata == "true")


def _assert_listed(path: Path, listed: bool) -> None:
    """The file lists of the metadata table are there, and tell what is on the storage."""
    state = load_state(LocalStorage(path))
    told = validate_metadata(state.storage, state.config, state.timeline, read_keys=read_keys)
    assert (told is not None) == listed
    assert told is None or (told.problems == () and "files" in told.partitions)


#: Partitions of the metadata table beside its file lists.
_INDEXES = {
    "column_stats": {"hoodie.metadata.index.column.stats.enable": "true"},
    "bloom_filters": {"hoodie.metadata.index.bloom.filter.enable": "true"},
    "record_index": {
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.record.index.update.partition.path": "true",
    },
}


@pytest.mark.parametrize("partitions", [(), ("column_stats", "bloom_filters"), ("record_index",)], ids=str)
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_a_metadata_table_is_kept_in_turns_of_ten(
    hudi: HudiEngine, kind: str, partitions: tuple[str, ...], tmp_path: Path
) -> None:
    """Each builds on what the other left, compactions of the metadata table, cleaning and archiving included."""
    if partitions and hudi.version > "1":
        pytest.skip("Hudi 1.x writes other records into these partitions of a table of version 6")
    case, path = CASES[f"{kind}_cleaned"], tmp_path / kind
    options = {
        **case.options,
        **_AS_6,
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.compact.max.delta.commits": "4",
        "hoodie.metadata.index.column.stats.enable": "false",
        **{key: value for name in partitions for key, value in _INDEXES[name].items()},
    }
    write(replace(case, options={**case.options, **options}), path)
    _assert_listed(path, True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableDropped)
        warnings.simplefilter("error", MetadataTableIgnored)
        for turn in range(2):
            for number in range(10):
                ts = 100 * turn + number + 20
                step = _step(kind, f"k{number % 6}", ts)
                if turn == 0:
                    hoodie.hudi.write(step.arrow(), str(path), options)
                else:
                    hudi.write(path, step.sql(), {**options, "hoodie.datasource.write.operation": "upsert"})
                if number % 3 == 0 or number == 9:
                    _assert_alike(hudi, path, ts, partitions)
        hoodie.hudi.write(_step(kind, "k1", 999).arrow(), str(path), options)
        _assert_alike(hudi, path, 999, partitions)


def _assert_alike(hudi: HudiEngine, path: Path, ts: int, partitions: tuple[str, ...]) -> None:
    """Both have the same rows, by the metadata table and without it, and it tells what the files hold."""
    table = hoodie.open_table(str(path))
    rows = comparable(table.snapshot(meta=True).to_arrow())
    for metadata in ("true", "false"):
        assert rows == comparable(hudi.read(path, hoodie__metadata__enable=metadata))
    newest = comparable(table.snapshot(filters=f"ts = {ts}", meta=True).to_arrow())
    assert newest
    skipping = {"hoodie__metadata__enable": "true", "hoodie__enable__data__skipping": "true"}
    assert newest == comparable(hudi.read(path, f"ts = {ts}", **skipping))
    _assert_listed(path, True)
    for name in partitions:
        assert len(table.metadata(name))


@pytest.mark.parametrize("name", _TURNS)
def test_a_table_that_hudi_upgraded_is_read_and_written(hudi: HudiEngine, name: str, tmp_path: Path) -> None:
    if hudi.version < "1":
        pytest.skip("Hudi 0.15 writes version 6")
    case, path = CASES[name], tmp_path / name
    write(case, path)
    step = _step(name, "k4", 20)
    hudi.write(path, step.sql(), {**case.options, "hoodie.datasource.write.operation": "upsert"})
    table = hoodie.open_table(str(path))
    rows = comparable(table.snapshot(meta=True).to_arrow())
    assert rows == comparable(hudi.snapshot(path))
    assert sum('"ts": 20' in row for row in rows) == 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetadataTableDropped)
        hoodie.hudi.write(_step(name, "k4", 21).arrow(), str(path), case.options)
    rows = comparable(table.snapshot(meta=True).to_arrow())
    assert rows == comparable(hudi.snapshot(path))
    assert sum('"ts": 21' in row for row in rows) == 2


@pytest.mark.parametrize("name", _TURNS)
def test_a_table_of_version_6_that_hudi_made_is_read_and_written(hudi: HudiEngine, name: str, tmp_path: Path) -> None:
    """Hudi 1.1 and later name its properties as those of version 9."""
    case, path = CASES[name], tmp_path / name
    hudi.make(case, path, {**_AS_6, "hoodie.metadata.enable": "false"})
    table = hoodie.open_table(str(path))
    assert comparable(table.snapshot(meta=True).to_arrow()) == comparable(hudi.snapshot(path))
    hoodie.hudi.write(_step(name, "k4", 21).arrow(), str(path), case.options)
    rows = comparable(table.snapshot(meta=True).to_arrow())
    assert rows == comparable(hudi.snapshot(path))
    assert sum('"ts": 21' in row for row in rows) == 2
    assert [finding for finding in table.check() if finding.severity is Severity.ERROR] == []


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_finds_floating_values_by_statistics_that_it_builds_of_our_files(
    hudi: HudiEngine, kind: str, tmp_path: Path
) -> None:
    """It takes a column without bounds in the footer for one of nulls alone."""
    case, path = CASES[f"{kind}_plain"], tmp_path / kind
    write(case, path)
    statistics = {"hoodie.metadata.enable": "true", **_INDEXES["column_stats"]}
    step = Step("upsert", (("new", "bern", 20, 20, 7.5),), columns=COLUMNS)
    hudi.write(path, step.sql(), {**case.options, **statistics, "hoodie.datasource.write.operation": "upsert"})
    for where in ("fare < 1", "fare > 0.75", "fare = 2.0", "fare is not null"):
        ours = comparable(hoodie.open_table(str(path)).snapshot(filters=where, meta=True).to_arrow())
        skipping = {"hoodie__metadata__enable": "true", "hoodie__enable__data__skipping": "true"}
        assert ours
        assert ours == comparable(hudi.read(path, where, **skipping)), where
