"""Commands that change tables: a dry run changes nothing, and what cannot be undone is asked about."""

import sys
from pathlib import Path

import pytest

from hoodie.storage.local import LocalStorage
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.compacting import AFTER_SECOND, notes, opened, schedule
from support.instants import aged
from support.lake import Terminal, files_of
from support.trips import TRIPS, rows

KEEP_ONE = ["--option", "hoodie.cleaner.commits.retained=1"]


@pytest.fixture
def dirty(lake: Path, hoodie: Terminal) -> Path:
    """A table with older file versions, which a clean that keeps one commit deletes."""
    storage = LocalStorage(lake / "a")
    schedule(storage)
    hoodie("compaction", "run", lake / "a", "--engine", "local")
    table = opened(storage)
    table.upsert(table.snapshot().select(["id", "city", "ts", "note"]), {"hoodie.clean.automatic": False})
    return lake / "a"


def at_terminal(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda prompt="": answer.strip())


IRREVERSIBLE = [
    ["clean"],
    ["archive"],
    ["expire", "--option", "hoodie.partition.ttl.strategy.days.retain=1"],
    ["rollback"],
    ["restore", "--savepoint", "20260101000000000"],
    ["savepoint", "delete", "--savepoint", "20260101000000000"],
]


@pytest.mark.parametrize("words", IRREVERSIBLE, ids=" ".join)
def test_what_cannot_be_undone_is_refused_without_a_terminal(lake: Path, hoodie: Terminal, words: list[str]) -> None:
    before = files_of(lake)
    _, err = hoodie.both(*words, lake / "a", status=2)
    assert "cannot be undone" in err
    assert "--yes" in err
    assert files_of(lake) == before
    assert hoodie.document(*words, lake / "a", status=2)["error"]["type"] == "UsageError"


def test_a_dry_run_of_a_clean_names_what_the_clean_deletes(dirty: Path, hoodie: Terminal) -> None:
    before = files_of(dirty)
    would = hoodie.result("clean", dirty, "--dry-run", *KEEP_ONE)
    assert would["dry_run"]
    assert would["files"]
    assert files_of(dirty) == before
    done = hoodie.result("cleans", "run", dirty, "--yes", *KEEP_ONE)
    assert sorted(done["files"]) == sorted(would["files"])
    assert not any((dirty / name).exists() for name in done["files"])
    assert done["instant"]
    assert notes(LocalStorage(dirty)) == AFTER_SECOND


@pytest.mark.parametrize(("answer", "status"), [("n", 3), ("y", 0)])
def test_at_a_terminal_it_is_shown_and_asked(
    dirty: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch, answer: str, status: int
) -> None:
    before = files_of(dirty)
    at_terminal(monkeypatch, answer + "\n")
    _, err = hoodie.both("clean", dirty, *KEEP_ONE, status=status)
    assert "would delete" in err
    assert (files_of(dirty) == before) is (answer == "n")


def test_nothing_is_asked_where_there_is_nothing_to_do(
    lake: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch, "")
    assert hoodie("clean", lake / "a") == ["nothing to clean"]
    assert hoodie("archive", lake / "a") == ["nothing to archive"]


def test_archive_moves_old_instants(dirty: Path, hoodie: Terminal) -> None:
    few = ["--option", "hoodie.keep.min.commits=1", "--option", "hoodie.keep.max.commits=2"]
    few += ["--option", "hoodie.compact.inline.max.delta.commits=1", *KEEP_ONE]
    hoodie("clean", dirty, "--yes", *KEEP_ONE)
    before = files_of(dirty)
    would = hoodie.result("archive", dirty, "--dry-run", *few)
    assert would["instants"]
    assert files_of(dirty) == before
    done = hoodie.result("trigger", "archival", dirty, "--yes", *few)
    assert done["instants"] == would["instants"]
    assert (dirty / done["file"]).exists()
    left = hoodie.result("history", dirty)["instants"]
    every = hoodie.result("history", dirty, "--archived")["instants"]
    assert len(every) - len(left) == len(done["instants"])


def test_expire_deletes_partitions_that_nobody_wrote_to_for_long(tmp_path: Path, hoodie: Terminal) -> None:
    storage = MemoryStorage()
    table = ArrowTable.create(storage, TRIPS)
    old = table.upsert(rows("a", city="oslo")).instant
    table.upsert(rows("b", city="rome"))
    for path, data in aged(storage, [old], 40).snapshot().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    days = ["--option", "hoodie.partition.ttl.strategy.days.retain=30"]
    assert hoodie.result("expire", tmp_path, "--dry-run", *days)["partitions"] == ["oslo"]
    done = hoodie.result("expire", tmp_path, "--yes", *days)
    assert done["partitions"] == ["oslo"]
    assert hoodie.result("history", tmp_path)["instants"][0]["instant"] == done["instant"]
    assert hoodie("expire", tmp_path, "--yes", *days)[0].startswith("no partition was last written before")


