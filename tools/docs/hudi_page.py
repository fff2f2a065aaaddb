"""The page docs/coming-from-hudi.md: jobs before and after, and all of Hudi's options with what becomes of each.

`python -m tools.docs.hudi_page` prints it.
"""

import sys

from hoodie.config.datasource import ALL_GROUPS
from hoodie.config.hudi_options import HudiOption, OptionClass, hudi_options
from hoodie.config.options import declared

_PAGE = """\
# Coming from Hudi

<!-- Generated: python -m tools.docs.hudi_page > docs/coming-from-hudi.md -->

The ten lines that matter:

1. `pip install "hoodie[java]"`, then `hoodie.register(spark)` in the job. Nothing else of its text changes.
2. Take Hudi's jar, `spark.jars.packages`, the Kryo registrator, the extension and `HoodieCatalog` out of the session.
3. `format("hudi")`, `saveAsTable`, `spark.table`, `spark.sql` with MERGE, UPDATE, DELETE and CALL: all answered here.
4. Tables stay where they are and stay Hudi's; other engines read on, other Hudi writers write on.
5. Options keep their names. One that asks for what would not happen is an error which says what to do, before a write.
6. `hoodie.compat.unsupported=warn` goes on without those, but never without one that decides about rows.
7. There is no clustering and no bootstrap; compaction, cleaning, archiving, rollback, savepoints and Hive sync are run.
8. Several writers need a lock provider, as with Hudi: the same option, with the classes of Hudi or our own.
9. What never passes Python (Thrift Server, `spark-sql`, Scala) keeps Hudi's jar, or reads by another engine.
10. A job of Hudi 1.x upgrades tables on its first write: [two options](#before-a-job-of-hudi-1x-is-let-in) keep them.

A job keeps its text once it has said `hoodie.register(spark)`: `spark.read.format("hudi")`, `df.write.format("hudi")`,
`saveAsTable`, `spark.table` and `spark.sql` are answered by Hoodie ([calls](spark-calls.md), [SQL](sql.md#sparksql));
no jar, no `spark.jars.packages`, no serializer or extension to configure. What Python is not asked about, such as a
Thrift Server, [has ways round](sql.md#where-python-is-not-asked). Or it takes `hoodie.write` and `hoodie.read`, with
the same options. Tables are of version 6, which Hudi 0.14 and 0.15 write; what other engines do with them:
[other engines](sync.md).

## Three jobs

A daily upsert. Before:

<!-- not run: needs Hudi's jar -->

```python
{daily}df.write.format("hudi").options(**hudi_options).mode("append").save("trips")
```

After; the options are the same ones:

```python
import hoodie

{daily}df = spark.createDataFrame([(1, "oslo", 10), (2, "rome", 10)], "id int, city string, ts long")
hoodie.hudi.write(df, "trips", hudi_options, mode="append")
hoodie.hudi.read("trips", spark=spark).count()  # -> 2
```

A Merge-on-Read table that is compacted by its writer. Before:

<!-- not run: needs Hudi's jar -->

```python
(
    df.write.format("org.apache.hudi")
    .option("hoodie.table.name", "events")
    .option("hoodie.datasource.write.table.type", "MERGE_ON_READ")
    .option("hoodie.datasource.write.recordkey.field", "id")
    .option("hoodie.datasource.write.precombine.field", "ts")
    .option("hoodie.compact.inline", "true")
    .option("hoodie.compact.inline.max.delta.commits", "5")
    .option("hoodie.clustering.inline", "true")
    .mode("append")
    .save("events")
)
```

After. There is no clustering; the error says so, together with all else that would not happen:

```python
events = {{
    "hoodie.table.name": "events",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "5",
    "hoodie.clustering.inline": "true",
}}
hoodie.hudi.write(df, "events", events)  # raises InvalidOption: hoodie.clustering.inline='true': There is no clustering
del events["hoodie.clustering.inline"]
hoodie.hudi.write(df, "events", events).inserted  # -> 2
```

{third}## Where Hoodie differs on purpose

Rules that a job relies on are those of Hudi 0.15, but for these:

| subject | Hudi 0.15 | Hoodie | why |
|---|---|---|---|
{differences}

[Differences from Hudi](differences-from-hudi.md) lists what Hudi's own readers do otherwise with the same tables.

## Before a job of Hudi 1.x is let in

Its first write upgrades the table to version 8 (1.0) or 9, which Hoodie reads and writes and Hudi 0.15 does not.
Before it:

```sh
hoodie check trips --for hudi-1.x   # what it would not read, or change
hoodie compaction run trips          # else rows written behind the plan vanish for Hudi 1.x
```

and the job keeps the version with two options:

```properties
hoodie.write.auto.upgrade=false
hoodie.write.table.version=6
```

A table that was upgraded while a compaction was pending lacks, for all readers of Hudi 1.x, the updates and deletes
that were written behind its plan. Hoodie reads it right, and the data are there; to mend it, without writers:

```sh
hoodie check trips                  # names the logs
# in Hudi, if it says that the compaction is pending: CALL run_compaction(op => 'run', path => 'trips')
hoodie check trips --repair         # removes the metadata table, which the next write of Hudi's builds again
```

`make engines` runs all of this with Hudi 1.2.0. Where the two options keep version 6 no row vanishes (1.1.1 and 1.2.0).

## What becomes of an option

- **used**: it means what it means in Hudi. Its values are on the page of [all options](configuration.md).
- **no effect**, and none is needed: it is accepted. One line of the log `hoodie.options` (level INFO) names them all.
- **not in writes**, **not in reads**, **not supported**: it asks for something that would not happen. Such a call fails
  before anything is written, and its error names all of these options with what to do. The values in the table ask for
  nothing and are accepted, and so is an option of writes in a read. With `hoodie.compat.unsupported=warn` the call goes
  on without them and warns (`hoodie.errors.OptionIgnored`); not without those marked *rows*, which decide which rows or
  values are written or read.
- A name that is nearly one of these is an error, in the same message, which suggests the known name. Other names that
  Hudi does not have are left out, and one warning names them (`hoodie.errors.UnknownOptions`).
- Classes have the packages of every release: `com.uber.hoodie.ComplexKeyGenerator` and
  `org.apache.hudi.payload.AWSDmsAvroPayload` are those of today. `EmptyHoodieRecordPayload` on a write deletes its
  rows.

Options of Hudi 1.x that have another name in 0.15 are the same option: `hoodie.table.ordering.fields`,
`hoodie.clean.commits.retained`. `hoodie.write.record.merge.mode` is the payload class that means the same.

## All options

Options of Hudi 0.15 and 1.2 by name, then those of Spark, Glue and others that jobs have beside them. `fs.*` is every
name that begins with `fs.`.

| option | class | accepted | why, or what to do |
|---|---|---|---|
{rows}
"""

