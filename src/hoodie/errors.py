"""The error tree: one class for each thing a caller can do about a failure. docs/errors.md draws it.

Every error pickles (its constructor arguments are its `args`), so that it travels from an executor to the driver.
"""


def clause(problem: object) -> str:
    """What an error, of ours or of a library, says, without the full stop at its end: a message goes on after it."""
    return str(problem).rstrip(". \n")


def sentence(problem: object) -> str:
    """What an error says as a sentence, with one full stop or question mark at its end."""
    text = clause(problem)
    return text if text.endswith("?") else f"{text}."


class HoodieError(Exception):
    """Base of all errors raised on purpose; subclasses differ by what a caller can do."""


class InvalidOption(HoodieError, ValueError):
    """A `hoodie.*` option or an argument that is unknown, malformed or contradicts another."""


class TableNotFound(HoodieError):
    """The path holds no table. `why` is what the store says is missing, if not just the table; `is_file` that the path,
    one above it, or the .hoodie in it, is a file; `holds` what there is in place of a table."""

    def __init__(self, path: str, why: str = "", is_file: bool = False, holds: str = "") -> None:
        super().__init__(path, why, is_file, holds)
        self.path, self.why, self.is_file, self.holds = path, why, is_file, holds

    def __str__(self) -> str:
        if self.is_file and self.path.endswith("/.hoodie"):
            return f"{self.path}: a file, and a table has a folder of that name. Move it away, or restore the folder."
        if self.is_file:
            return f"{self.path}: a file, and a table is a folder. Name the folder that has .hoodie in it."
        if self.why:
            return f"{self.path}: no table here: {clause(self.why)}. Check the URI, the endpoint and the region."
        if self.holds:
            return (
                f"{self.path} holds {self.holds}, and is no Hudi table. Open a folder that is, or create one in an "
                "empty folder with hoodie.create_table, and write the rows to it."
            )
        return f"{self.path}: no table here (.hoodie/hoodie.properties is missing). Create it with hoodie.create_table."


class SettingsMissing(HoodieError):
    """The path holds a timeline with commits, and the table's settings are gone.

    layout  of the timeline
    """

    def __init__(self, path: str, commits: int, layout: int = 1) -> None:
        super().__init__(path, commits, layout)
        self.path, self.commits, self.layout = path, commits, layout

    def __str__(self) -> str:
        version = "version (hoodie.write.table.version=8 or 9 in its options), " if self.layout == 2 else ""
        return (
            f"{self.path}: .hoodie/hoodie.properties is missing, and the timeline has {self.commits} commits: a table "
            f"lost its settings. Put the file back from a copy of the table, or call hoodie.create_table with the "
            f"{version}name, key, partition columns, ordering and type that the table had."
        )


class TableMismatch(HoodieError):
    """The table at the path has other settings than the caller asked for."""


class UnsupportedTable(HoodieError):
    """A real table that this library does not read, or does not write: version, payload, key."""


class CorruptFile(HoodieError):
    """Bytes that are not what the format says. Never raised for a file that is absent."""

    def __init__(self, path: str, problem: str, offset: int | None = None, advice: str = "") -> None:
        super().__init__(path, problem, offset, advice)
        self.path, self.problem, self.offset, self.advice = path, problem, offset, advice

    def __str__(self) -> str:
        where = self.path if self.offset is None else f"{self.path} at byte {self.offset}"
        return f"{where}: {clause(self.problem)}." + (f" {self.advice}" if self.advice else "")


class CorruptLogBlock(CorruptFile):
    """A log block that cannot be read as the format says."""


class MissingFile(HoodieError):
    """A data file that a completed commit published is not there: reads would give fewer or older rows, writes would
    build on these."""

    def __init__(self, path: str, instant: str, action: str, count: int = 1, doing: str = "read") -> None:
        super().__init__(path, instant, action, count, doing)
        self.path, self.instant, self.action, self.count, self.doing = path, instant, action, count, doing

    def __str__(self) -> str:
        more = f", and {self.count - 1} other published files" if self.count > 1 else ""
        text = (
            f"{self.path}: {self.action} {self.instant} published this file, and it is missing{more}. `hoodie check` "
            "lists what is lost. Restore the files from a copy of the table, or restore the table to a savepoint"
        )
        if self.doing == "write":
            return (
                f"{text}. Until then its partition takes no upsert, insert or delete; insert_overwrite and "
                "delete_partition put new rows, or none, in place of all it had."
            )
        return f"{text}; or read what is left with hoodie.read.ignore.missing.files=true."


