"""The page of what Hudi reads otherwise, from the cases that were run.

python -m support.differences_page > ../docs/differences-from-hudi.md     in tests/
"""

from support.engine_cases import CASES, Difference

_PAGE = """# Differences from Hudi

<!-- Generated in tests/: python -m support.differences_page > ../docs/differences-from-hudi.md -->

`make engines` compares {cases} small tables of Hoodie with what Hudi 0.15.0 and 1.2.0 (Spark 3.5) read of them:
snapshot, read-optimized, incremental, as of an instant. It names every view whose rows differ, and fails when one of
them becomes the same. Options and defaults that differ: [coming from Hudi](coming-from-hudi.md).

## On purpose

| table | views | Hudi | Hoodie | why |
|---|---|---|---|---|
{meant}

## Faults of Hudi's readers

They show on tables that Hudi 0.15 itself wrote, too; those of 1.x were not asked for there.

| table | releases, views | Hudi | Hoodie | way round |
|---|---|---|---|---|
{faults}

## Faults that were seen beside the cases

With Hudi 0.15.0, 1.2.0 or 1.1.1, and 1.0.2 where it is named, on tables of both writers, in November 2026; no test
repeats them.

| table | releases, views | Hudi | Hoodie | way round |
|---|---|---|---|---|
{seen}

What Trino, Presto and Hive read otherwise is on [their pages](sync.md).
"""

