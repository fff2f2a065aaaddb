"""The life of change logs: which writes have one, and who takes it away again."""

import json
import shutil
from collections import Counter
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.options import Options
from hoodie.doctor.examine import examine
from hoodie.doctor.findings import Fault
from hoodie.errors import HistoryGone, InvalidInput, InvalidOption, TableMismatch
from hoodie.formats.log.blocks import LogBlock, read_blocks
from hoodie.formats.log.content import data_rows
from hoodie.model.commit import CommitMetadata
from hoodie.reading.changes.base import row_places
from hoodie.services.clean import clean
from hoodie.storage.local import LocalStorage
from hoodie.table.properties import load_properties
from hoodie.table.settings import Settings
from hoodie.testing.storage import CountingStorage, Crash, CrashAfter
from hoodie.writing.tasks import change_log as change_log_writer
from support.nightly import each_call

CDC = {"hoodie.table.cdc.enabled": "true"}


def rows(*keys: str, n: int = 0, **columns: list[object]) -> pa.Table:
    return pa.table({"id": list(keys), "n": pa.array([n] * len(keys), pa.int64()), **columns})


def new(path: Path, **options: str) -> hoodie.HoodieTable:
    return hoodie.create_table(path, name="t", record_key="id", options={**CDC, **options})


def logs(path: Path) -> list[str]:
    return sorted(log.name for log in path.glob(".*.cdc"))


def ops(table: hoodie.HoodieTable, begin: str = "earliest") -> list[tuple[str, str]]:
    read = table.changes(begin, cdc=True).to_arrow().to_pylist()
    return sorted((row["op"], json.loads(row["before"] or row["after"])["id"]) for row in read)


def told(table: hoodie.HoodieTable) -> dict[str, int]:
    stats = [stat for stats in newest(table).stats.values() for stat in stats]
    return {path: size for stat in stats for path, size in (stat.cdc_stats or {}).items()}


def newest(table: hoodie.HoodieTable) -> CommitMetadata:
    return table.history()[0][1]


def test_rewrites_have_a_log_and_other_writes_none(tmp_path: Path) -> None:
    table = new(tmp_path)
    table.insert(rows("a", "b", "c"))
    assert (logs(tmp_path), told(table)) == ([], {})
    upsert = table.upsert(rows("b", "d", n=1))
    assert told(table) == {name: (tmp_path / name).stat().st_size for name in logs(tmp_path)}
    assert len(logs(tmp_path)) == 1
    more = table.insert(rows("e", n=2))  # goes to the small file, next to the rows that are there
    assert len(told(table)) == 1
    table.delete(rows("a"))
    assert len(logs(tmp_path)) == 3
    assert ops(table, upsert.instant) == [("d", "a"), ("i", "e")]
    table.bulk_insert(rows("f"))
    table.insert_overwrite_table(rows("g"))
    assert len(logs(tmp_path)) == 3
    assert ops(table, more.instant) == [("d", key) for key in "abcdef"][:1] + [("d", key) for key in "bcdef"] + [
        ("i", "f"),
        ("i", "g"),
    ]
    assert not list(tmp_path.glob(".hoodie/.temp/*"))


def test_a_file_that_loses_all_its_rows_has_no_log_and_its_changes_are_told(tmp_path: Path) -> None:
    table = new(tmp_path)
    first = table.insert(rows("a", "b"))
    table.delete(rows("a", "b"))
    assert (logs(tmp_path), newest(table).stats[""][0].num_writes) == ([], 0)
    assert ops(table, first.instant) == [("d", "a"), ("d", "b")]


def test_a_rewrite_that_keeps_no_old_row_has_no_log_and_its_changes_are_told(tmp_path: Path) -> None:
    table = new(tmp_path)
    first = table.insert(rows("a", "b", _hoodie_is_deleted=[False, False]))
    table.upsert(rows("a", "b", "c", n=1, _hoodie_is_deleted=[True, True, False]))
    assert logs(tmp_path) == []
    assert ops(table, first.instant) == [("d", "a"), ("d", "b"), ("i", "c")]