@pytest.mark.parametrize("mistyped", ["2026-01-31", "20260131120000000.commit", "2026O131120000000"])
def test_an_instant_that_is_mistyped_is_not_a_table(lake: Path, hoodie: Terminal, mistyped: str) -> None:
    """The newest commit of the others would be taken back."""
    before = files_of(lake)
    _, err = hoodie.both("rollback", lake / "a", mistyped, "--yes", status=2)
    assert f"{mistyped!r} is neither an instant" in err
    assert files_of(lake) == before
    (lake / "tables.txt").write_text(f"{lake / 'a'}\n")
    hoodie("rollback", "--from", lake / "tables.txt", mistyped, "--yes", status=2)


def test_an_instant_may_stand_before_a_list_of_tables(lake: Path, hoodie: Terminal) -> None:
    before = files_of(lake)
    (lake.parent / "tables.txt").write_text(f"{lake / 'a'}\n{lake / 'b'}\n")
    document = hoodie.document("rollback", "20200101000000000", "--from", lake.parent / "tables.txt", "--yes", status=3)
    assert [table["error"]["type"] for table in document["tables"]] == ["InstantNotFound", "InstantNotFound"]
    assert files_of(lake) == before


def test_rollback_takes_the_newest_commit_back(lake: Path, hoodie: Terminal) -> None:
    storage, before = LocalStorage(lake / "a"), files_of(lake / "a")
    newest = hoodie.result("show", lake / "a")["last"]["instant"]
    would = hoodie.result("rollback", lake / "a", "--dry-run")
    assert (would["target"], would["instant"]) == (newest, "")
    assert files_of(lake / "a") == before
    done = hoodie.result("rollback", lake / "a", newest, "--yes")
    assert done["target"] == newest
    assert (done["deletes"], done["undoes"]) == (would["deletes"], would["undoes"])
    assert notes(storage) == {**AFTER_SECOND, "x": "deleted"}
    hoodie("rollback", lake / "a", newest, "--yes", status=3)


def test_restore_goes_back_to_a_savepoint(lake: Path, hoodie: Terminal) -> None:
    storage = LocalStorage(lake / "a")
    saved = hoodie.result("savepoint", "create", lake / "a")["instant"]
    opened(storage).upsert(opened(storage).snapshot().select(["id", "city", "ts", "note"]).slice(0, 1))
    before = files_of(lake / "a")
    would = hoodie.result("restore", lake / "a", saved, "--dry-run")
    assert len(would["instants"]) == 1
    assert files_of(lake / "a") == before
    done = hoodie.result("savepoint", "rollback", "--savepoint", saved, lake / "a", "--yes")
    assert done["instants"] == would["instants"]
    assert done["instant"]
    assert notes(storage) == AFTER_SECOND
    hoodie("restore", lake / "a", status=2)


def test_a_dry_run_of_a_compactor_runs_nothing(lake: Path, hoodie: Terminal) -> None:
    planned = schedule(LocalStorage(lake / "a"))
    before = files_of(lake / "a")
    for named, instants in (((), [planned]), (("--instant", planned), [planned]), (("--instant", "20240101"), [])):
        shown = hoodie.result("compaction", "run", lake / "a", "--dry-run", *named)
        assert [plan["instant"] for plan in shown["plans"]] == instants
    assert files_of(lake / "a") == before
    done = hoodie.document("compact", "run", lake / "a", lake / "b", "--engine", "local")
    first, second = (table["result"]["runs"] for table in done["tables"])
    assert [(run["instant"], run["slices"], run["problem"]) for run in first] == [(planned, 2, "")]
    assert second == []
    (line,) = hoodie("compaction", "run", lake / "a", "--engine", "local")
    assert line.startswith("nothing to do")


def test_a_compactor_tells_of_a_failed_plan_in_its_document(lake: Path, hoodie: Terminal) -> None:
    planned = schedule(LocalStorage(lake / "a"))
    next((lake / "a" / "rome").glob(".*.log.*")).unlink()
    done = hoodie.document("compaction", "run", lake / "a", lake / "b", "--engine", "local", status=3)
    (run,) = done["tables"][0]["result"]["runs"]
    assert run["instant"] == planned
    assert "missing" in run["problem"]
    assert [table["status"] for table in done["tables"]] == [3, 0]
    assert run["error"] == "InvalidPlan"
    assert done["tables"][0]["error"] == {"type": run["error"], "message": run["problem"]}
    assert done["tables"][1]["error"] is None


