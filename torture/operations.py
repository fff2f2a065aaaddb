"""The operations that die, each on a table that has something to lose."""

from dataclasses import replace

from hoodie.recovery.restore import restore
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.archive import archive
from hoodie.services.clean import clean
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.metadata_upkeep import keep_up
from hoodie.services.savepoint import delete_savepoint
from hoodie.table.create import create
from hoodie.table.settings import Settings
from hoodie.testing.tables import ArrowTable
from torture.crash import MERGE_ON_READ, METADATA, Case, Rows, batch, rows_of_now

#: Two partitions, one of which has two file groups' worth of history.
FIRST: Rows = {"a": ("oslo", 1, "old"), "b": ("oslo", 1, "old"), "c": ("rome", 1, "old")}
SECOND: Rows = {"b": ("oslo", 2, "older"), "d": ("rome", 2, "old")}
#: Updates in both partitions, an insert into an old one and one into a new.
CHANGES: Rows = {"a": ("oslo", 3, "new"), "c": ("rome", 3, "new"), "e": ("rome", 3, "new"), "f": ("bern", 3, "new")}
OVERWRITE: Rows = {"x": ("oslo", 4, "x"), "y": ("bern", 4, "y")}


def make(table: ArrowTable) -> None:
    create(table.storage, table.options)


def two_commits(table: ArrowTable) -> None:
    make(table)
    table.upsert(batch(FIRST))
    table.upsert(batch(SECOND))


def with_plan(table: ArrowTable) -> None:
    two_commits(table)
    table.upsert(batch({"a": ("oslo", 3, "logged")}))
    table.delete(keys("d"))
    assert schedule(table)


def upsert(table: ArrowTable) -> None:
    table.upsert(batch(CHANGES))


def delete(table: ArrowTable) -> None:
    table.delete(keys("a", "c"))


def keys(*names: str) -> object:
    return batch({name: (FIRST | SECOND)[name] for name in names}).select(["id", "city"])


def schedule(table: ArrowTable) -> str | None:
    return schedule_compaction(
        table.storage, Settings.of({**table.options, "hoodie.compact.inline.max.delta.commits": "1"})
    )


def run_compaction(table: ArrowTable) -> None:
    compact(table.storage, Settings.read(table.options))


def compact_all(table: ArrowTable) -> None:
    """Plans that wait, and one made now, are run."""
    while compact(table.storage, Settings.read(table.options)) is not None:
        pass
    if schedule(table):
        assert compact(table.storage, Settings.read(table.options)) is not None
    optimized = {row["id"] for row in table.read_optimized().to_pylist()}
    assert optimized == set(rows_of_now(table)), "a compaction left rows in logs"


# --- services ---

KEEP_TWO = {
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "5",
}
#: Two writers of one table at a time; the dead one's lock and heart stop an hour before the next comes.
SEVERAL = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "StorageBasedLockProvider",
}
AUTOMATIC = {**KEEP_TWO, "hoodie.table.services.enabled": "true"}


def history(table: ArrowTable) -> None:
    """Eight commits and a few versions of each file, more than is to be kept."""
    two_commits(table)
    for number in range(4, 10):
        table.upsert(batch({"a": ("oslo", number, f"v{number}"), "c": ("rome", number, f"v{number}")}))


def cleaned(table: ArrowTable) -> None:
    history(table)
    assert clean(table.storage, Settings.read(table.options)).paths


def savepointed(table: ArrowTable) -> None:
    two_commits(table)
    make_savepoint(table.storage, Settings.read(table.options))


def with_more(table: ArrowTable) -> None:
    """A savepoint, and later commits: updates, an overwrite, and on a Merge-on-Read table a compaction."""
    savepointed(table)
    upsert(table)
    if table.state().config.merge_on_read:
        assert schedule(table)
        table.upsert(batch({"b": ("oslo", 5, "beside")}))
        run_compaction(table)
    table.insert_overwrite(batch({"x": ("bern", 6, "x")}))


def newest_savepoint(table: ArrowTable) -> str:
    return make_savepoint(table.storage, Settings.read(table.options)).instant


def the_savepoint(table: ArrowTable) -> str:
    return next(i.requested for i in table.state().timeline.instants if i.action == "savepoint")


def take_back(table: ArrowTable) -> None:
    rollback(table.storage, Settings.read(table.options), table.state().timeline.newest_commit)


def finish_rollback(table: ArrowTable) -> None:
    """What the user does whose rollback died: unless it is done, again."""
    if rows_of_now(table) != FIRST:
        take_back(table)


def restore_it(table: ArrowTable) -> None:
    restore(table.storage, Settings.read(table.options), the_savepoint(table))


def run_clean(table: ArrowTable) -> None:
    clean(table.storage, Settings.read(table.options))


def run_archive(table: ArrowTable) -> None:
    archive(table.storage, Settings.read(table.options))