def test_a_table_without_change_data_has_no_logs(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path, name="t", record_key="id")
    table.insert(rows("a", "b"))
    table.upsert(rows("b", n=1))
    assert logs(tmp_path) == []
    assert newest(table).stats[""][0].cdc_stats is None
    assert "hoodie.table.cdc.supplemental.logging.mode" not in load_properties(LocalStorage(tmp_path))


def test_what_is_logged_is_the_row_that_was_stored(tmp_path: Path) -> None:
    table = hoodie.create_table(
        tmp_path,
        name="t",
        record_key="id",
        ordering="n",
        options={
            **CDC,
            "hoodie.read.cdc.images": "struct",
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        },
    )
    first = table.insert(rows("a", "b", n=5))
    table.upsert(pa.concat_tables([rows("a", n=3), rows("b", n=7)]))  # of a the stored row stays
    more = table.upsert(rows("b", n=8, word=["new column"]))
    changes = table.changes(first.instant, cdc=True).to_arrow().select(["op", "before", "after"]).to_pylist()
    assert changes == [
        {"op": "u", "before": {"id": "b", "n": 5, "word": None}, "after": {"id": "b", "n": 7, "word": None}},
        {"op": "u", "before": {"id": "b", "n": 7, "word": None}, "after": {"id": "b", "n": 8, "word": "new column"}},
    ]
    nothing = table.upsert(rows("a", n=4), missing="null")
    assert (more.updated, nothing.updated) == (1, 0)
    # As Hudi writes: without a log its reader refuses each range that has the commit.
    ((path, size),) = told(table).items()
    (block,) = read_blocks((tmp_path / path).read_bytes(), path)
    assert (data_rows(block, path).num_rows, size) == (0, (tmp_path / path).stat().st_size)
    assert ops(table, more.instant) == []


def test_an_update_of_a_key_that_is_stored_twice_is_no_insert_where_nothing_is_logged(tmp_path: Path) -> None:
    infer = {"hoodie.read.cdc.infer": "true"}
    table = hoodie.create_table(tmp_path, name="t", record_key="id", options=infer)
    first = table.bulk_insert(rows("a", "a", "b")).instant
    assert table.upsert(rows("a", n=1)).updated == 2
    assert ops(table, first) == [("u", "a"), ("u", "a")]


def test_a_change_in_a_log_of_a_key_that_is_stored_twice_is_one_of_its_last_row(tmp_path: Path) -> None:
    """As Hudi 1.0.2 and 1.2.0 tell it."""
    table = new(tmp_path, **{"hoodie.datasource.write.table.type": "MERGE_ON_READ"})
    first = table.bulk_insert(rows("a", "a", "b").set_column(1, "n", [[1, 2, 1]])).instant
    table.upsert(rows("a", n=5))
    (change,) = table.changes(first, cdc=True).to_arrow().to_pylist()
    assert [change["op"], *(json.loads(change[image])["n"] for image in ("before", "after"))] == ["u", 2, 5]


@pytest.mark.parametrize("images", ["OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"])
def test_each_row_of_a_key_that_is_stored_twice_has_its_own_image(tmp_path: Path, images: str) -> None:
    table = new(tmp_path, **{"hoodie.table.cdc.supplemental.logging.mode": images})
    first = table.bulk_insert(rows("a", "b", "a", "b", "a").set_column(1, "n", [[1, 2, 3, 4, 5]])).instant
    table.upsert(rows("a", n=9))
    changes = table.changes(first, cdc=True).to_arrow().to_pylist()
    assert [[json.loads(change[image])["n"] for image in ("before", "after")] for change in changes] == [
        [1, 9],
        [3, 9],
        [5, 9],
    ]
    # Hudi logs one change of such a key, and takes its last row.
    stored = pa.table({"_hoodie_record_key": ["a", "b", "a"]})
    assert row_places(pa.array(["b", "a", "c"]), stored).to_pylist() == [1, 2, None]
    assert row_places(pa.array(["a", "b", "b", "a", "a"]), stored).to_pylist() == [2, 1, 1, 0, 2]