class ListingStale(HoodieError):
    """Storage has a file that its listing does not show: a read would give fewer or older rows, a write would build on
    these."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return (
            f"{self.path}: storage has this file, and its listing does not show it. Nothing is read or written by such "
            "a listing: call again. If that happens more than once, this storage lists late; tables need one whose "
            "listings show what was written and deleted before (docs/object-stores.md)."
        )


class InvalidInput(HoodieError, ValueError):
    """Rows or arguments that cannot be written; nothing on disk has changed."""


class SchemaMismatch(InvalidInput):
    """Columns of a batch, a file or a log block that the table's schema cannot take in."""


class KeyInTwoPartitions(InvalidInput):
    """A global index met keys that the table holds in more than one partition: it cannot tell which is meant."""

    def __init__(self, keys: int, named: dict[str, tuple[str, ...]]) -> None:
        super().__init__(keys, named)
        self.keys, self.named = keys, named

    def __str__(self) -> str:
        shown = "; ".join(f"{key!r} in {', '.join(map(repr, partitions))}" for key, partitions in self.named.items())
        return (
            f"{self.keys} keys of the batch are in more than one partition of the table, such as {shown}. An index "
            "that is not global, or inserts, brought them there. Delete these keys, which takes all their rows away, "
            "and write the rows that are wanted; or use an index that is not global."
        )


class KeyMatchedTwice(InvalidInput):
    """Two rows of a merge's source are for one row of the table, and do more than delete it; or the table that an
    update is made of has a key twice. Nothing has changed. `stored` tells the second."""

    def __init__(self, keys: int, named: tuple[str, ...], stored: bool = False) -> None:
        super().__init__(keys, named, stored)
        self.keys, self.named, self.stored = keys, tuple(named), stored

    def __str__(self) -> str:
        number = "1 key has" if self.keys == 1 else f"{self.keys} keys have"
        keys = ", ".join(map(repr, self.named))
        if self.stored:
            return (
                f"{number} more than one row in the table, such as {keys}: an update needs one row a key. Read the "
                "rows, delete the key, and upsert the row that is right; hoodie doctor lists such keys. Compact a "
                "Merge-on-Read table between the two, by schedule_compaction(options="
                "{'hoodie.compact.inline.max.delta.commits': 1}) and compact(): until then the row that is upserted "
                "takes the place of each that was deleted."
            )
        return (
            f"{number} more than one row among those to be written, such as {keys}: which one counts is not said. "
            "Aggregate the source to a row a key, or filter it by the clauses' conditions. (If the table itself has a "
            "key twice, delete it and write its row again.)"
        )


class WriteConflict(HoodieError):
    """Another writer took the instant or changed the same file groups; try the write again."""


class ValidationFailed(HoodieError):
    """A commit would not pass a query of `hoodie.precommit.validators`: it is rolled back, and nothing has changed."""

    def __init__(self, query: str, problem: str) -> None:
        super().__init__(query, problem)
        self.query, self.problem = query, problem

    def __str__(self) -> str:
        return (
            f"the commit does not pass {self.query!r}: {clause(self.problem)}. It is rolled back; nothing has changed."
        )


class LockTimeout(HoodieError):
    """Somebody else held a lock for longer than the options say to wait; nothing has changed."""


class LockLost(HoodieError):
    """A lock that this writer had is free or another's: it was out of touch for too long. Try the write again."""


class InstantNotFound(HoodieError):
    """The timeline has no such instant, or not in the state that the call needs."""


class StatementError(InvalidInput):
    """A SQL statement on a table of ours that cannot be read, or asks for what cannot be done; nothing has changed."""


class HollowCommit(HoodieError):
    """A pending commit that is older than completed ones: who reads changes and goes on would miss its rows."""


class HistoryGone(HoodieError):
    """Changes that are no longer available: their commits are archived, or their files cleaned. `images`: change data
    was asked for."""

    def __init__(self, begin: str, end: str, problem: str, earliest: str, images: bool = False) -> None:
        super().__init__(begin, end, problem, earliest, images)
        self.begin, self.end, self.problem, self.earliest, self.images = begin, end, problem, earliest, images

    def __str__(self) -> str:
        instead = (
            "read the whole table for the rows as they are now: their earlier images cannot be made"
            if self.images
            else "read the whole table, for those rows that are still the latest, with "
            "hoodie.datasource.read.incr.fallback.fulltablescan.enable=true"
        )
        return (
            f"The changes in ({self.begin or 'earliest'}, {self.end}] are not all there: {clause(self.problem)}. The "
            f"earliest available begin is {self.earliest}. Begin there; or {instead}."
        )


