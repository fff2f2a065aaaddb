"""What a command costs before it does anything: what it imports."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("pyspark", "pyarrow", "pandas", "numpy", "fastavro", "fsspec", "rich", "tenacity", "asyncio")

_LOADED = """
import json, sys
from hoodie.cli.main import main
status = main(sys.argv[1:])
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
raise SystemExit(status)
"""


def loaded_by(*words: object) -> list[str]:
    """The modules that a process has imported at the end of a command."""
    ran = subprocess.run([sys.executable, "-c", _LOADED, *map(str, words)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    loaded: list[str] = json.loads(ran.stderr.splitlines()[-1])
    return loaded


def heavy(modules: list[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} & set(HEAVY)


@pytest.mark.parametrize("words", [["ls"], ["show"], ["history"], ["metadata"]], ids=" ".join)
def test_looking_at_a_timeline_imports_nothing_heavy(lake: Path, words: list[str]) -> None:
    loaded = loaded_by(*words, lake / "a")
    assert not heavy(loaded)
    assert len(loaded) < 300  # about 205, an interpreter's own 60 among them: 0.2 s of processor time


@pytest.mark.parametrize("words", [["--help"], ["compaction", "run", "--help"]], ids=" ".join)
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    assert not heavy(loaded_by(*words))


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
