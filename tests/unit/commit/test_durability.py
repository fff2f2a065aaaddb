"""What is on disk when a power failure comes: no data file whose write the timeline and its marker do not tell, no
commit without its data files, and a commit once its call has returned."""

import os
import posixpath
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie import create_table


class Names:
    """The names that calls give and take below a folder, and those among them that may not be on disk: no sync of
    their folder has begun since, for each name as it is given."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root, self.unsynced = str(root), set[str]()
        self.given: list[tuple[str, frozenset[str]]] = []
        self._handles: dict[int, str] = {}
        calls = {"link": os.link, "replace": os.replace, "mkdir": os.mkdir, "open": os.open, "fsync": os.fsync}
        calls["unlink"] = os.unlink
        for name, call in calls.items():
            patch.setattr(os, name, lambda *a, name=name, call=call, **k: self._call(name, call, *a, **k))

    def _call(self, name: str, call: Any, *given: Any, **more: Any) -> Any:
        result = call(*given, **more)
        if name == "fsync":
            folder = os.readlink(f"/proc/self/fd/{given[0]}")
            self.unsynced = {path for path in self.unsynced if posixpath.dirname(path) != folder}
        elif name == "unlink":
            self.given.append((f"{given[0]} deleted", frozenset(self.unsynced)))
        elif name != "open" or given[1] & os.O_CREAT:
            path = str(given[0] if name in ("open", "mkdir") else given[1])
            if path.startswith(self.root) and not path.endswith(".tmp"):
                self.given.append((path[len(self.root) + 1 :], frozenset(self.unsynced)))
                self.unsynced.add(path)
        return result

    def pending_at(self, ending: str) -> set[str]:
        """The endings of names that were not on disk as each of some files got its own."""
        return {path.rpartition(".")[2] for name, unsynced in self.given if name.endswith(ending) for path in unsynced}


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="tells folders by their handles")
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_what_a_file_relies_on_is_on_disk_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    table = create_table(tmp_path / "t", record_key="id", partition_by="city", table_type=kind)
    names = Names(tmp_path, monkeypatch)
    options = {"hoodie.cleaner.commits.retained": "1", "hoodie.spark.driver.threads": "1"}
    for number in range(4):
        table.upsert(pa.table({"id": [1, 2], "city": ["oslo", "rome"], "v": [number] * 2}), options=options)
        assert not [path for path in names.unsynced if path.endswith("commit")]
    # Other data files of the same write may be pending, and the end of the clean before it, which the next one repeats.
    later = {"parquet", "clean"}
    for ending in (".parquet", ".commit", ".deltacommit", ".parquet deleted"):
        assert names.pending_at(ending) <= later
    ends = ("CREATE", "deltacommit") if kind == "MERGE_ON_READ" else ("CREATE", "MERGE", ".commit", ".parquet deleted")
    assert all(any(name.endswith(end) for name, _ in names.given) for end in ends)
