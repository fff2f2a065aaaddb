"""The real Hudi reads tables that the library wrote: each view has the library's rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

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


def _instants(case: Case, view: str, instants: Sequence[str]) -> Sequence[str]:
    """Those from which a view is asked: of ranges and earlier states all that are still there."""
    if view in ("snapshot", "read_optimized") or case.name.endswith("cleaned"):
        return instants[-2:-1]
    return instants[:-1]