class InvalidPlan(HoodieError):
    """A plan of a table service that the table's files do not allow to carry out, or to withdraw."""


class PlanInUse(WriteConflict):
    """Another process carries the plan out, or makes one, at this moment."""


class IndexUnavailable(HoodieError):
    """An index outside the table cannot be reached, or does not store what it is sent."""


class CorruptIndex(HoodieError):
    """An index outside the table says what cannot be: `hoodie index rebuild` makes it anew from the table."""


class StorageFailed(HoodieError, OSError):
    """Storage refused a call or could not be reached; an OSError, too. What it said is the cause (`__cause__`).

    A write that fails so is rolled back, or by the next write if even that fails: readers see nothing of it.
    """

    advice = "Repair that, and call again."

    def __init__(self, number: int, problem: str) -> None:
        """
        number   of `errno`
        problem  what storage said, with the path where it named one
        """
        super().__init__(number, problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"{clause(self.problem)}. {self.advice}"


class StorageFull(StorageFailed):
    """No space left, or a quota is used up."""

    advice = (
        "There is no space left, or a quota is used up. Free some and call again. What a failed write left is removed "
        "when it is rolled back, at the latest by the next write; cleaning (HoodieTable.clean) frees old file "
        "versions. Both first write down what they delete: free a megabyte outside the table for that."
    )


class AccessDenied(StorageFailed, PermissionError):
    """Storage does not let this process do what it asked for."""

    advice = (
        "This process may not do that: see who owns the folder, its mode or policy, and whether it is mounted "
        "read-only. Writers create and delete files in the whole folder of the table, .hoodie included; Spark's "
        "executors run as a user of their own."
    )


class CredentialsRejected(AccessDenied):
    """Storage does not know the credentials, or they have expired."""

    advice = (
        "The credentials are missing, wrong or expired. Renew them where the store's driver looks for them, for S3 in "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, in the profile of AWS_PROFILE, or in storage_options={'key': "
        "'...', 'secret': '...'}, hoodie.storage.key and hoodie.storage.secret among the options; for the driver and "
        "for Spark's executors. Then call again."
    )


class WrongRegion(StorageFailed):
    """The bucket is in another region than the one that the storage's driver asks."""

    advice = (
        "Give the bucket's region to the driver: storage_options={'client_kwargs': {'region_name': '...'}}, "
        'hoodie.storage.client_kwargs={"region_name": "..."} among the options, or AWS_DEFAULT_REGION for the driver '
        "and for Spark's executors; and where an endpoint_url is set, that of this region."
    )


class NameTooLong(StorageFailed, InvalidInput):
    """A partition value, or the path of the table, makes a name that storage does not take."""

    advice = (
        "The name is too long for this storage: most file systems take 255 bytes for each folder or file name. Shorten "
        "the partition value (or the table's path): another partition column, or fewer of them in one folder name."
    )


class StorageUnavailable(StorageFailed):
    """Storage, or another service that the call needs, did not answer, however often it was tried."""

    advice = (
        "It may pass: call again later. If it does not, look at the network and the address of the storage; or, for a "
        "connection that this machine refuses, whether Spark is still running."
    )


class BucketNotFound(StorageFailed, FileNotFoundError):
    """The store has no such bucket or container."""

    advice = "Check the URI, the endpoint and the region, or create the bucket: a table does not make its own."


class FileGone(StorageFailed, FileNotFoundError):
    """A file that a call was about to read is no longer there."""

    advice = (
        "A cleaning, a rollback or another writer may have removed it since the table was looked at: call again. If it "
        "stays missing, `hoodie check` says what the table lacks, and hoodie.read.ignore.missing.files=true reads what "
        "is left."
    )


class MetastoreUnavailable(HoodieError):
    """The metastore did not answer, or not with what was asked for. What was synced until then stays."""

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(address, problem)
        self.address, self.problem = address, problem

    def __str__(self) -> str:
        return (
            f"metastore {self.address}: {clause(self.problem)}. See that it runs and that "
            "hoodie.datasource.hive_sync.metastore.uris has its address (it is spoken to in plain Thrift, without "
            "Kerberos and TLS); then sync again, which goes on with what is missing."
        )


class SyncRefused(HoodieError):
    """The metastore cannot take the table as it is, or holds something else by its name: nothing there has changed."""

    def __init__(self, where: str, problem: str) -> None:
        """
        where    the column, partition or entry
        problem  what is wrong with it, and what to do
        """
        super().__init__(where, problem)
        self.where, self.problem = where, problem

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


class WorkerEnvironment(HoodieError):
    """Spark's Python workers cannot run this library."""


class MissingPackage(HoodieError):
    """A package that only some calls need is not installed."""

    def __init__(self, package: str, extra: str, needed_for: str) -> None:
        super().__init__(package, extra, needed_for)
        self.package, self.extra, self.needed_for = package, extra, needed_for

    def __str__(self) -> str:
        return f"{self.needed_for} needs {self.package}: pip install 'hoodie[{self.extra}]'"


class JavaNotFound(HoodieError):
    """Spark has no Java to run on."""

    def __init__(self, seen: str) -> None:
        super().__init__(seen)
        self.seen = seen

    def __str__(self) -> str:
        return (
            f"Spark needs Java 17 or later and none was found{f' ({self.seen})' if self.seen else ''}. Any of these "
            "will do: pip install 'hoodie[java]', which brings a Java along; apt-get install openjdk-17-jre-headless; "
            "or JAVA_HOME set to the folder of an installed one."
        )


class HoodieWarning(UserWarning):
    """Base of all warnings: `warnings.simplefilter("error", HoodieWarning)` makes errors of them.

    What was done stands, or the rows are given; something about it needs a look.
    """


class DamagedLog(HoodieWarning):
    """Bytes of a log that were skipped, as the format has it: a writer died there, or the file is damaged.

    `warnings.simplefilter("error", DamagedLog)` makes reads fail on them.

    instant  the bytes are a whole block of this instant, which is not on the timeline; "": they are no whole block
    """

    def __init__(self, path: str, offset: int, problem: str, instant: str = "") -> None:
        super().__init__(path, offset, problem, instant)
        self.path, self.offset, self.problem, self.instant = path, offset, problem, instant

    def __str__(self) -> str:
        return f"{self.path} at byte {self.offset}: {clause(self.problem)}. Skipped: rows may be missing."


class MissingFileIgnored(HoodieWarning):
    """A published file that is missing, and a read or service that goes on without it: rows may be missing, or old.

    `warnings.simplefilter("error", MissingFileIgnored)` makes reads fail on them whatever their options.
    """

    def __init__(self, path: str, instant: str, action: str, consequence: str = "") -> None:
        super().__init__(path, instant, action, consequence)
        self.path, self.instant, self.action, self.consequence = path, instant, action, consequence

    def __str__(self) -> str:
        what = self.consequence or "Read without it: rows are missing, or show in an older version."
        return f"{self.path}: {self.action} {self.instant} published this file, and it is missing. {what}"


class MetadataTableIgnored(HoodieWarning):
    """A metadata table that is out of date or damaged: the read lists the storage instead, and has the right rows.

    `warnings.simplefilter("error", MetadataTableIgnored)` makes reads fail on it.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return (
            f"{self.path}: the metadata table is not used: {clause(self.problem)}. The storage is listed instead. "
            "`hoodie metadata drop` removes it, and `hoodie metadata create` builds it anew; with "
            "hoodie.metadata.enable=false a read does not look at it."
        )


class RecordIndexIgnored(HoodieWarning):
    """A record index that is missing, out of date or damaged: keys are looked up in all base files, with the same hits.

    `warnings.simplefilter("error", RecordIndexIgnored)` makes calls fail on it.
    """

    def __init__(
        self,
        path: str,
        problem: str,
        advice: str = "`hoodie metadata create --with record_index --again` builds it anew.",
    ) -> None:
        super().__init__(path, problem, advice)
        self.path, self.problem, self.advice = path, problem, advice

    def __str__(self) -> str:
        return (
            f"{self.path}: the record index is not used: {clause(self.problem)}. Keys are looked up in the base "
            f"files of the whole table instead. {self.advice}"
        )


class MetadataTableDropped(HoodieWarning):
    """A metadata table, or a part of it, that could not be kept right and was removed: reads list the storage.

    `warnings.simplefilter("error", MetadataTableDropped)` makes writes fail after it.
    """

    def __init__(self, path: str, what: str, problem: str) -> None:
        super().__init__(path, what, problem)
        self.path, self.what, self.problem = path, what, problem

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.what} was removed: {clause(self.problem)}. `hoodie metadata create` builds again what "
            "is kept here (`--with` names partitions beside the file lists), and of a table of version 8 or 9 Hudi's "
            "next write all that is defined."
        )


class MetafileMissing(HoodieWarning):
    """A folder with data files and without `.hoodie_partition_metadata`.

    Where a commit of the active timeline names the partition it is read all the same; else it is not.
    """

    def __init__(self, partition: str, read: bool) -> None:
        super().__init__(partition, read)
        self.partition, self.read = partition, read

    def __str__(self) -> str:
        where = f"partition {self.partition!r}" if self.partition else "the base path"
        if self.read:
            return (
                f"{where} has lost its .hoodie_partition_metadata: it is read, as commits name it, but other readers "
                "do not look into it. The next write to it, or `hoodie check --repair`, restores the file."
            )
        return (
            f"{where} has data files of completed instants and no .hoodie_partition_metadata, and no commit on the "
            "active timeline names it: it is not read. If it is a partition, restore that file from another one of "
            "the same depth; if not, move the folder out of the table."
        )


class CommitNotChecked(HoodieWarning):
    """A completed commit that cannot be read: whether the files that it published are all there is not known."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return (
            f"{self.path}: {clause(self.problem)}. Whether the files of this commit are all there is not known; "
            "`hoodie check` examines the table."
        )


class ContradictoryTimestamps(HoodieWarning):
    """Commits and files of a table disagree about the unit of a column's timestamps.

    `warnings.simplefilter("error", ContradictoryTimestamps)` makes reads and writes fail on them.
    """

    def __init__(self, table: str, column: str, declared: str, file: str, avro: str, taken: str) -> None:
        super().__init__(table, column, declared, file, avro, taken)
        self.table, self.column, self.taken = table, column, taken
        self.declared, self.file, self.avro = declared, file, avro

    def __str__(self) -> str:
        avro = f" (their Avro schema: {self.avro})" if self.avro else ""
        return (
            f"{self.table}: column {self.column} is {self.declared} in the commits and {self.file} in data "
            f"files{avro}. Read as {self.taken}; check a few values: the wrong unit would make them 1000 times too "
            "large or too small."
        )


class HudiCannotRead(HoodieWarning):
    """The table is about to get something that releases of Hudi cannot read, or cannot write to.

    `warnings.simplefilter("error", HudiCannotRead)` makes such writes fail before they begin.
    """


class ColumnBecomesText(HoodieWarning):
    """A batch has text in a column of numbers, and the column grows to text, as Hudi lets it.

    `warnings.simplefilter("error", ColumnBecomesText)` makes such writes fail before they begin.

    table, column, before  names of the two, and the type that the column had
    """

    def __init__(self, table: str, column: str, before: str) -> None:
        super().__init__(table, column, before)
        self.table, self.column, self.before = table, column, before

    def __str__(self) -> str:
        return (
            f"column {self.column!r} of table {self.table!r} was {self.before} and is string from this write on, as "
            "the batch has text there. If that is not meant, roll the write back and cast the column"
        )


class HudiSettings(HoodieWarning):
    """Settings of a Spark session name classes of Hudi's jar, which is not there.

    settings  setting -> (the classes, what comes of it)
    """

    def __init__(self, settings: dict[str, tuple[str, str]]) -> None:
        super().__init__(settings)
        self.settings = settings

    def __str__(self) -> str:
        lines = "; ".join(f"{key}={value} ({what})" for key, (value, what) in self.settings.items())
        return (
            f"this session has settings that need Hudi's jar: {lines}. Remove these lines where the session is made: "
            "its builder, spark-defaults.conf, or --conf"
        )


class ColumnLeftOut(HoodieWarning):
    """Columns of a batch were not written: all of their values are null, which tells no type."""

    def __init__(self, table: str, columns: tuple[str, ...]) -> None:
        super().__init__(table, columns)
        self.table, self.columns = table, columns

    def __str__(self) -> str:
        names, one = ", ".join(map(repr, self.columns)), len(self.columns) == 1
        return (
            f"table {self.table!r}: {'column' if one else 'columns'} {names} {'has' if one else 'have'} no value, "
            f"which tells no type, and {'is' if one else 'are'} left out. Cast {'it' if one else 'them'} to have "
            f"{'it' if one else 'them'} written"
        )


class JarPresent(HoodieWarning):
    """A Hudi jar is on Spark's class path, and its format keeps its names."""


class PartitionsNotThere(HoodieWarning):
    """A job of delete_partition, a DROP PARTITION or a query of the command line names partitions that the table does
    not have, or none: the others go, as in Hudi, or are read.

    `warnings.simplefilter("error", PartitionsNotThere)` makes such jobs fail before they delete anything.
    """

    def __init__(self, table: str, partitions: tuple[str, ...], use: str = "deleted") -> None:
        super().__init__(table, partitions, use)
        self.table, self.partitions, self.use = table, partitions, use

    def __str__(self) -> str:
        named = f"no rows in partitions {list(self.partitions)}" if self.partitions else "no partition that is named"
        return (
            f"table {self.table!r} has {named}, so nothing of them is {self.use}. Partition paths are such as "
            "2024-01-31 or city=oslo; SHOW PARTITIONS lists them"
        )


class NoRecordKey(HoodieWarning):
    """A table is made without a record key.

    `warnings.simplefilter("error", NoRecordKey)` makes such calls fail before they make it.
    """

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return (
            f"table {self.table!r} is made without a record key: each row gets a key of its own, upserts insert, and "
            "rows are updated and deleted by condition or by _hoodie_record_key. If columns identify a row, make the "
            "table with them (record_key=, hoodie.datasource.write.recordkey.field, primaryKey): that cannot be changed"
        )


class NoRowsYet(HoodieWarning):
    """A read as of an instant before the first commit of a table: it has no rows.

    `warnings.simplefilter("error", NoRowsYet)` makes such reads fail.
    """

    def __init__(self, table: str, as_of: str, first: str) -> None:
        super().__init__(table, as_of, first)
        self.table, self.as_of, self.first = table, as_of, first

    def __str__(self) -> str:
        return f"as of {self.as_of} table {self.table!r} has no rows yet: its first commit is {self.first}"


class SmallFiles(HoodieWarning):
    """A write makes very many small files, as the table's partitions or buckets have it: reads of the table are slow.

    `warnings.simplefilter("error", SmallFiles)` makes such writes fail before they are published.
    """

    def __init__(self, table: str, problem: str) -> None:
        super().__init__(table, problem)
        self.table, self.problem = table, problem

    def __str__(self) -> str:
        return f"table {self.table!r}: this write makes {self.problem}"


class OptionIgnored(HoodieWarning):
    """Options of Hudi that ask for something that does not happen here, with `hoodie.compat.unsupported=warn`.

    `warnings.simplefilter("error", OptionIgnored)` makes such calls fail before they begin.
    """


class UnknownOptions(HoodieWarning):
    """Options that neither Hudi nor this library knows, and that look like no known one: they have no effect.

    `warnings.simplefilter("error", UnknownOptions)` makes such calls fail before they begin.
    """

    def __init__(self, *keys: str) -> None:
        super().__init__(*keys)
        self.keys = keys

    def __str__(self) -> str:
        return (
            f"unknown options, which have no effect: {', '.join(self.keys)}. docs/configuration.md has the names that "
            "have one, docs/coming-from-hudi.md all of Hudi's"
        )


class ServiceFailed(HoodieWarning):
    """A table service that runs after a commit has failed: the commit stands, and the service is done again later.

    `warnings.simplefilter("error", ServiceFailed)` makes writes fail on them, though their rows are published.
    """

    def __init__(self, service: str, instant: str, problem: str) -> None:
        super().__init__(service, instant, problem)
        self.service, self.instant, self.problem = service, instant, problem

    def __str__(self) -> str:
        return f"{self.instant} is committed, but {self.service} after it failed: {self.problem}"


class IndexOutOfDate(HoodieWarning):
    """A rollback stands, but an index outside the table did not take it: it may not know rows that came back."""


class LockWithoutMode(HoodieWarning):
    """A writer has a lock provider and the mode of a single writer: it rolls back what other writers have begun."""


class LockNotReleased(HoodieWarning):
    """What was done under a lock stands, but releasing the lock failed: others wait until it expires."""