_DAILY = """\
hudi_options = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.upsert.shuffle.parallelism": 200,
    "hoodie.datasource.hive_sync.enable": "false",
}
"""

_THIRD = """\
A nightly load that replaces a table, and a reader that takes what changed. Before:

<!-- not run: needs Hudi's jar -->

```python
df.write.format("hudi").options(**hudi_options).mode("Overwrite").save("trips")
changed = (
    spark.read.format("hudi")
    .option("hoodie.datasource.query.type", "incremental")
    .option("hoodie.datasource.read.begin.instanttime", "20240101000000000")
    .load("trips")
)
then = spark.read.format("hudi").option("as.of.instant", "2024-01-01 12:00:00").load("trips")
```

After:

```python
done = hoodie.hudi.write(df, "trips", hudi_options, mode="Overwrite")
incremental = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.read.begin.instanttime": "20240101000000000",
}
hoodie.hudi.read("trips", incremental, spark=spark).count()  # -> 2
hoodie.hudi.read("trips", {"as.of.instant": done.instant}, spark=spark).count()  # -> 2
early = {"as.of.instant": "2024-01-01T12:00:00Z"}
hoodie.hudi.read("trips", early, spark=spark)  # raises InvalidInput: replaced the whole table
```

A begin that is no instant of the table is a point in time, as in Hudi. Text with `Z` or an offset, `datetime` and
`date` are taken wherever a time goes.

## Options in files

`hoodie.hudi.write(df, path, props="job.properties")` and `hoodie.hudi.read` take a properties file: `key=value` or
`key value` a line, `#` for comments, `include=other.properties`. Below it are the machine's defaults,
`/etc/hudi/conf/hudi-defaults.conf` and `hudi-defaults.conf` in the folder `HUDI_CONF_DIR`. The options of the call
count over both.

"""

