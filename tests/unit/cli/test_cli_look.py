"""Commands that look at tables: what they say is what is on the timeline and on storage."""

from importlib import metadata
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie import open_table
from hoodie.cli.main import main
from hoodie.errors import SettingsMissing
from hoodie.hudi import write
from hoodie.storage.local import LocalStorage
from hoodie.table import properties
from hoodie.table.state import load_state
from hoodie.testing.tables import ArrowTable
from support.compacting import OPTIONS, schedule
from support.lake import Terminal, unpacked


def instants(path: Path) -> list[str]:
    return [instant.requested for instant in load_state(LocalStorage(path)).timeline.commits]


def test_ls_lists_tables_at_any_depth_and_no_other_folder(lake: Path, hoodie: Terminal) -> None:
    found = hoodie.result("ls", lake.parent)["tables"]
    assert [(line["path"], line["name"], line["commits"]) for line in found] == [
        (str(lake / name), "trips", 3) for name in ("a", "b")
    ]
    assert found[0]["newest"] == instants(lake / "a")[-1]
    assert hoodie("ls", lake.parent, "--depth", "0") == ["no tables"]
    assert hoodie("ls", lake, "--depth", "9" * 18) == hoodie("ls", lake)  # it ends with the folders
    assert hoodie.result("ls", lake / "a")["tables"][0]["path"] == str(lake / "a")
    hoodie("ls", lake / "nowhere", status=3)


def test_ls_names_a_damaged_table_and_goes_on(lake: Path, hoodie: Terminal) -> None:
    (lake / "a" / ".hoodie" / "hoodie.properties").write_text("hoodie.table.name=trips\nhoodie.table.version=x\n")
    first, second = hoodie.result("ls", lake)["tables"]
    assert "hoodie.table.version" in first["problem"]
    assert second["problem"] == ""
    grid, problem = hoodie("ls", lake)[1:], hoodie("ls", lake)[-1]
    assert grid[0].endswith(str(lake / "a"))
    assert problem.startswith(f"{lake / 'a'}: .hoodie/hoodie.properties: ")


def test_an_error_without_a_way_out_names_the_command_that_has_it(lake: Path, hoodie: Terminal) -> None:
    (commit, *_) = sorted((lake / "a" / ".hoodie").glob("*commit"))
    commit.write_text("{")
    (failed, _) = hoodie.document("history", f"{lake}/*", status=3)["tables"]
    assert failed["error"]["message"].endswith("`hoodie check` says what to do about it.")