def age(table: ArrowTable) -> None:
    """So many commits and archiving that the timeline begins after the dead write: blocks of instants that are older
    than the timeline count, unless they were taken back."""
    rows, first = rows_of_now(table), table.state().timeline.instants[0].requested
    for _ in range(10):
        table.upsert(batch({"z": rows["z"]}))
    run_archive(table)
    assert table.state().timeline.newest_commit > first
    assert rows_of_now(table) == rows, "a dead write came back once the timeline began after it"
    compact_all(table)


#: The metadata table is compacted after so few commits, and archived with the table.
LISTED = {**METADATA, "hoodie.metadata.compact.max.delta.commits": "3"}


def run_upkeep(table: ArrowTable) -> None:
    keep_up(table.storage, Settings.read(table.options))


def archivable(table: ArrowTable) -> None:
    cleaned(table)
    if table.state().config.metadata_partitions:
        run_upkeep(table)


WRITES = (
    Case("create", lambda table: None, make, again=make),
    Case("first write", make, upsert),
    Case("upsert, Copy-on-Write", two_commits, upsert),
    Case("upsert, Merge-on-Read", two_commits, upsert, also=compact_all, options=MERGE_ON_READ),
    Case("upsert, and the timeline moves on", two_commits, upsert, also=age, options=KEEP_TWO | MERGE_ON_READ),
    Case("upsert beside a planned compaction", with_plan, upsert, also=compact_all, options=MERGE_ON_READ),
    Case("upsert, several writers", two_commits, upsert, also=run_clean, options=SEVERAL),
    Case("delete, Copy-on-Write", two_commits, delete),
    Case("delete, Merge-on-Read", two_commits, delete, also=compact_all, options=MERGE_ON_READ),
    Case("bulk_insert", two_commits, lambda table: table.bulk_insert(batch(OVERWRITE))),
    Case("insert_overwrite", two_commits, lambda table: table.insert_overwrite(batch(OVERWRITE))),
    Case("insert_overwrite_table", two_commits, lambda table: table.insert_overwrite_table(batch(OVERWRITE))),
    Case("delete_partitions", two_commits, lambda table: table.delete_partitions(["rome"])),
)
SERVICES = (
    Case("schedule a compaction", two_commits, schedule, also=compact_all, options=MERGE_ON_READ),
    Case("compact", with_plan, run_compaction, also=compact_all, options=MERGE_ON_READ),
    Case("clean", history, run_clean, also=run_clean, options=KEEP_TWO),
    Case("clean, Merge-on-Read", history, run_clean, also=run_clean, options=KEEP_TWO | MERGE_ON_READ),
    Case("archive", archivable, run_archive, also=run_archive, options=KEEP_TWO),
    Case("upsert with automatic clean and archive", history, upsert, also=run_archive, options=AUTOMATIC),
    Case("rollback of a commit", two_commits, take_back, again=finish_rollback),
    Case("rollback, Merge-on-Read", two_commits, take_back, again=finish_rollback, options=MERGE_ON_READ),
    Case("savepoint", two_commits, newest_savepoint),
    Case(
        "delete a savepoint",
        savepointed,
        lambda t: delete_savepoint(t.storage, Settings.read(t.options), the_savepoint(t)),
    ),
    Case("restore", with_more, restore_it, again=restore_it, between=True),
    Case("restore, Merge-on-Read", with_more, restore_it, again=restore_it, between=True, options=MERGE_ON_READ),
)
#: Those that a metadata table takes part in, and its own upkeep.
WITH_METADATA_TABLE = (
    *(
        replace(case, name=f"{case.name}, metadata table", options={**LISTED, **case.options})
        for case in (*WRITES, *SERVICES)
        if case.name not in ("create", "savepoint", "delete a savepoint")
    ),
    Case("upkeep of the metadata table", history, run_upkeep, also=run_upkeep, options=LISTED | KEEP_TWO),
)
#: The same on tables of later versions of the format.
LATER_VERSIONS = tuple(
    replace(
        case, name=f"{case.name}, version {version}", options={"hoodie.write.table.version": version, **case.options}
    )
    for version in ("8", "9")
    for case in (*WRITES, *SERVICES)
)
#: Keys are looked up in the record index, which each of them keeps.
INDEXED = {
    **LISTED,
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.record.index.update.partition.path": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
}
WITH_RECORD_INDEX = tuple(
    replace(case, name=f"{case.name}, record index", options={**INDEXED, **case.options})
    for case in (*WRITES, *SERVICES, WITH_METADATA_TABLE[-1])
    if case.name not in ("create", "savepoint", "delete a savepoint")
)
#: The metadata table has another form there, with rollbacks that delete its logs.
LATER_WITH_METADATA_TABLE = tuple(
    replace(
        case, name=f"{case.name}, version {version}", options={"hoodie.write.table.version": version, **case.options}
    )
    for version in ("8", "9")
    for case in WITH_METADATA_TABLE
)
CASES = (*WRITES, *SERVICES, *WITH_METADATA_TABLE, *WITH_RECORD_INDEX, *LATER_VERSIONS, *LATER_WITH_METADATA_TABLE)