def test_a_log_has_several_blocks_where_one_would_be_too_large(tmp_path: Path) -> None:
    table = new(tmp_path, **{"hoodie.logfile.data.block.max.size": "2000"})
    keys = [f"k{number:04d}" for number in range(300)]
    table.insert(rows(*keys))
    table.upsert(rows(*keys[:200], n=1))
    table.upsert(rows(*keys, *[f"new{key}" for key in keys], n=2))
    changes = ops(table, table.history()[1][0].requested)
    assert sorted(changes) == sorted([("u", key) for key in keys] + [("i", f"new{key}") for key in keys])
    blocks = [len(list(read_blocks((tmp_path / name).read_bytes(), name))) for name in logs(tmp_path)]
    assert blocks[1] == 2


def test_a_full_block_of_a_log_that_is_not_needed_leaves_no_file(tmp_path: Path) -> None:
    table = new(tmp_path, **{"hoodie.logfile.data.block.max.size": "100"})
    keys = [f"k{number:04d}" for number in range(300)]
    first = table.insert(rows(*keys))
    table.delete(rows(*keys))
    assert (logs(tmp_path), told(table)) == ([], {})
    assert len(ops(table, first.instant)) == 300


def test_clean_and_rollback_and_restore_take_logs_with_their_files(tmp_path: Path) -> None:
    table = new(tmp_path, **{"hoodie.clean.automatic": "false"})
    table.insert(rows("a", "b", "c"))
    table.savepoint()
    for number in range(3):
        last = table.upsert(rows("a", n=number)).instant
    assert len(logs(tmp_path)) == 3
    table.rollback(last)
    assert len(logs(tmp_path)) == 2
    assert not any(last in name for name in logs(tmp_path))
    table.restore(table.history()[-1][0].requested)
    assert logs(tmp_path) == []
    for number in range(4):
        table.upsert(rows("a", n=number))
    for savepoint in table.savepoints():
        table.delete_savepoint(savepoint.instant)
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    assert 1 <= len(logs(tmp_path)) < 4
    assert len(list(tmp_path.glob("*.parquet"))) == len(logs(tmp_path))
    assert ops(table, table.history()[1][0].requested) == [("u", "a")]


def test_a_writer_that_dies_anywhere_leaves_no_log_behind(tmp_path: Path) -> None:
    for writes in each_call():
        path = tmp_path / str(writes)
        table = new(path)
        first = table.insert(rows("a", "b", "c")).instant
        crashing = CrashAfter(LocalStorage(path), writes)
        table.storage = crashing
        try:
            table.upsert(rows("a", "d", n=1))
        except Crash:
            died = True
        else:
            died = False
        again = hoodie.open_table(path)
        published = len(again.history()) == 2
        again.upsert(rows("b", n=2))
        expected = [("u", "b"), *([("i", "d"), ("u", "a")] if published else [])]
        assert ops(again, first) == sorted(expected)
        assert len(logs(path)) == len(again.history()) - 1
        assert {finding.fault for finding in examine(again.storage, grace=0)} <= {Fault.MARKERS}
        if not died:
            assert writes > 5
            return


def test_a_log_of_a_lost_attempt_is_removed_before_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hoodie.writing import finish
    from hoodie.writing.tasks import run as tasks

    run, publish = tasks._rewrite, finish.publish_seen

    def twice(*arguments: object) -> object:
        run(*arguments[:-1], "0-9-9")  # type: ignore[arg-type]
        return run(*arguments)  # type: ignore[arg-type]

    table = new(tmp_path)
    table.insert(rows("a", "b"))

    def as_on_executors(*arguments: object, **named: object) -> object:
        return publish(*arguments, **{**named, "lingering": True})  # type: ignore[arg-type]

    monkeypatch.setattr(tasks, "_rewrite", twice)
    monkeypatch.setattr(finish, "publish_seen", as_on_executors)
    table.upsert(rows("a", n=1))
    assert logs(tmp_path) == [name.rpartition("/")[2] for name in told(table)]
    assert len(logs(tmp_path)) == 1


