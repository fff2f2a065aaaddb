"""What the first write of Hudi 1.x does to a table with a pending compaction, and how that is avoided and mended."""

from collections.abc import Mapping
from pathlib import Path

import pytest

import hoodie
from hoodie.doctor.findings import Fault
from support.engine_cases import COLUMNS, Row, Step, comparable
from support.hudi_engine import HudiEngine
from support.trips import table_options

_OPTIONS = {
    **table_options("trap", "id", partition="city", ordering="ts"),
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.compact.inline": "false",
}
_AS_6 = {"hoodie.write.table.version": "6", "hoodie.write.auto.upgrade": "false"}
_UPSERT = {"hoodie.datasource.write.operation": "upsert"}


def _row(key: str, ts: int) -> Row:
    return (key, "rome", 20, ts, 0.5)


def _fill(path: Path, *, run: bool) -> None:
    """An insert, an update in a log, a compaction's plan, and behind it an update and a delete.

    run  the compaction, before Hudi is let in
    """
    hoodie.hudi.write(Step("insert", tuple(_row(f"k{n}", 1) for n in range(6))).arrow(), str(path), _OPTIONS)
    hoodie.hudi.write(Step("upsert", (_row("k1", 2),)).arrow(), str(path), _OPTIONS)
    table = hoodie.open_table(str(path))
    assert table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": "1"}) is not None
    hoodie.hudi.write(Step("upsert", (_row("k2", 3), _row("k3", 3))).arrow(), str(path), _OPTIONS)
    table.delete(Step("delete", (_row("k4", 3),)).arrow())
    if run:
        table.compact()


def _write(hudi: HudiEngine, path: Path, ts: int, options: Mapping[str, str]) -> None:
    step = Step("upsert", (_row("k5", ts),), columns=COLUMNS)
    hudi.write(path, step.sql(), {**_OPTIONS, **_UPSERT, **options, "hoodie.metadata.enable": "true"})


def _snapshots(hudi: HudiEngine, path: Path) -> tuple[list[str], list[str]]:
    """By Hudi, with its metadata table; by the library."""
    theirs = comparable(hudi.read(path, hoodie__metadata__enable="true"))
    return theirs, comparable(hoodie.open_table(str(path)).snapshot(meta=True).to_arrow())


def test_an_upgrade_with_a_pending_compaction_hides_rows_from_hudi_until_the_table_is_mended(
    hudi: HudiEngine, tmp_path: Path
) -> None:
    if hudi.version < "1":
        pytest.skip("Hudi 0.15 upgrades nothing")
    path = tmp_path / "trap"
    _fill(path, run=False)
    assert Fault.PENDING in _faults(path, "hudi-1.x")
    _write(hudi, path, 10, {})
    theirs, ours = _snapshots(hudi, path)
    assert '"id": "k2", "ts": 3' in "".join(ours)
    assert "k4" not in "".join(ours)
    assert theirs != ours, "the trap is gone: take it out of the pages"
    assert Fault.UNLISTED in _faults(path)
    assert hoodie.open_table(str(path)).repair() == (), "the compaction has to be run first"

    hudi.sql(f"CALL run_compaction(path => '{path}', op => 'run')")
    theirs, ours = _snapshots(hudi, path)
    assert theirs != ours
    hoodie.open_table(str(path)).repair()
    for ts in (11, 12):
        theirs, ours = _snapshots(hudi, path)
        assert theirs == ours
        assert Fault.UNLISTED not in _faults(path)
        _write(hudi, path, ts, {})
    assert sum('"ts": 12' in row for row in _snapshots(hudi, path)[1]) == 1


def test_a_pending_compaction_hides_nothing_from_hudi_where_the_version_stays(hudi: HudiEngine, tmp_path: Path) -> None:
    path = tmp_path / "trap"
    _fill(path, run=False)
    _write(hudi, path, 10, _AS_6)
    theirs, ours = _snapshots(hudi, path)
    assert theirs == ours
    assert '"id": "k2", "ts": 3' in "".join(ours)


def _faults(path: Path, engine: str = "") -> set[Fault]:
    return {finding.fault for finding in hoodie.open_table(str(path)).check(engine=engine)}


@pytest.mark.parametrize("options", [{}, _AS_6], ids=["upgraded", "kept at 6"])
def test_a_compaction_that_was_run_before_hides_nothing(
    hudi: HudiEngine, tmp_path: Path, options: Mapping[str, str]
) -> None:
    path = tmp_path / "trap"
    _fill(path, run=True)
    assert Fault.PENDING not in _faults(path, "hudi-1.x")
    _write(hudi, path, 10, options)
    theirs, ours = _snapshots(hudi, path)
    assert theirs == ours
    assert sum('"ts": 10' in row for row in ours) == 1
