"""The library and the real Hudi carry out the same random history: after each commit both have the same rows.

`HISTORIES=20 make engines ARGS=-mengines\\ -k\\ histories` runs more seeds than the usual two.
"""

import os
from pathlib import Path

import pytest

import hoodie
from support.engine_cases import Case, comparable, read
from support.engine_histories import histories
from support.hudi_engine import HudiEngine

_STEPS = 30
_SEEDS = range(1, 1 + int(os.environ.get("HISTORIES", "2")))
_CASES = [case for seed in _SEEDS for case in histories(seed, _STEPS)]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_both_have_the_same_rows_after_each_commit(hudi: HudiEngine, case: Case, tmp_path: Path) -> None:
    if hudi.version > "1":
        pytest.skip("the rules of rows compared are those of Hudi 0.15")
    own, theirs = tmp_path / "own", tmp_path / "theirs"
    numbers: list[str] = []
    instants: list[str] = []
    # What a pull gives of a partly set row differs on purpose: see the cases `partial` and `non_defaults`.
    pulls = not (case.merge_on_read and any(name in case.name for name in ("partial", "non_defaults")))
    for step in case.steps:
        options = {**case.options_of(step), "hoodie.metadata.enable": "false"}
        instants.append(hudi.write_step(theirs, step, options, first=not instants))
        result = hoodie.hudi.write(step.arrow(), str(own), options)
        assert result is not None
        numbers.append(result.instant)
        views = ["snapshot", *(["incremental"] if pulls and len(numbers) > 1 else [])]
        for view in views:
            rows = comparable(hudi.view(theirs, view, instants[-2:][0]), instants)
            assert comparable(read(own, view, numbers[-2:][0]), numbers) == rows, (len(numbers), step, view)
