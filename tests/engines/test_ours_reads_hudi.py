"""The library reads tables that the real Hudi wrote, with Spark and without, and has made itself the same rows by the
same options."""

from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.engine_cases import BY_BOTH, comparable, read, write
from support.hudi_engine import HudiEngine, HudiFailed


@pytest.mark.parametrize("name", BY_BOTH)
def test_the_library_reads_what_hudi_wrote(hudi: HudiEngine, spark: SparkSession, name: str, tmp_path: Path) -> None:
    case, path, own = BY_BOTH[name], tmp_path / name, tmp_path / "own"
    if hudi.version.startswith(case.unmade):
        pytest.skip(f"Hudi {hudi.version} cannot make it")
    instants, numbers = hudi.make(case, path, {"hoodie.metadata.enable": "false"}), write(case, own)
    # Ranges of versions 8 and 9 go by completion times.
    views = case.views if hudi.version < "1" else case.views[: 1 + case.merge_on_read]
    for view in views:
        rows = comparable(read(path, view, instants[-2]), instants)
        assert comparable(read(path, view, instants[-2], spark), instants) == rows, f"{view} by Spark"
        if case.differs(hudi.version, view):
            with suppress(HudiFailed):
                assert comparable(hudi.view(path, view, instants[-2]), instants) != rows, "the difference is gone"
        else:
            assert comparable(hudi.view(path, view, instants[-2]), instants) == rows, view
        if view == "snapshot":
            assert comparable(read(own, view, numbers[-2]), numbers) == rows
