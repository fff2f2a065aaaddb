"""The real Hudi reads tables that the library wrote: each view has the library's rows."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from support.engine_cases import CASES, Case, comparable, read, write
from support.hudi_engine import HudiEngine, HudiFailed


@pytest.mark.parametrize("name", CASES)
def test_hudi_reads_what_the_library_wrote(hudi: HudiEngine, name: str, tmp_path: Path) -> None:
    case, path = CASES[name], tmp_path / name
    instants = write(case, path)
    for view in case.views:
        for after in _instants(case, view, instants):
            ours = comparable(read(path, view, after), instants)
            if not case.differs(hudi.version, view):
                assert comparable(hudi.view(path, view, after), instants) == ours, (view, instants.index(after))
            elif after == instants[-2]:
                with suppress(HudiFailed):
                    theirs = comparable(hudi.view(path, view, after), instants)
                    assert theirs != ours, "the difference is gone: take it out of the case"


def test_hudi_lists_what_a_slower_writer_put_behind_the_block_of_one_that_died(
    hudi: HudiEngine, tmp_path: Path
) -> None:
    locked = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "StorageBasedLockProvider",
        "hoodie.metadata.enable": "true",
    }
    hoodie.create_table(tmp_path / "t", record_key="id", partition_by="p", options=locked)
    slower, later = (hoodie.hudi.HoodieWriteClient(str(tmp_path / "t"), locked) for _ in range(2))
    earlier, died = slower.start_commit(), later.start_commit()
    later.upsert(pa.table({"id": ["a"], "p": ["x"]}), died)
    for folder in (".hoodie", ".hoodie/metadata/.hoodie"):
        for file in (tmp_path / "t" / folder).glob(f"{died}.*commit"):
            file.unlink()
    slower.upsert(pa.table({"id": ["b"], "p": ["y"]}), earlier)
    rows = hudi.read(tmp_path / "t", hoodie__metadata__enable="true")
    assert [row["id"] for row in rows] == ["b"]


def _instants(case: Case, view: str, instants: Sequence[str]) -> Sequence[str]:
    """Those from which a view is asked: of ranges and earlier states all that are still there."""
    if view in ("snapshot", "read_optimized") or case.name.endswith("cleaned"):
        return instants[-2:-1]
    return instants[:-1]
