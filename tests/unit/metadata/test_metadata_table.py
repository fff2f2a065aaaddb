"""Whether a metadata table tells the state of its table: told by both timelines, and by the blocks of its logs."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from hoodie.errors import CorruptFile, HoodieError
from hoodie.metadata.keeping.delta import append
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.listing import listed_folders
from hoodie.metadata.records import SCHEMAS
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from support.metadata_tables import METADATA, metadata_of, table_files

#: Of mdt_cow: its commits, in order; the metadata table was compacted after the fourth.
TIMES = ["20261122021713647", "20261122021748133", "20261122021757116", "20261122021804014", "20261122021814939"]
NEWEST = "20261122021825272"


def opened(change: Callable[[dict[str, bytes]], object]) -> MetadataTable:
    files = dict(table_files("mdt_cow"))
    change(files)
    storage = MemoryStorage(files)
    return metadata_of(load_state(storage))


def without(*words: str) -> Callable[[dict[str, bytes]], object]:
    """Take away the files in whose path one of the words is."""

    def change(files: dict[str, bytes]) -> None:
        chosen = [path for path in files if any(word in path for word in words)]
        assert chosen
        for path in chosen:
            del files[path]

    return change


def test_one_that_followed_every_commit_is_up_to_date() -> None:
    assert opened(lambda files: None).problem() == ""


@pytest.mark.parametrize("time", [*TIMES, NEWEST])
def test_one_without_a_commit_of_the_table_is_behind(time: str) -> None:
    problem = opened(without(f"{METADATA}.hoodie/{time}.deltacommit")).problem()
    assert "behind: 1 instants" in problem
    assert time in problem


def test_one_with_a_commit_that_is_pending_is_behind() -> None:
    def change(files: dict[str, bytes]) -> None:
        del files[f"{METADATA}.hoodie/{NEWEST}.deltacommit"]

    assert "behind" in opened(change).problem()


@pytest.mark.parametrize("action", ["commit", "clean", "rollback", "restore", "replacecommit", "deltacommit"])
def test_a_later_action_that_it_did_not_follow_is_noticed(action: str) -> None:
    def change(files: dict[str, bytes]) -> None:
        files[f".hoodie/20261122030000000.{action}"] = b"{}"

    assert "20261122030000000" in opened(change).problem()


@pytest.mark.parametrize(
    ("theirs", "behind"),
    [
        (("20261122030001000.restore", "20261122030002000003.deltacommit"), False),  # by Hudi 0.15
        (("20261122030001000.restore", "20261122030002000.deltacommit"), False),  # by Hudi 1.1, before its downgrade
        (("20261122030002000.deltacommit",), True),
        (("20261122030006000.restore", "20261122030007000.deltacommit"), True),  # of something later
        ((), True),
    ],
)
def test_a_restore_by_hudi_is_followed_at_other_times_before_the_next_instant(
    theirs: tuple[str, ...], behind: bool
) -> None:
    restore, later = "20261122030000000", "20261122030005000"

    def change(files: dict[str, bytes]) -> None:
        files |= {f".hoodie/{restore}.restore": b"", f".hoodie/{later}.clean": b""}
        files |= {f"{METADATA}.hoodie/{name}": b"{}" for name in (*theirs, f"{later}.deltacommit")}

    table = opened(change)
    assert table.behind() == ((restore,) if behind else ())
    assert restore not in table.blocks().completed
    own = {name.partition(".")[0] for name in theirs}
    assert behind or own <= table.blocks().completed


def test_a_savepoint_is_nothing_that_it_follows() -> None:
    def change(files: dict[str, bytes]) -> None:
        files[f".hoodie/{NEWEST}.savepoint"] = b""

    assert opened(change).problem() == ""


def test_what_was_built_later_need_not_know_what_was_before() -> None:
    def change(files: dict[str, bytes]) -> None:
        files[".hoodie/00000000000000009.commit"] = b"{}"

    assert opened(change).problem() == ""


def test_one_that_is_gone_has_no_instant() -> None:
    assert "no completed instant" in opened(without(METADATA)).problem()


def test_a_commit_that_is_pending_on_the_table_does_not_count_yet() -> None:
    """Hudi completes it in the metadata table first."""

    def change(files: dict[str, bytes]) -> None:
        del files[f".hoodie/{NEWEST}.commit"]

    table = opened(change)
    assert table.problem() == ""
    names = {entry.name for entries in listed_folders(table).marked.values() for entry in entries}
    assert not any(NEWEST in name for name in names)
    assert any(TIMES[-1] in name for name in names)


def test_a_commit_that_the_table_gave_up_is_noticed_by_its_block() -> None:
    """A writer that does not know the metadata table rolled it back, and wrote on."""

    def change(files: dict[str, bytes]) -> None:
        for name in [path for path in files if path.startswith(f".hoodie/{TIMES[-1]}")]:
            del files[name]

    with pytest.raises(CorruptFile, match=f"instant {TIMES[-1]}, which the table's timeline no longer has"):
        listed_folders(opened(change))


def test_a_commit_that_changed_no_file_is_none_that_the_table_gave_up() -> None:
    """Hudi 1.1 writes one after a downgrade, at a time of no instant of the table."""
    table = opened(lambda files: None)
    lists = listed_folders(table)
    row = {"row": "__all_partitions__", "name": min(lists.marked), "size": 0, "deleted": False}
    between = str(int(NEWEST) - 1)
    records = pa.Table.from_pylist([row], SCHEMAS[MetadataPartition.FILES])
    append(table, between, {MetadataPartition.FILES: records})
    assert table.reload().unknown([between]) == [between]
    assert listed_folders(table.reload()) == lists


def test_a_commit_newer_than_the_timeline_at_hand_is_passed_by() -> None:
    """Its writer began after the timeline of the table was loaded."""

    def change(files: dict[str, bytes]) -> None:
        for name in [path for path in files if path.startswith(f".hoodie/{NEWEST}")]:
            del files[name]

    table = opened(change)
    assert table.problem() == ""
    assert listed_folders(table).marked


def test_a_table_without_file_lists_has_none() -> None:
    def change(files: dict[str, bytes]) -> None:
        path = ".hoodie/hoodie.properties"
        files[path] = files[path].replace(b"column_stats,files,", b"column_stats,")

    files = dict(table_files("mdt_cow"))
    assert b"column_stats,files," in files[".hoodie/hoodie.properties"]
    lines = files[".hoodie/hoodie.properties"].splitlines(keepends=True)
    files[".hoodie/hoodie.properties"] = b"".join(line for line in lines if b"checksum" not in line)
    change(files)
    state = load_state(MemoryStorage(files))
    assert open_metadata(state.storage, state.config, state.timeline) is None


@pytest.mark.parametrize(
    "change",
    [
        without("files-0000-0"),
        lambda files: files.update({path: files[path][:-700] for path in files if "log.2_3-401-651" in path}),
        lambda files: files.update({path: b"" for path in files if "files-0000-0_0-271" in path}),
    ],
)
def test_damage_is_never_a_shorter_list(change: Callable[[dict[str, bytes]], object]) -> None:
    with pytest.raises(HoodieError):
        listed_folders(opened(change))