#: Subject, what Hudi 0.15 does, what Hoodie does, why.
_DIFFERENCES = (
    (
        "a batch that lacks columns of the table, with `hoodie.datasource.write.reconcile.schema=true`",
        "an upsert of a stored key fails (NullPointerException)",
        "its rows are null there, as with `hoodie.write.set.null.for.missing.columns=true`; where the table takes no "
        "nulls the batch is refused ([columns that a batch lacks](writing.md#columns-that-a-batch-lacks))",
        "that is what the option says",
    ),
    (
        "cleaning by hours when all commits are older than the hours",
        "deletes nothing until the next commit",
        "keeps what reads as of the newest commit need",
        "a table that is no longer written would keep its old versions for ever",
    ),
    (
        'a write with `mode("overwrite")`',
        "removes the table first",
        "the old table is there until the new one is, and a savepoint forbids it ([overwriting](design/overwrite.md))",
        "a job that fails half-way must not leave nothing",
    ),
    (
        "`HoodieSparkRecordMerger` on a table that exists",
        "goes before the payload class, in that read or write",
        "the table's payload class decides, in all of them; a new table gets the same rule, "
        "`DefaultHoodieRecordPayload`",
        "readers and writers of a table must not differ",
    ),
    (
        "Merge-on-Read: a row after a delete in the logs, of a lesser ordering value than the base file's row",
        "the base file's row is back (or, by `PartialUpdateAvroPayload`, fills the new row)",
        "the new row, by itself ([deletes in logs](writing.md#deletes-in-logs)). Hudi shows the old row until this "
        "library compacts the table",
        "what is deleted stays deleted, and a compaction changes no row",
    ),
    (
        "Merge-on-Read, `PartialUpdateAvroPayload`: several versions of a row in logs",
        "are made into one, which then meets the base file's row",
        "meet it one by one, as on Copy-on-Write. Hudi's reads may differ where rows came late, until a compaction",
        "a row does not depend on the type, nor on when logs are compacted",
    ),
    (
        "Merge-on-Read, `OverwriteNonDefaultsWithLatestAvroPayload`, an index that moves rows "
        "(`…update.partition.path=true`): a row that stays where it is",
        "is filled from the stored row before it goes to the log",
        "goes to the log as it came, as with all other indexes: a base file's row fills it, rows of logs do not "
        "([late rows](writing.md#late-rows-and-deletes))",
        "stored rows are read of keys that may move only",
    ),
    (
        "SQL `MERGE`, Merge-on-Read: a matched row of a lesser ordering value than the stored row's",
        "wins against a row in a base file, by the default payload class. On Copy-on-Write it has no effect",
        "has no effect on either type ([late rows of a merge](merging.md#late-rows))",
        "a row does not depend on the type, nor on when logs are compacted",
    ),
    (
        "`CREATE TEMPORARY VIEW … AS SELECT` from a table",
        "follows the table",
        "has the rows of the time when it was made. `CREATE VIEW` and `CREATE TEMPORARY VIEW … USING hudi` follow "
        "([SQL](sql.md#names))",
        "Spark reads the rows by itself, as fast as Parquet",
    ),
    (
        "`ALTER TABLE … ALTER COLUMN … TYPE` from int to bigint or double, float to double, without "
        "`hoodie.schema.on.read.enable`",
        "is refused",
        "is done ([columns](sql.md#columns))",
        "files of before are read so without it",
    ),
    (
        "SQL `CREATE OR REPLACE TABLE`",
        "is refused",
        "puts the new table in place of the old one by one commit",
        "dbt and notebooks say so",
    ),
    (
        "`TIMESTAMP AS OF` an expression, `VERSION AS OF` an instant",
        "is refused, but for literals; `VERSION` always",
        "reads the table as of then",
        "Spark's grammar has both",
    ),
    (
        "`ALTER TABLE … DROP PARTITION` with some of the partition columns; `… ADD PARTITION`",
        "is refused",
        "drops all partitions that have the values; adding has nothing to do",
        "jobs of Hive say so",
    ),
    (
        "`DESCRIBE t PARTITION (…)`",
        "is refused: the partition is not in the metastore",
        "gives the columns, and with `EXTENDED` the folder and bytes of the partition",
        "Spark describes partitions of its own tables so",
    ),
    (
        "`MERGE`, `UPDATE` and `DELETE` of a temporary view that shows all of a table",
        "are refused",
        "change the table ([names](sql.md#names))",
        "notebooks make such views of what they read",
    ),
    (
        "partition TTL, Merge-on-Read: rows that were updated in logs",
        "do not keep a partition: only base files count",
        "keep it, as every write does ([partitions that expire](services.md#partitions-that-expire))",
        "rows that were just written are not deleted",
    ),
    (
        "`DESCRIBE t column`, `SHOW CREATE TABLE`",
        "leaves the column's comment out; names Hudi's own five columns, too",
        "has the comment; can be run again as it is",
        "that is what they are for",
    ),
    (
        "`CREATE INDEX`, `DROP INDEX`, `SHOW INDEXES`, `REFRESH INDEX`",
        "keeps a note of the index, which no query uses",
        "is refused",
        "an index that does nothing misleads",
    ),
    (
        "SQL `INSERT INTO` a table with an ordering column",
        "0.15: is an upsert. 1.2: is an insert, after which a key may be there more than once",
        "is an upsert, as in 0.15; `SET hoodie.spark.sql.insert.into.operation = insert` does as 1.2 ([settings]"
        "(sql.md#settings))",
        "a job that ran with 0.15 keeps its rows unique",
    ),
    (
        "SQL `UPDATE` of a row whose key the table has more than once, as inserts may leave it",
        "is done. On Merge-on-Read one of the rows may take the values of the other",
        "is refused (`KeyMatchedTwice`)",
        "no row must get another one's values",
    ),
    (
        "SQL `MERGE … ON` the key alone, a source without the partition column",
        "has no effect",
        "updates the row",
        "that is what the statement says",
    ),
    (
        "an update or delete of a key that a bulk_insert stored more than once in one base file",
        "0.15: Copy-on-Write: meets all of its rows, Merge-on-Read: the first. 1.2: Copy-on-Write, or a global index: "
        "the first; else all",
        "meets all of its rows, on both types",
        "what is deleted is gone, and a row does not depend on the type",
    ),
    (
        "SQL `MERGE` or `UPDATE` that assigns a struct whose fields have other names than the column's",
        "takes the fields by their place, also of structs with the same names in another order",
        "takes the fields by name, and refuses other names: cast the struct to the column's type",
        "no field must get another one's value",
    ),
    (
        "SQL `MERGE … WHEN NOT MATCHED BY SOURCE`",
        "has no effect, nor has it in 1.2",
        "is done",
        "that is what the statement says",
    ),
    (
        '`create_table(…, ordering=…)` without a payload class. Tables that `hoodie.hudi.write`, `format("hudi")`, SQL '
        "or streams make have Hudi's default",
        "`OverwriteWithLatestAvroPayload`: a late row replaces a stored one, though not one in a log",
        "`DefaultHoodieRecordPayload`, as Hudi 1.x infers it: a late row loses ([ordering and "
        "payloads](writing.md#ordering-and-payloads))",
        "an ordering column says which row is newer, on both types and whether or not logs were compacted",
    ),
    (
        "an upsert of a row whose ordering value is null",
        "0.15: is an error. 1.2: is taken where no other row of the key is there. Else it is an error on "
        "Copy-on-Write; Merge-on-Read takes it into a log, and the table can no longer be read, compacted or written "
        "to",
        "is an error, as in 0.15. Inserts and bulk inserts take it; a later row with a value wins",
        "a null has no order, and a table must stay readable",
    ),
    (
        "the payload class of a Copy-on-Write table",
        "is not written down; each job names its own",
        "`hoodie.compaction.payload.class` names it on both types; where it is the default one, a write may still name "
        "another",
        "Hudi 1.x makes a table without one an event-time table when it upgrades it",
    ),
    (
        "timestamps as text in keys and paths (`…consistent.logical.timestamp.enabled`)",
        "on the clocks of the JVM that writes",
        "in UTC, or in `hoodie.keygen.timebased.timezone` (else `…output.timezone`): set it to write to a table whose "
        "JVM had another zone. A new table stores the zone, and a write that names another is refused",
        "a row must have one key in every process",
    ),
    (
        "a table without a [metadata table](metadata.md)",
        "its next write builds one, unless `hoodie.metadata.enable=false`",
        "a write builds the file lists where `hoodie.metadata.enable=true` is given, and keeps those that are there",
        "each commit pays for them, and a table of few partitions is listed faster without",
    ),
    (
        "`hoodie.compact.schedule.inline=true` alone",
        "an error: its batch writer compacts inline by default",
        "compactions are planned and not run",
        "who asks for plans wants others to run them",
    ),
    (
        "compaction of a stream",
        "beside it, in a thread of its own",
        "after the micro-batch that makes it due ([streaming](streaming.md))",
        "a commit and its compaction are seen in one order by all",
    ),
    (
        'a stream with `outputMode("update")`',
        "replaces the whole table by each micro-batch",
        "does the write's operation, upsert by default, as append does",
        "rows of before must not be lost",
    ),
    (
        "a stream with another checkpoint than the one before it, or a second stream, without "
        "`…streaming.checkpoint.identifier`",
        "leaves out the micro-batches whose numbers the table has: all streams have one name by default",
        "writes them: the name is the query's id ([streaming](streaming.md))",
        "no row may be lost without a word",
    ),
    (
        "a stream with `toTable(name)` of a name that no table has",
        "1.2: makes a table without keys and partitions, then stops the application where the options name a key",
        "is refused: `CREATE TABLE` makes it first",
        "a name must not lead to a table without its key",
    ),
    (
        "a pending compaction that another process planned",
        "is run after the next commit of a writer that compacts inline by default",
        "is left to that process until the next compaction is due, or for good while it runs it; a run of Hudi "
        "counts as over an hour after its last file",
        "plans are made for compactors",
    ),
    (
        "`hoodie.combine.before.upsert=false`, several rows of one key in a batch",
        "1.2, Copy-on-Write: keeps all of a key that the table does not have",
        "takes the last one",
        "an upsert leaves one row of a key",
    ),
    (
        "`hoodie.datasource.insert.dup.policy` of a DataFrame write",
        "0.15: has no effect. 1.2: `drop` makes an upsert an insert as well, and keeps all rows of one key that the "
        "table does not have",
        "is that of SQL inserts: drop, fail ([insert](writing.md#insert))",
        "an option that decides about rows must not be ignored",
    ),
    (
        "pre-commit validators on Merge-on-Read",
        "fail on commits that write logs alone",
        "run on the merged rows ([checks](writing.md#checks-before-a-commit))",
        "the rows that readers would see are what is checked",
    ),
    (
        "columns altered with `hoodie.schema.on.read.enable`",
        "are read by their ids with that option, else by name: renamed ones are null",
        "are read by their ids always; a write that adds or changes columns of such a table is refused, `ALTER TABLE` "
        "does so ([columns](sql.md#columns))",
        "nulls without a word are lost values. A pending compaction that is older than a RENAME keeps the values here",
    ),
    (
        "two rows whose compound keys read alike, such as `a:x,b:y,b:z`",
        "one overwrites the other",
        "an error that names both, in a batch and against the table, of a delete, too "
        "([compound keys](writing.md#compound-keys))",
        "two keys must not become one silently",
    ),
)


def page() -> str:
    """The page as Markdown."""
    used = {key for group in ALL_GROUPS for _, spec in declared(group) for key in spec.keys}
    names = sorted(
        hudi_options().values(), key=lambda known: (not known.key.lstrip("_.").startswith("hoodie"), known.key)
    )
    return _PAGE.format(
        daily=_DAILY,
        third=_THIRD,
        differences="\n".join(f"| {' | '.join(row)} |" for row in _DIFFERENCES),
        rows="\n".join(_row(known, known.key in used) for known in names),
    )


def _row(known: HudiOption, used: bool) -> str:
    """A line of the table; an option that a group declares is used, whatever the list says."""
    kind, accepted, advice = known.kind, "", known.advice
    if used or kind is OptionClass.USED:
        kind, advice = OptionClass.USED, ""
    elif kind is not OptionClass.NO_EFFECT:
        accepted = ", ".join(f"`{value}`" for value in sorted(known.accepted - {""}))
        advice += "."
    marked = f"{kind}, *rows*" if known.rows and kind is not OptionClass.USED else kind
    return f"| `{known.key}` | {marked} | {accepted} | {advice} |"


if __name__ == "__main__":
    sys.stdout.write(page())