def test_the_doctor_misses_a_log_and_finds_one_that_no_commit_names(tmp_path: Path) -> None:
    table = new(tmp_path, **{"hoodie.clean.automatic": "false"})
    table.insert(rows("a", "b"))
    table.upsert(rows("a", n=1))
    (name,) = logs(tmp_path)
    assert table.check() == ()
    log = tmp_path / name
    stray = tmp_path / f"{name.rpartition('_')[0]}_7-7-7.cdc"
    stray.write_bytes(log.read_bytes())
    log.write_bytes(log.read_bytes()[:-1])
    found = {finding.where: finding.fault for finding in examine(table.storage, grace=0)}
    assert found == {name: Fault.SIZE, stray.name: Fault.ORPHAN}
    log.unlink()
    stray.unlink()
    assert [(finding.where, finding.fault) for finding in table.check()] == [(name, Fault.MISSING)]
    assert table.snapshot().count() == 2


def test_a_call_that_asks_for_change_data_that_the_table_does_not_log_is_refused(tmp_path: Path) -> None:
    plain = hoodie.create_table(tmp_path / "plain", name="t", record_key="id")
    with pytest.raises(TableMismatch, match=r"hoodie\.table\.cdc\.enabled is 'false' in the table"):
        new(tmp_path / "plain")
    assert plain.count() == 0
    new(tmp_path / "logging")
    with pytest.raises(TableMismatch, match=r"is 'DATA_BEFORE_AFTER' in the table, not 'OP_KEY_ONLY'"):
        new(tmp_path / "logging", **{"hoodie.table.cdc.supplemental.logging.mode": "op_key_only"})
    with pytest.raises(InvalidOption, match="one of OP_KEY_ONLY, DATA_BEFORE, DATA_BEFORE_AFTER"):
        new(tmp_path / "bad", **{"hoodie.table.cdc.supplemental.logging.mode": "all"})
    assert not (tmp_path / "bad").exists()
    assert hoodie.create_table(tmp_path / "logging", name="t", record_key="id").count() == 0
    assert (
        Options(load_properties(LocalStorage(tmp_path / "logging")))["hoodie.table.cdc.supplemental.logging.mode"]
        == "DATA_BEFORE_AFTER"
    )


def calls_of_an_upsert(path: Path, **options: str) -> Counter[str]:
    """Storage calls by method."""
    table = hoodie.create_table(path, name="t", record_key="id", options=options)
    table.insert(rows("a", "b"))
    table.storage = counting = CountingStorage(table.storage)
    table.upsert(rows("a", n=1))
    calls: Counter[str] = Counter()
    for (method, _), number in counting.calls.items():
        calls[method] += number
    return calls


def test_a_log_costs_a_marker_and_a_file_and_no_look(tmp_path: Path) -> None:
    without, logging = calls_of_an_upsert(tmp_path / "without"), calls_of_an_upsert(tmp_path / "logging", **CDC)
    assert logging - without == Counter(create_new=1, open_output=1, close_output=1)
    assert without - logging == Counter()


def test_a_read_opens_the_logs_of_its_range_alone(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path, name="t", record_key="id", partition_by="part", options=CDC)
    table.insert(rows("a", "b", "c", part=["p", "q", "r"]))
    first = table.upsert(rows("a", n=1, part=["p"])).instant
    table.upsert(rows("b", n=2, part=["q"]))
    table.storage = counting = CountingStorage(table.storage)
    assert ops(table, first) == [("u", "b")]
    data = {(method, folder): number for (method, folder), number in counting.calls.items() if folder in "pqr"}
    assert data == {("list", "q"): 1, ("read", "q"): 1}


