"""A process that writes for long stays as small as its table's timeline is."""

import gc
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.model.instant import Action, Instant, State

#: Commits until what is remembered of a timeline, and its archive, has found its size; those that are counted; and the
#: last of either that are looked at: archiving and forgetting come in turns of some tens of commits.
WARM, COUNTED, TURN = 500, 500, 100
#: What one instant takes that is kept for each commit: itself and two texts.
BLOCKS = 3


def blocks_per_commit(path: Path, warm: int = WARM, counted: int = COUNTED, turn: int = TURN) -> float:
    """Blocks of memory of Python's that each commit leaves. Counts of blocks, no times: alike on any machine."""
    table = hoodie.create_table(path, record_key="id")

    def most_blocks(commits: int) -> int:
        most = 0
        for number in range(commits):
            table.upsert(pa.table({"id": [1, 2, 3], "value": [number] * 3}))
            if number >= commits - turn and number % 10 == 0:
                gc.collect()
                most = max(most, sys.getallocatedblocks())
        return most

    before = most_blocks(warm)
    return (most_blocks(counted) - before) / counted


@pytest.mark.nightly
def test_memory_does_not_grow_with_the_commits_of_a_process(tmp_path: Path) -> None:
    assert blocks_per_commit(tmp_path / "t") < BLOCKS


@pytest.mark.nightly
def test_what_is_kept_for_each_commit_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []

    class Table:
        def upsert(self, rows: pa.Table) -> None:
            # Two, so that what other tests of this process leave and free in the meantime does not decide.
            for _ in range(2):
                kept.append(Instant(str(len(kept)), Action.COMMIT, State.COMPLETED, f"{len(kept)} end"))

    monkeypatch.setattr(hoodie, "create_table", lambda path, record_key: Table())
    assert blocks_per_commit(tmp_path / "t") > BLOCKS
