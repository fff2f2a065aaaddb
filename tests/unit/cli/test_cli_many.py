"""Many tables at once: globs, files of paths, threads, the summary and the exit status."""

import errno
import io
import json
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from hoodie.cli.calls import Call, Target
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Entry
from hoodie.table import properties
from support.lake import Terminal, unpacked


def test_a_glob_stands_for_the_tables_that_match(lake: Path, hoodie: Terminal) -> None:
    found = hoodie.document("show", f"{lake}/*")
    assert [table["path"] for table in found["tables"]] == [str(lake / "a"), str(lake / "b")]
    assert found["summary"] | {"seconds": 0} == {"tables": 2, "fine": 2, "found": 0, "failed": 0, "seconds": 0}
    _, err = hoodie.both("show", f"{lake}/x*", status=2)
    assert f"no table matches {lake}/x*" in err


def test_a_folder_that_may_not_be_looked_into_does_not_keep_others_from_it(
    lake: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = lake / "lost+found"
    closed.mkdir()
    (lake / "a_file").mkdir()
    (lake / "a_file" / ".hoodie").write_text("")
    whole = LocalStorage.list
    existing = LocalStorage.exists

    def refuse(storage: LocalStorage, path: str) -> None:
        if f"{storage.root}/{path}".startswith(str(closed)):
            raise PermissionError(errno.EACCES, "Permission denied", str(closed))

    def listed(storage: LocalStorage, path: str = "") -> Sequence[Entry]:
        refuse(storage, path)
        return whole(storage, path)

    def exists(storage: LocalStorage, path: str) -> bool:
        refuse(storage, path)
        return existing(storage, path)

    monkeypatch.setattr(LocalStorage, "list", listed)
    monkeypatch.setattr(LocalStorage, "exists", exists)
    shown = hoodie.document("show", f"{lake}/*", status=3)
    paths = [str(lake / name) for name in ("a", "b", "lost+found")]
    assert [(table["path"], table["status"]) for table in shown["tables"]] == list(zip(paths, (0, 0, 3), strict=True))
    lines = hoodie.result("ls", lake)["tables"]
    assert [line["path"] for line in lines] == paths
    assert "Permission denied" in lines[2]["problem"]


def test_a_glob_works_on_a_store_that_fsspec_has_a_driver_for(lake: Path, hoodie: Terminal) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.put(str(lake), "/cli-glob", recursive=True)
    found = hoodie.document("show", "memory://cli-glob/*")
    assert [table["path"] for table in found["tables"]] == ["memory://cli-glob/a", "memory://cli-glob/b"]
    assert [line["path"] for line in hoodie.result("ls", "memory://cli-glob")["tables"]] == [
        "memory://cli-glob/a",
        "memory://cli-glob/b",
    ]


def test_a_number_sign_within_a_path_is_no_comment_and_any_editor_may_have_saved_the_file(
    lake: Path, tmp_path: Path, hoodie: Terminal
) -> None:
    paths = [str((lake / name).rename(lake / other)) for name, other in (("a", "a#1"), ("b", "b ü"))]
    (tmp_path / "tables.txt").write_text(f"\ufeff{paths[0]} # the first\r\n#{lake}\r\n{paths[1]}\r\n", "utf-8")
    found = hoodie.document("show", "--from", tmp_path / "tables.txt")
    assert [table["path"] for table in found["tables"]] == paths


def test_paths_come_from_a_file_and_from_standard_input(
    lake: Path, tmp_path: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"# tables\n{lake}/a   # the first\n\n{lake}/b\n{lake}/a\n"
    (tmp_path / "tables.txt").write_text(text)
    paths = [str(lake / name) for name in ("a", "b")]
    found = hoodie.document("show", "--from", tmp_path / "tables.txt")
    assert [table["path"] for table in found["tables"]] == paths
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert [table["path"] for table in hoodie.document("show", "--from", "-")["tables"]] == paths
    _, err = hoodie.both("show", status=2)
    assert "no table: give a path" in err


def test_a_table_that_fails_does_not_stop_the_others(lake: Path, hoodie: Terminal) -> None:
    (lake / "a" / ".hoodie" / "hoodie.properties").unlink()
    out, err = hoodie.both("show", lake / "a", lake / "b", status=3)
    assert err.startswith(f"hoodie: {lake}/a: ")
    assert len(err.splitlines()) == 1
    assert f"== {lake}/b\ntable             trips" in out
    assert out.splitlines()[-1].startswith("== 2 tables: 1 fine, 1 failed (")
    found = hoodie.document("show", lake / "a", lake / "b", status=3)
    assert [table["status"] for table in found["tables"]] == [3, 0]
    assert found["tables"][0]["error"]["type"] == "SettingsMissing"
    assert found["tables"][0]["result"] is None


def test_the_exit_status_is_that_of_the_worst_table(lake: Path, tmp_path: Path, hoodie: Terminal) -> None:
    assert hoodie.document("doctor", lake / "a", lake / "b")["summary"]["found"] == 0
    next((lake / "b" / "rome").glob(".*.log.*")).unlink()
    found = hoodie.document("doctor", f"{lake}/*", status=1)
    assert [table["status"] for table in found["tables"]] == [0, 1]
    assert [table["result"]["healthy"] for table in found["tables"]] == [True, False]
    out, _ = hoodie.both("doctor", f"{lake}/*", status=1)
    assert "2 tables: 1 fine, 1 with findings" in out
    hoodie("doctor", lake / "b", tmp_path / "nowhere", status=3)


def test_tables_are_worked_on_at_once(lake: Path) -> None:
    both = threading.Barrier(2, timeout=20)

    def work(target: Target) -> int:
        return both.wait()  # ends only if both are at it

    call = Call("test", (str(lake / "a"), str(lake / "b")), jobs=2)
    assert sorted(outcome.result for outcome in call.run(work)) == [0, 1]


def test_warnings_stand_with_their_table(lake: Path, tmp_path: Path, hoodie: Terminal) -> None:
    (lake / "a" / "oslo" / ".hoodie_partition_metadata").unlink()
    found = hoodie.document("stats", lake / "a", lake / "b")
    first, second = (table["warnings"] for table in found["tables"])
    assert len(first) == 1
    assert "partition 'oslo' has lost its .hoodie_partition_metadata" in first[0]
    assert second == []


def test_an_instant_may_be_the_last_argument_of_many_tables(lake: Path, hoodie: Terminal) -> None:
    made = hoodie.document("savepoint", "create", f"{lake}/*", "--comment", "nightly", "--user", "ops")
    instant = made["tables"][0]["result"]["instant"]
    assert [table["result"]["user"] for table in made["tables"]] == ["ops", "ops"]
    gone = hoodie.document("savepoint", "delete", f"{lake}/*", instant, "--yes")
    assert [table["result"] for table in gone["tables"]] == [{"instant": instant, "dry_run": False}] * 2
    assert hoodie.result("savepoints", "show", lake / "a") == {"savepoints": []}


def test_one_list_of_tables_serves_all_commands_of_cron(lake: Path, hoodie: Terminal) -> None:
    unpacked("cow_savepoint", lake)
    made = hoodie.document(
        "compaction", "schedule", f"{lake}/*", "--option", "hoodie.compact.inline.max.delta.commits=1"
    )
    planned = [table["result"] for table in made["tables"]]
    assert [bool(result["instant"]) for result in planned] == [True, True, False]
    assert planned[2]["why"] == "a Copy-on-Write table has no logs"
    hoodie("compaction", "run", f"{lake}/*", "--engine", "local")


def test_folders_with_data_and_no_table_are_mentioned(lake: Path, hoodie: Terminal) -> None:
    for folder in ("plain/city=oslo", "plain/city=rome", "delta/_delta_log", "delta/city=oslo"):
        (lake / folder).mkdir(parents=True)
    (lake / "plain/city=oslo/x.parquet").write_bytes(b"PAR1")
    (lake / "plain/city=rome/x.parquet").write_bytes(b"PAR1")
    (lake / "delta/city=oslo/x.parquet").write_bytes(b"PAR1")
    found = hoodie.result("ls", lake)
    assert [Path(line["path"]).name for line in found["tables"]] == ["a", "b"]
    others = {line["path"]: line["holds"] for line in found["others"]}
    assert others == {f"{lake}/delta": "a Delta table", f"{lake}/plain": "Parquet files"}
    lines = [f"{lake}/delta holds a Delta table and is no Hudi table", f"{lake}/plain holds Parquet files"]
    assert hoodie("ls", lake)[-2:] == [lines[0], f"{lines[1]} and is no Hudi table"]
    out, err = hoodie.both("show", f"{lake}/*", "--json")
    assert json.loads(out)["summary"]["tables"] == 2
    assert err.splitlines() == [f"hoodie: left out: {lines[0]}", f"hoodie: left out: {lines[1]} and is no Hudi table"]
    assert lines[1] in hoodie.both("show", f"{lake}/p*", status=2)[1]


def test_a_partition_is_listed_as_a_part_of_its_table(lake: Path, hoodie: Terminal) -> None:
    part = f"holds a part of the Hudi table that should be at {lake / 'a'} and is no Hudi table"
    assert hoodie("ls", lake / "a" / "oslo") == ["no tables", f"{lake / 'a' / 'oslo'} {part}"]


def test_damaged_settings_cost_one_retry(lake: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(properties.load_properties, "__defaults__", (slept.append,))
    (lake / "a" / ".hoodie" / "hoodie.properties").write_text("hoodie.table.version=6\n")
    hoodie("stats", f"{lake}/*", status=3)
    assert slept == [1.0]


def test_real_tables_of_every_kind_are_looked_at(tmp_path: Path, hoodie: Terminal) -> None:
    for name in ("cow_savepoint", "cow_types", "mor_pending_compaction"):
        unpacked(name, tmp_path)
    for words in (["show"], ["history"], ["files"], ["stats"], ["metadata"], ["query"], ["doctor", "--quick"]):
        found = hoodie.document(*words, f"{tmp_path}/*")
        assert found["summary"]["fine"] == 3, (words, found)
        assert json.dumps(found)