def test_ranges_without_changes_and_bad_ones(tmp_path: Path) -> None:
    table = new(tmp_path)
    assert ops(table) == []
    first = table.insert(rows("a")).instant
    second = table.upsert(rows("a", n=1)).instant
    assert (ops(table, second), ops(table, first)) == ([], [("u", "a")])
    with pytest.raises(InvalidInput, match="is after end"):
        table.changes(second, first, cdc=True)
    with pytest.raises(InvalidInput, match="neither an instant nor a point in time"):
        table.changes("soon", cdc=True)


def test_a_log_that_cannot_be_finished_fails_the_write_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new(tmp_path, **{"hoodie.logfile.data.block.max.size": "1000"})
    keys = [f"k{number:04d}" for number in range(100)]
    table.insert(rows(*keys))
    there = sorted(path.name for path in tmp_path.iterdir())
    encoded = change_log_writer.encode_block
    calls = iter([encoded])

    def once(block: LogBlock) -> bytes:
        return next(calls)(block)  # the second block, at the end, fails

    monkeypatch.setattr(change_log_writer, "encode_block", once)
    with pytest.raises((StopIteration, RuntimeError)):
        table.upsert(rows(*keys[:50], *[f"new{key}" for key in keys], n=1))
    assert next(calls, None) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == there
    assert table.snapshot().count() == 100


def overwritten_beside_a_savepoint(path: Path) -> tuple[hoodie.HoodieTable, str]:
    """A table whose overwrite took rows of two commits, of which a savepoint keeps the first; the second's instant."""
    table = new(path, **{"hoodie.clean.automatic": "false"})
    table.savepoint(table.upsert(rows("a", n=1)).instant)
    second = table.upsert(rows("b", n=2)).instant
    table.insert_overwrite_table(rows("c", n=3))
    return table, second


def test_rows_that_an_overwrite_took_and_cleaning_removed_are_not_passed_over(tmp_path: Path) -> None:
    """A savepoint keeps an older slice of the file group: its rows are not those that were there."""
    table, second = overwritten_beside_a_savepoint(tmp_path / "t")
    assert ops(table, second) == [("d", "a"), ("d", "b"), ("i", "c")]
    table.clean(options={"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS"})
    with pytest.raises(HistoryGone, match=r"are gone.* images cannot be made") as told:
        ops(table, second)
    assert "fulltablescan" not in str(told.value)  # which is of no effect on change data


def test_an_image_is_not_made_of_an_older_version_that_a_savepoint_keeps(tmp_path: Path) -> None:
    """Changes without logs compare base files: the version before is cleaned away, and the one before that is there."""
    table = hoodie.create_table(tmp_path / "t", record_key="id", options={"hoodie.clean.automatic": "false"})
    table.savepoint(table.upsert(rows("a", n=1)).instant)
    second = table.upsert(rows("a", n=2)).instant
    table.upsert(rows("a", n=3))
    infer = {"hoodie.read.cdc.infer": "true"}
    (change,) = table.changes(second, cdc=True, options=infer).to_arrow().to_pylist()
    assert json.loads(change["before"])["n"] == 2
    table.clean(
        options={"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
    )
    with pytest.raises(HistoryGone, match=f"of {second}"):
        table.changes(second, cdc=True, options=infer).to_arrow()


def test_changes_beside_a_clean_that_died_are_whole_or_refused(tmp_path: Path) -> None:
    _, second = overwritten_beside_a_savepoint(tmp_path / "t")
    refused = 0
    for calls in count():
        copy = shutil.copytree(tmp_path / "t", tmp_path / f"copy-{calls}")
        try:
            clean(
                CrashAfter(LocalStorage(copy), calls),
                Settings.of({"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS"}),
            )
        except Crash:
            try:
                assert ops(hoodie.open_table(copy), second) == [("d", "a"), ("d", "b"), ("i", "c")]
            except HistoryGone:
                refused += 1
        else:
            break
    assert refused