#: Table, releases and views, what Hudi does, what the library does, the way round.
_SEEN = (
    (
        "Merge-on-Read of version 6 with change data",
        "0.15, 1.x: change data",
        "fails",
        "gives the changes",
        "Read change data by Hoodie; all other reads are right",
    ),
    (
        "Merge-on-Read, after a failed write that Hudi's next write rolled back",
        "0.15: snapshot",
        "does not read the logs of that file group behind the rollback's block",
        "reads them. Its own rollbacks have an instant before the write that follows, and hide nothing",
        "Roll back by Hoodie (`hoodie rollback`) before Hudi writes; a compaction by Hoodie brings the rows back",
    ),
    (
        "Merge-on-Read, upgraded by 1.x while a compaction was pending",
        "1.x: all",
        "lacks updates and deletes that were written behind the plan",
        "has them",
        "[Run the compaction first](coming-from-hudi.md#before-a-job-of-hudi-1x-is-let-in); that page mends it, too",
    ),
    (
        "a metadata table that was compacted behind the newest commit, as Hoodie does at every tenth",
        "1.2: `CALL rollback_to_instant` of that commit",
        "fails when it has deleted the files, and so does each write that follows",
        "rolls back, and leaves rows and metadata table right",
        "Roll back by Hoodie (`hoodie rollback`). A write by Hoodie or `hoodie check --repair` mends the table",
    ),
    (
        "a savepoint with files of a partition whose rows were all deleted, overwritten or clustered away since",
        "1.2: a clean",
        "deletes the folder of the partition with the files that the savepoint keeps: no restore goes back to it",
        "keeps them",
        "Clean by Hoodie while there are savepoints, and set `hoodie.clean.automatic=false` in Hudi's jobs",
    ),
    (
        "a savepoint that is older than the metadata table, or a table without one",
        "0.15: `CALL rollback_to_savepoint` with `hoodie.metadata.enable=true`, its default",
        "fails when it has taken the rows back (`no base file in MDT lesser than the commit to restore to`)",
        "restores",
        "Restore by Hoodie (`hoodie restore`), or again in Hudi after `SET hoodie.metadata.enable=false`",
    ),
    (
        "version 6, Hudi 1.x writes with `hoodie.write.table.version=6` and cleans",
        "0.15: each write that archives the clean",
        "fails (`Not an Avro data file`), as the clean's inflight file is empty; the commit itself is there",
        "archives it",
        "Archive by Hoodie (`hoodie archive`), and set `hoodie.clean.automatic=false` in the jobs of Hudi 1.x",
    ),
    (
        "version 6 with the index BUCKET, keys with colons, or compound keys with commas in their values",
        "1.x: writes",
        "puts them into other buckets than 0.15: updates come in a second time, deletes are lost",
        "keeps to the rule of 0.15 in version 6, of 1.x in versions 8 and 9",
        "Let Hudi 1.x neither write to such a table nor upgrade it: write its rows into a new one",
    ),
    (
        "Merge-on-Read of version 8 or 9, a `MERGE` by Hudi that sets some columns: its log has these alone",
        "1.2: incremental",
        "fails: `ClassCastException`, or `ArrayIndexOutOfBoundsException`",
        "gives the whole rows",
        "Read changes by Hoodie; all other reads are right, but for the next row",
    ),
    (
        "such a log in a table with a column `_hoodie_is_deleted`",
        "1.2: snapshot",
        "fails: `ArrayIndexOutOfBoundsException`",
        "gives the rows",
        "Compact it by Hoodie",
    ),
    (
        "Merge-on-Read of version 8, ordering by a bigint, a key that a log deleted and a later log brings back",
        "1.0.2: snapshot",
        "fails: `ClassCastException`, Integer to Long",
        "gives the rows",
        "Compact it; 1.2.0 reads such tables of version 9",
    ),
    (
        "Merge-on-Read, a key of which one base file has several rows, that a log updates or deletes",
        "0.15 and hudi-rs: all; 1.x where the log tells no positions (an index that is global, BUCKET or RECORD_INDEX, "
        "`hoodie.write.record.positions=false`) or `hoodie.merge.use.record.positions=false` is set: snapshot",
        "changes one of these rows and leaves the others, also where Hudi wrote the log",
        "changes all of them, as on Copy-on-Write. With its other indexes the log has a row for each, as by Hudi 1.x",
        "Compact the table by Hoodie",
    ),
    (
        "a record key that is or has a date or a timestamp, and a record index or bloom filters in the metadata table",
        "1.x: snapshot with a filter by the key, such as `id = DATE '2026-01-31'`",
        "gives no rows",
        "gives the rows",
        "Read with `hoodie.metadata.enable=false`",
    ),
    (
        "column statistics of a text of both cases",
        "1.1, 1.2, and 0.15 where data skipping is on: snapshot with a filter by `upper` or `lower` of it",
        "leaves out files with such rows",
        "gives the rows",
        "Read with `hoodie.enable.data.skipping=false`",
    ),
    (
        "Merge-on-Read of version 8, a range that begins before a compaction whose logs were cleaned since",
        "1.0.2: incremental",
        "leaves out rows of logs behind the compaction, or gives them as they were before",
        "gives the rows",
        "Read changes by Hoodie or a later Hudi",
    ),
    (
        "Merge-on-Read, `hoodie.schema.on.read.enable`, an `ALTER TABLE` that adds, drops or retypes a field in an "
        "array of structs, rows in logs that are older",
        "1.x: snapshot, `UPDATE`, compaction",
        "repeats the last element in place of each one; an `UPDATE` or a compaction stores that for good. 1.0.2 has "
        "null for a renamed field of a map's structs",
        "gives the elements",
        "Compact the table before such an `ALTER TABLE`, or right after it by Hoodie",
    ),
    (
        "change data of an insert_overwrite",
        "0.15, 1.0.2: change data",
        "repeats one row of a replaced file group, as many times as it has rows",
        "gives each row once",
        "Read change data by Hoodie",
    ),
    (
        "version 8 or 9, several writers: a commit that began before another one and is completed after it",
        "1.0.2, 1.2: change data after the other one, in a query or a stream",
        "leaves it out: ranges of change data are about when commits began",
        "gives it: these ranges, too, are about when commits were completed",
        "Read change data by Hoodie; other incremental reads are right",
    ),
    (
        "version 6, a commit that is pending while a later one is completed",
        "0.15, 1.0.2: change data, whatever `hoodie.read.timeline.holes.resolution.policy` says",
        "gives the later one: a consumer who goes on from there never sees the pending one",
        "fails (`HollowCommit`), or does what the policy says, as Hudi's other incremental reads do",
        "Read change data by Hoodie",
    ),
    (
        "version 6, a commit that began before another one and is completed after it, "
        "`hoodie.read.timeline.holes.resolution.policy=USE_TRANSITION_TIME`",
        "0.15, 1.2: incremental",
        "leaves its rows out, or gives them as they were before",
        "gives them",
        "Read changes by Hoodie; `FAIL` and `BLOCK` are right",
    ),
    (
        "a partition whose value is the empty text",
        "0.15: snapshot, read_optimized, as_of",
        "gives null",
        "gives the empty text",
        "Incremental reads are right",
    ),
    (
        "Merge-on-Read, ordering by a text, a date or a decimal, a row with `_hoodie_is_deleted` of a lesser ordering "
        "value than the row in a log",
        "0.15: snapshot",
        "takes the row away: it compares no values of these types with that of a delete",
        "leaves the row, as with other types",
        "Order by a number or a timestamp",
    ),
    (
        "Merge-on-Read with `AWSDmsAvroPayload` and a deleted row in a log",
        "0.15: incremental",
        "fails: `NoSuchElementException`",
        "gives the rows",
        "Compact first",
    ),
    (
        "Merge-on-Read, an index that moves rows between partitions, a late row that loses against the stored one",
        "0.15: snapshot, incremental",
        "gives the stored row the late one's commit time, and pulls it as changed",
        "leaves the stored row as it is",
        "Its values are right",
    ),
    (
        "a partitioned table, `hoodie.datasource.read.begin.instanttime=earliest`",
        "0.15, 1.2: incremental",
        "gives no rows",
        "gives the rows of all commits",
        "Begin at `000`",
    ),
)


def page() -> str:
    differences = list(dict.fromkeys(d for case in CASES.values() for d in case.differences))
    return _PAGE.format(
        cases=len(CASES),
        meant="\n".join(_row(d, ", ".join(d.views)) for d in differences if not d.fault),
        seen="\n".join(f"| {' | '.join(row)} |" for row in _SEEN),
        faults="\n".join(_row(d, f"{_releases(d)}: {', '.join(d.views)}") for d in differences if d.fault),
    )


def _row(difference: Difference, where: str) -> str:
    return f"| {difference.table} | {where} | {difference.theirs} | {difference.ours} | {difference.way} |"


def _releases(difference: Difference) -> str:
    return ", ".join(f"{release}x" if release.endswith(".") else release for release in difference.releases)


if __name__ == "__main__":
    print(page(), end="")