def test_a_table_that_lost_its_settings_is_listed_and_matched(
    lake: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(properties, "_ROUNDS", 1)
    (lake / "a" / ".hoodie" / "hoodie.properties").unlink()
    first, second = hoodie.result("ls", lake)["tables"]
    assert "lost its settings" in first["problem"]
    assert second["problem"] == ""
    with pytest.raises(SettingsMissing):
        open_table(lake / "a")
    with pytest.raises(SettingsMissing):  # and makes no other table over it
        write(pa.table({"id": [1]}), str(lake / "a"), {"hoodie.datasource.write.recordkey.field": "id"})
    hoodie("show", f"{lake}/*", status=3)


def test_a_misspelt_command_is_named_with_a_close_one(hoodie: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chek", "x"]) == 2
    assert "there is no command 'chek': did you mean check?" in capsys.readouterr().err
    assert main(["frobnicate"]) == 2
    assert "did you mean" not in capsys.readouterr().err


def test_show_says_what_a_table_is(lake: Path, hoodie: Terminal) -> None:
    found = hoodie.result("show", lake / "a")
    assert (found["name"], found["type"], found["record_key"]) == ("trips", "MERGE_ON_READ", ["id"])
    assert [column["name"] for column in found["columns"]] == ["id", "city", "ts", "note"]
    assert [column["type"] for column in found["columns"]] == ["string", "string", "long", "string"]
    assert any("ts bigint" in line for line in hoodie("show", lake / "a"))
    first, *_, last = instants(lake / "a")
    assert (found["first"], found["last"]["instant"], found["last"]["deleted"]) == (first, last, 1)
    assert found["cannot_write"] == found["cannot_read"] == ""
    schedule(LocalStorage(lake / "a"))
    hoodie("savepoint", "create", lake / "a")
    found = hoodie.result("desc", lake / "a")
    assert [(line["action"], line["state"]) for line in found["pending"]] == [("compaction", "REQUESTED")]
    assert found["savepoints"] == [last]
    assert any(line.startswith("type") and "MERGE_ON_READ, version 6" in line for line in hoodie("show", lake / "a"))


def test_show_names_the_partitions_of_a_metadata_table(tmp_path: Path, hoodie: Terminal) -> None:
    path = unpacked("cow_metadata_table", tmp_path)
    found = hoodie.result("show", path)
    assert found["cannot_read"] == ""
    assert found["cannot_write"] == ""
    assert found["metadata"] == ["column_stats", "files", "record_index"]
    kept = hoodie.result("metadata", path)
    assert kept["exists"]
    assert [(part["name"], part["state"]) for part in kept["partitions"]] == [
        (name, "ready") for name in found["metadata"]
    ]
    assert all(part["bytes"] > 0 for part in kept["partitions"])
    assert kept["behind"] == 0


def test_the_metadata_table_is_listed_and_compared_with_the_storage(tmp_path: Path, hoodie: Terminal) -> None:
    path = unpacked("cow_metadata_table", tmp_path)
    listed = hoodie.result("metadata", "list", path)
    assert listed["columns"] == ["partition", "file", "size"]
    for partition, file, size in listed["rows"]:
        assert (path / partition / file).stat().st_size == int(size)
    entries = hoodie.result("metadata", "list", path, "--of", "record_index", "--limit", "3")
    assert (len(entries["rows"]), entries["total"]) == (3, 190)
    whole = hoodie.result("metadata", "validate", path)
    assert whole == {"exists": True, "records": {"column_stats": 99, "files": 12, "record_index": 190}, "problems": []}

    gone, other = sorted(path.glob("2024-*/*.parquet"))[:2]
    gone.unlink()
    other.write_bytes(other.read_bytes() + b"x")
    found = hoodie.result("metadata", "validate", path, status=1)
    assert len(found["problems"]) == 2
    assert f"{gone.parent.name}/{gone.name} is in files, and not on the storage" in found["problems"]
    assert not hoodie.result("metadata", "validate", unpacked("cow_types", tmp_path))["exists"]


def test_a_metadata_table_is_measured(tmp_path: Path, hoodie: Terminal) -> None:
    path = unpacked("cow_metadata_table", tmp_path)
    folder = path / ".hoodie" / "metadata"
    stats = hoodie.result("metadata", "stats", path)
    assert (stats["exists"], stats["problem"], stats["behind"], stats["compacted"]) == (True, "", [], "")
    assert stats["newest"] == instants(path)[-1]
    assert stats["delta_commits"] == len(list((folder / ".hoodie").glob("*.deltacommit")))
    for part in stats["partitions"]:
        stored = [file.stat().st_size for file in (folder / part["name"]).iterdir() if file.name[-4:] != ".crc"]
        metafile = (folder / part["name"] / ".hoodie_partition_metadata").stat().st_size
        assert part["base_bytes"] + part["log_bytes"] + part["older_bytes"] + metafile == sum(stored)
        assert part["base_files"] + part["log_files"] + part["older_files"] + 1 == len(stored)
    entries = {part["name"]: part["base_entries"] + part["log_entries"] for part in stats["partitions"]}
    assert entries["column_stats"] >= 99
    assert entries["record_index"] >= 190
    lines = hoodie("metadata", "stats", path)
    assert lines[:2] == [f"newest instant  {stats['newest']}", "behind          no"]
    assert hoodie("metadata", "stats", unpacked("cow_types", tmp_path)) == ["no metadata table that readers use"]


def test_measuring_a_metadata_table_tells_why_it_is_of_no_use(tmp_path: Path, hoodie: Terminal) -> None:
    path = unpacked("cow_metadata_table", tmp_path)
    folder = path / ".hoodie" / "metadata"
    log = max((folder / "column_stats").glob(".*.log.*_*"), key=lambda file: file.stat().st_size)
    log.write_bytes(log.read_bytes()[:-3])
    stats = hoodie.result("metadata", "stats", path, status=1)
    assert [part["name"] for part in stats["partitions"] if part["problem"]] == ["column_stats"]
    validated = hoodie.result("metadata", "validate", path, status=1)
    assert validated["records"] == {"files": 12, "record_index": 190}
    (problem,) = validated["problems"]
    assert problem.startswith(f"column_stats cannot be read: column_stats/{log.name}")
    (newest,) = (folder / ".hoodie").glob(f"{stats['newest']}.deltacommit")
    newest.unlink()
    assert hoodie.result("metadata", path)["behind"] == 1
    stats = hoodie.result("metadata", "stats", path, status=1)
    assert stats["behind"] == [newest.name.split(".")[0]]
    assert "it is behind: 1 instants" in stats["problem"]
    lines = hoodie.both("metadata", "stats", path, status=1)[0]
    assert f"readers do not use it: {stats['problem']}" in lines
    later = folder / ".hoodie" / f"{'2' * 17}.deltacommit"  # of an action that is nothing to the table
    later.write_bytes(next((folder / ".hoodie").glob("*.deltacommit")).read_bytes())
    assert hoodie.result("metadata", path)["behind"] == 1
    for file in (folder / ".hoodie").glob("*.deltacommit"):
        file.unlink()
    assert hoodie.result("metadata", "stats", path, status=1)["problem"] == "it has no completed instant"
    settings = folder / ".hoodie" / f"{'9' * 17}.what"
    settings.write_bytes(b"")
    assert "9.what" in "".join(hoodie.both("metadata", "stats", path, status=3))


def test_a_metadata_table_is_built_and_removed(tmp_path: Path, hoodie: Terminal) -> None:
    path = unpacked("cow_types", tmp_path)
    assert hoodie.result("metadata", "create", path) == {"built": True}
    assert hoodie.result("metadata", "create", path) == {"built": False}
    assert hoodie.result("metadata", "validate", path)["problems"] == []
    assert [part["name"] for part in hoodie.result("metadata", path)["partitions"]] == ["files"]
    assert hoodie.result("metadata", "drop", path, "--dry-run") == {"dropped": True, "dry_run": True}
    assert (path / ".hoodie" / "metadata").exists()
    assert hoodie.result("metadata", "drop", path, "--yes") == {"dropped": True, "dry_run": False}
    assert not (path / ".hoodie" / "metadata").exists()
    assert not hoodie.result("metadata", "validate", path)["exists"]
    assert hoodie.result("metadata", "create", path, "--with", "column_stats", "--with", "bloom_filters")["built"]
    whole = hoodie.result("metadata", "validate", path)
    assert (sorted(whole["records"]), whole["problems"]) == (["bloom_filters", "column_stats", "files"], [])
    dropped = hoodie.both("metadata", "drop", path, "--of", "column_stats", "--yes")[0]
    assert "removed: column_stats of the metadata table" in dropped
    assert [part["name"] for part in hoodie.result("metadata", path)["partitions"]] == ["bloom_filters", "files"]
    assert hoodie.result("metadata", "drop", path, "--yes")["dropped"]
    (path / ".hoodie" / "29990101000000000.commit.requested").touch()
    out, err = hoodie.both("metadata", "create", path, status=3)
    assert "commit 29990101000000000 is pending" in out + err


def test_history_tells_what_each_commit_did(lake: Path, hoodie: Terminal) -> None:
    lines = hoodie.result("history", lake / "a")["instants"]
    assert [line["instant"] for line in lines] == instants(lake / "a")[::-1]
    assert [(line["operation"], line["inserted"], line["updated"], line["deleted"]) for line in lines] == [
        ("DELETE", 0, 0, 1),
        ("UPSERT", 0, 2, 0),
        ("UPSERT", 5, 0, 0),
    ]
    newest = hoodie.result("commits", "show", lake / "a", "--limit", "1")
    assert (len(newest["instants"]), newest["more"]) == (1, 2)
    planned = schedule(LocalStorage(lake / "a"))
    assert [line["instant"] for line in hoodie.result("history", lake / "a", "--pending")["instants"]] == [planned]
    every = hoodie.result("timeline", "show", "active", lake / "a")["instants"]
    assert [line["action"] for line in every] == ["compaction", "deltacommit", "deltacommit", "deltacommit"]
    assert hoodie.result("history", lake / "a", "--action", "clean")["instants"] == []


def test_history_goes_on_in_the_archive(tmp_path: Path, hoodie: Terminal) -> None:
    path = unpacked("cow_archived", tmp_path)
    active = hoodie.result("history", path, "--limit", "0")["instants"]
    both = hoodie.result("commits", "showarchived", path, "--limit", "0")["instants"]
    assert both[: len(active)] == active
    archived = both[len(active) :]
    assert archived
    assert all(line["archived"] for line in archived)
    assert [line["instant"] for line in both] == sorted((line["instant"] for line in both), reverse=True)


def test_files_are_those_of_the_newest_slices(lake: Path, hoodie: Terminal) -> None:
    lines = hoodie.result("files", lake / "a")["slices"]
    assert [(line["partition"], line["logs"]) for line in lines] == [("bern", 0), ("oslo", 2), ("rome", 1)]
    for line in lines:
        assert (lake / "a" / line["partition"] / line["base"]).stat().st_size == line["base_bytes"]
    assert [line["partition"] for line in hoodie.result("files", lake / "a", "--partition", "oslo")["slices"]] == [
        "oslo"
    ]
    storage = LocalStorage(lake / "a")
    schedule(storage)
    hoodie("compaction", "run", lake / "a", "--engine", "local")
    current = hoodie.result("files", lake / "a")["slices"]
    assert [line["logs"] for line in current] == [0, 0, 0]
    every = hoodie.result("show", "fsview", "all", lake / "a")["slices"]
    assert [line for line in every if line["current"]] == current
    assert len(every) == 5


def test_stats_measure_files_and_amplification(lake: Path, hoodie: Terminal) -> None:
    found = hoodie.result("stats", lake / "a")
    sizes = [path.stat().st_size for path in (lake / "a").rglob("*.parquet")]
    logs = [path.stat().st_size for path in (lake / "a").rglob(".*.log.*")]
    assert (found["base_files"], found["base_bytes"]) == (3, sum(sizes))
    assert (found["log_files"], found["log_bytes"]) == (3, sum(logs))
    assert found["base_sizes"][0] == min(sizes)
    assert found["base_sizes"][3] == max(sizes)
    assert found["log_share"] == pytest.approx(sum(logs) / sum(sizes), abs=1e-3)
    assert found["rows_changed"] == 8
    assert (found["older_files"], found["older_bytes"]) == (0, 0)
    schedule(LocalStorage(lake / "a"))
    hoodie("compaction", "run", lake / "a", "--engine", "local")
    found = hoodie.result("stats", lake / "a")
    assert found["log_files"] == 0
    assert found["older_files"] == 5  # three logs, and the base files that they belong to
    every = [
        path.stat().st_size for path in (lake / "a").rglob("*.*") if path.suffix == ".parquet" or ".log." in path.name
    ]
    assert found["older_bytes"] == sum(every) - found["base_bytes"]


def test_metadata_masks_credentials_among_properties(lake: Path, hoodie: Terminal) -> None:
    properties = lake / "a" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text() + "hoodie.own.jdbc.password=swordfish\n")
    out, _ = hoodie.both("metadata", lake / "a")
    assert "swordfish" not in out
    assert "hoodie.own.jdbc.password=***" in out
    assert "hoodie.table.recordkey.fields=id" in out
    assert not hoodie.result("metadata", lake / "a")["exists"]


def test_an_empty_table_is_shown(tmp_path: Path, hoodie: Terminal) -> None:
    ArrowTable.create(LocalStorage(tmp_path / "t"), OPTIONS)
    found = hoodie.result("show", tmp_path / "t")
    assert (found["commits"], found["last"], found["columns"]) == (0, None, [])
    assert hoodie("history", tmp_path / "t") == ["no instants"]
    assert hoodie("files", tmp_path / "t") == ["no files"]
    assert hoodie.result("stats", tmp_path / "t")["amplification"] == 0.0
    assert hoodie("query", tmp_path / "t") == ["no rows ()"]


def test_version_names_what_is_installed(hoodie: Terminal) -> None:
    found = hoodie.result("version")
    assert found["packages"]["pyarrow"] == metadata.version("pyarrow")
    assert found["writes"] == [6, 8, 9]


def test_report_writes_a_page_for_each_table(lake: Path, tmp_path: Path, hoodie: Terminal) -> None:
    found = hoodie.document("report", f"{lake}/*", "--output", tmp_path / "pages")
    pages = [Path(table["result"]["file"]) for table in found["tables"]]
    assert pages == [tmp_path / "pages" / f"{name}.html" for name in "ab"]
    for page, name in zip(pages, "ab", strict=True):
        text = page.read_text("utf-8")
        assert text.lower().startswith("<!doctype html>")
        assert instants(lake / name)[-1] in text


def test_files_as_of_a_time_are_those_of_then(lake: Path, hoodie: Terminal) -> None:
    first, *_ = instants(lake / "a")
    then = f"{first[:4]}-{first[4:6]}-{first[6:8]}T{first[8:10]}:{first[10:12]}:{first[12:14]}.{first[14:]}Z"
    schedule(LocalStorage(lake / "a"))
    hoodie("compaction", "run", lake / "a", "--engine", "local")
    for moment in (first, then):
        every = hoodie.result("files", lake / "a", "--all", "--as-of", moment)["slices"]
        assert {line["base_instant"] for line in every} == {first}


def test_options_come_from_a_properties_file(lake: Path, tmp_path: Path, hoodie: Terminal) -> None:
    (tmp_path / "ours.properties").write_text("hoodie.index.type=GLOBAL_SIMPLE\n")
    props = ["--props", tmp_path / "ours.properties"]
    assert hoodie.result("index", "show", lake / "a", *props)["index"] == "GLOBAL_SIMPLE"
    named = hoodie.result("index", "show", lake / "a", *props, "--option", "hoodie.index.type=SIMPLE")
    assert named["index"] == "SIMPLE"
