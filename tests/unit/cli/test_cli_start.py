"""What a command costs before it does anything: imports, and the time of a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

HEAVY = ("pyspark", "pyarrow", "pandas", "numpy", "fastavro", "fsspec", "rich", "tenacity", "asyncio")

_LOADED = """
import json, sys
from hoodie.cli.main import main
status = main(sys.argv[1:])
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
raise SystemExit(status)
"""


def loaded_by(*words: object) -> set[str]:
    """The packages that a process has imported at the end of a command."""
    ran = subprocess.run([sys.executable, "-c", _LOADED, *map(str, words)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stderr.splitlines()[-1]))


@pytest.mark.parametrize("words", [["ls"], ["show"], ["history"], ["metadata"]], ids=" ".join)
def test_looking_at_a_timeline_imports_nothing_heavy(lake: Path, words: list[str]) -> None:
    assert loaded_by(*words, lake / "a").isdisjoint(HEAVY)


@pytest.mark.parametrize("words", [["--help"], ["compaction", "run", "--help"]], ids=" ".join)
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    assert loaded_by(*words).isdisjoint(HEAVY)


_ALL = """
import sys
from hoodie.cli.main import main

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j"):
            raise AssertionError(f"{name} is imported")

sys.meta_path.insert(0, Refusing())
folder, out = sys.argv[1:]
DUE = ["--option", "hoodie.compact.inline.max.delta.commits=1"]
for words in (
    ["ls"], ["show"], ["history", "--archived"], ["files"], ["stats"], ["metadata"], ["query"], ["changes"],
    ["export", "--to", out], ["clean", "--yes"], ["archive", "--yes"], ["savepoint", "create"], ["savepoint", "show"],
    ["compaction", "schedule", *DUE], ["compaction", "plan"], ["compaction", "validate"],
    ["compaction", "run", "--engine", "local"], ["doctor", "--repair", "--yes"],
):
    assert main([*words, folder]) == 0, words
commit = max(p.name.split(".")[0] for p in __import__("pathlib").Path(folder, ".hoodie").glob("*.commit"))
saved = next(p.name.split(".")[0] for p in __import__("pathlib").Path(folder, ".hoodie").glob("*.savepoint"))
for words in (["rollback", folder, commit, "--yes"], ["restore", folder, saved, "--yes"],
              ["savepoint", "delete", folder, saved, "--yes"]):
    assert main(words) == 0, words
assert "pyspark" not in sys.modules
"""


def test_no_command_but_a_compactor_on_spark_imports_pyspark(lake: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _ALL, str(lake / "a"), str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


def test_show_takes_at_most_four_tenths_of_a_second(lake: Path) -> None:
    """Of processor time, the best of some: what it takes on a machine that does nothing else."""
    command = [sys.executable, "-m", "hoodie.cli", "show", str(lake / "a")]
    subprocess.run(command, check=True, capture_output=True)  # compiles
    spent = []
    for _ in range(5):
        before, begun = os.times(), time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        after = os.times()
        processor = after.children_user + after.children_system - before.children_user - before.children_system
        spent.append(min(processor, time.perf_counter() - begun))
        if spent[-1] <= 0.4:
            return
    pytest.fail(f"it took {spent} s")