def test_the_doctor_repairs_only_with_yes(lake: Path, hoodie: Terminal) -> None:
    marker = lake / "a" / "oslo" / ".hoodie_partition_metadata"
    marker.unlink()
    before = files_of(lake)
    for words in (["--repair"], ["--repair", "--yes", "--dry-run"]):
        found = hoodie.result("doctor", lake / "a", *words, status=1)
        assert found["dry_run"]
        assert found["repaired"] == ["restore the partition's .hoodie_partition_metadata: oslo"]
        assert files_of(lake) == before
    done = hoodie.result("doctor", lake / "a", "--repair", "--yes")  # all is mended: status 0
    assert not done["dry_run"]
    assert (done["healthy"], len(done["findings"]), done["open"]) == (True, 1, [])
    assert marker.exists()
    assert hoodie.result("doctor", lake / "a")["findings"] == []


def test_a_repair_says_what_it_did_and_what_is_left(lake: Path, hoodie: Terminal) -> None:
    for name in ("a", "b"):
        (lake / name / "oslo" / ".hoodie_partition_metadata").unlink()
    next((lake / "b" / "rome").glob(".*.log.*")).unlink()
    lines = hoodie("doctor", f"{lake}/*", "--quick", "--repair", "--yes", status=1)
    rows = {Path(line.split()[0]).name: " ".join(line.split()[1:]) for line in lines[1:3]}
    assert rows == {"a": "yes 0 0 0 1 mended", "b": "no 1 0 0 missing file; 1 mended"}
    first = lines[lines.index(f"== {lake}/a") : lines.index(f"== {lake}/b")]
    assert first[-4:] == [
        "Done:",
        "  restore the partition's .hoodie_partition_metadata: oslo",
        "",
        "All of it is mended.",
    ]
    second = lines[lines.index(f"== {lake}/b") :]
    assert second[second.index("Left for a person:") + 1].startswith("  ERROR missing file: rome/")
    assert len(hoodie("doctor", lake / "a", "--repair", "--yes")) == 1  # healthy: nothing is done


def test_a_compactor_passes_over_a_table_that_is_not_there(lake: Path, hoodie: Terminal) -> None:
    planned = schedule(LocalStorage(lake / "b"))
    done = hoodie.document("compaction", "run", lake / "nowhere", lake / "b", "--engine", "local", status=3)
    first, second = (table["result"]["runs"] for table in done["tables"])
    assert "no table here" in first[0]["problem"]
    assert done["tables"][0]["error"] == {"type": "TableNotFound", "message": first[0]["problem"]}
    assert [run["instant"] for run in second] == [planned]


def test_a_compactor_without_pyspark_says_so(lake: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule(LocalStorage(lake / "a"))
    monkeypatch.setitem(sys.modules, "pyspark", None)
    for module in [name for name in sys.modules if name.startswith("hoodie.spark")]:
        monkeypatch.delitem(sys.modules, module)
    _, err = hoodie.both("compaction", "run", lake / "a", status=3)
    assert "PySpark is not installed here: take --engine local" in err


def test_index_show_names_the_index_and_why(lake: Path, hoodie: Terminal) -> None:
    assert hoodie.result("index", "show", lake / "a") == {"index": "SIMPLE", "is_global": False, "why": "the default"}
    named = hoodie.result("index", "show", lake / "a", "--option", "hoodie.index.type=GLOBAL_SIMPLE")
    assert (named["index"], named["is_global"]) == ("GLOBAL_SIMPLE", True)


def test_upgrade_says_what_it_would_do_and_does_it(dirty: Path, hoodie: Terminal) -> None:
    rows = hoodie.result("query", dirty)
    would = hoodie.result("upgrade", dirty, "--to", "9", "--dry-run")
    assert (would["before"], would["version"], would["dry_run"]) == (6, 9, True)
    assert hoodie.result("info", dirty)["version"] == 6
    done = hoodie.result("upgrade", dirty, "--to", "9", "--yes")
    assert done["steps"] == would["steps"]
    assert hoodie.result("query", dirty) == rows
    assert hoodie("upgrade", dirty, "--to", "9", "--yes")[0] == "the table has version 9 already"


def test_downgrade_says_what_it_would_do_and_does_it(dirty: Path, hoodie: Terminal) -> None:
    hoodie.result("upgrade", dirty, "--to", "9", "--yes")
    would = hoodie.result("downgrade", dirty, "--to", "6", "--dry-run")
    assert (would["before"], would["version"], would["dry_run"]) == (9, 6, True)
    assert would["settings"]["hoodie.table.version"] == "6"
    done = hoodie.result("downgrade", dirty, "--to", "6", "--yes")
    assert done["steps"] == would["steps"]
    assert hoodie("downgrade", dirty, "--to", "6", "--yes")[0] == "the table has version 6 already"
