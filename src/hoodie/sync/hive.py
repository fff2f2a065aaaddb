"""The sync of a table to a Hive metastore: its entries are made, or brought up to what the table is now.

Everything is looked at before the first change; what is synced last is the instant that says up to where. So a sync
that dies is done again by the next one, and a second sync changes nothing. Source: docs/format/engines.md 1 to 5.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from hoodie.config.sync import HiveSyncOptions, MetaSyncOptions
from hoodie.errors import SyncRefused, clause
from hoodie.keygen.keygen import FieldKind, stored_key_generator
from hoodie.schema.schema import with_meta_fields
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage, join
from hoodie.sync.columns import changed_columns
from hoodie.sync.entry import KNOWN_INPUTS, SyncedEntry, check_name, desired_entry, entry_names
from hoodie.sync.hive_formats import PLAIN_MARK, plain_entries
from hoodie.sync.manifest import uri_base, write_manifests
from hoodie.sync.metastore import (
    ColumnsRefused,
    Metastore,
    connect,
    field_schemas,
    new_partition,
    new_table,
    struct_columns,
    texts_of,
)
from hoodie.sync.partition_changes import SyncedUpTo, TouchedPartitions, newest_sync, touched_since
from hoodie.sync.partitions import (
    PartitionEvents,
    Values,
    extractor_name,
    partition_events,
    partition_name,
    values_of,
    without_scheme,
)
from hoodie.table.settings import Settings
from hoodie.table.state import KEEPS_SCHEMA, TableState, declared_schema, load_state

LAST_SYNC = "last_commit_time_sync"
LAST_COMPLETION = "last_commit_completion_time_sync"

_GROW = (
    "It keeps the columns it has; partitions and properties are up to date. Where structs may get fields it needs "
    "hive.metastore.disallow.incompatible.col.type.changes=false in its hive-site.xml; or drop the entry there (its "
    "data stays, the table being external), and sync again"
)
_TABLE_KINDS = ("EXTERNAL_TABLE", "MANAGED_TABLE")


@dataclass(frozen=True, slots=True)
class EntrySync:
    """What was done to one entry.

    name     database.table
    created  it was made
    altered  its columns, properties or formats were changed
    added, moved, dropped  partitions
    whole    all partitions were compared, not only those of new commits
    refused  why the metastore keeps the columns that it has; "": it has those of the table
    """

    name: str
    created: bool = False
    altered: bool = False
    added: int = 0
    moved: int = 0
    dropped: int = 0
    whole: bool = False
    refused: str = ""

    @property
    def changed(self) -> bool:
        return self.created or self.altered or bool(self.added or self.moved or self.dropped)

    def __str__(self) -> str:
        what = "created" if self.created else "altered" if self.altered else ""
        counts = {"added": self.added, "moved": self.moved, "dropped": self.dropped}
        parts = [what, *(f"{number} partitions {verb}" for verb, number in counts.items() if number)]
        return f"{self.name}: {', '.join(filter(None, parts)) or 'no change'}"


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What a sync did.

    metastore  the address that answered
    instant    the commit that the entries are up to
    entries    in the order in which they were written
    calls      requests to the metastore, by name
    """

    metastore: str
    instant: str
    entries: tuple[EntrySync, ...] = ()
    calls: Mapping[str, int] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """Whether anything but the synced instant was changed."""
        return any(entry.changed for entry in self.entries)

    def __str__(self) -> str:
        lines = [f"synced {self.instant or 'an empty table'} to {self.metastore}, {sum(self.calls.values())} requests"]
        return "\n".join([*lines, *(f"  {entry}" for entry in self.entries)])


@dataclass(frozen=True, slots=True)
class _Job:
    """One sync: the table, its settings as the metastore is to have them, and the connection."""

    metastore: Metastore
    state: TableState
    hive: HiveSyncOptions
    meta: MetaSyncOptions
    base: str
    fields: tuple[str, ...]
    extractor: str
    decode: bool
    now: SyncedUpTo
    looked: dict[tuple[SyncedUpTo, bool], TouchedPartitions] = field(default_factory=dict)

    def touched(self, last: SyncedUpTo, *, incremental: bool) -> TouchedPartitions:
        """As `touched_since`; entries that were synced together share the look."""
        key = (last, incremental)
        if key not in self.looked:
            self.looked[key] = touched_since(self.state, last, incremental=incremental)
        return self.looked[key]

    def location(self, partition: str) -> str:
        return join(self.base, partition)

    def values(self, partitions: Collection[str]) -> dict[Values, str]:
        """Values -> partition path."""
        paths: dict[Values, str] = {}
        for partition in sorted(partitions):
            values = values_of(partition, self.extractor, self.fields, decode=self.decode)
            if values in paths:
                raise SyncRefused(
                    f"partition {partition!r}",
                    f"it has the values {', '.join(values)}, as {paths[values]!r} has: a metastore keeps one of them. "
                    "Set another hoodie.datasource.hive_sync.partition_extractor_class",
                )
            paths[values] = partition
        return paths


@typed_errors()
def sync_table(storage: Storage, settings: Settings, *, whole: bool = False, spark_version: str = "") -> SyncResult:
    """Register a table in a Hive metastore, or bring its entries up to date.

    settings       of `hoodie.datasource.hive_sync.*`, `hoodie.datasource.meta.sync.*`, `hoodie.meta.sync.*`
    whole          compare all partitions, not only those of commits since the last sync
    spark_version  recorded with a new entry, for Spark; "": not said
    Raises  InvalidOption; TableNotFound; MetastoreUnavailable when it does not answer: what was done by then stays, the
            next sync goes on; SyncRefused when an entry of that name is of another table, or the columns, partitions or
            names are none that Hive can hold: nothing has changed; and when the metastore keeps an entry's old columns:
            all else is up to date
    """
    hive, meta = settings.hive_sync, settings.meta_sync
    state = load_state(storage)
    database = hive.database or state.config.database or "default"
    table = hive.table or state.config.name
    check_name(database, "database")
    check_name(table, "table")
    keygen = stored_key_generator(state.config.properties)
    fields = hive.partition_fields or tuple(part.name for part in keygen.partition_fields)
    formatted = {part.name for part in keygen.partition_fields if part.kind is FieldKind.TIMESTAMP}
    extractor = extractor_name(hive.extractor, fields, hive_style=keygen.hive_style)
    if extractor == "NonPartitionedExtractor":
        fields = ()
    schema = _schema(state, formatted.intersection(fields))
    base = uri_base(storage, settings)
    comments = _comments(state) if hive.comments else {}
    version = meta.spark_version or spark_version
    names = entry_names(table, merge_on_read=state.config.merge_on_read, hive=hive, meta=meta)
    entries = [desired_entry(name, database.lower(), base, schema, fields, comments, hive, version) for name in names]
    if settings.manifests.view:
        entries += plain_entries(table.lower(), database.lower(), base, schema, fields, comments, hive)
        write_manifests(storage, settings)
    entries = [replace(entry, name=entry.name.lower()) for entry in entries]
    decode = meta.decode.strip().lower() == "true" if meta.decode.strip() else keygen.url_encode
    with connect(hive.uris, hive.timeout) as metastore:
        job = _Job(metastore, state, hive, meta, base, fields, extractor, decode, newest_sync(state))
        plans = [_plan(job, entry, whole=whole) for entry in entries]
        if not metastore.database_exists(database):
            _make_database(metastore, database, hive)
        synced = tuple(_carry_out(job, plan) for plan in plans)
        for entry in synced:
            if entry.refused:
                raise SyncRefused(entry.name, f"{clause(entry.refused)}. {_GROW}")
        return SyncResult(metastore.address, job.now.instant, synced, dict(metastore.calls))


def _schema(state: TableState, as_text: Collection[str]) -> pa.Schema:
    """The columns of the table as entries are to have them.

    as_text  partition columns whose paths have a formatted time instead of the column's value
    """
    schema = declared_schema(state)
    if schema is None:
        raise SyncRefused(state.config.name, "the table has no columns yet: sync after its first commit")
    for name in set(as_text).intersection(schema.names):
        schema = schema.set(schema.get_field_index(name), pa.field(name, pa.string()))
    return with_meta_fields(schema) if state.config.meta_fields else schema


def _comments(state: TableState) -> dict[str, str]:
    """`doc` of the top-level columns, by name in lower case: of the newest commit whose schema has any, and of the
    schema that the table was created with. Commits of this library have none."""
    texts = (commit.schema for commit in state.commits() if commit.schema and commit.operation not in KEEPS_SCHEMA)
    of_commits = next(filter(None, map(_docs, texts)), {})
    return {**_docs(state.config.create_schema), **of_commits}


def _docs(schema: str) -> dict[str, str]:
    """schema  Avro's JSON; "": none"""
    fields = json.loads(schema)["fields"] if schema else []
    return {column["name"].lower(): column["doc"] for column in fields if column.get("doc")}


def _make_database(metastore: Metastore, database: str, hive: HiveSyncOptions) -> None:
    if not hive.create_database:
        raise SyncRefused(
            f"database {database}",
            f"{metastore.address} has none of that name. Create it, name another one with "
            "hoodie.datasource.hive_sync.database, or set hoodie.datasource.hive_sync.auto_create_database=true",
        )
    metastore.create_database(database)


# --- looking ---


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done to an entry.

    existing  the metastore's; None: to be made
    differs   its columns, properties or formats are to be changed
    cascade   and its partitions' columns with them
    behind    another sync has been here for a newer commit: nothing is to be done
    """

    entry: SyncedEntry
    existing: Any | None
    differs: bool
    cascade: bool
    events: PartitionEvents
    whole: bool
    behind: bool = False


def _plan(job: _Job, entry: SyncedEntry, *, whole: bool) -> _Plan:
    existing = job.metastore.table(entry.database, entry.name)
    last = SyncedUpTo()
    columns_differ = differs = False
    if existing is not None:
        _require_same_table(existing, entry)
        parameters = existing.parameters or {}
        last = SyncedUpTo(parameters.get(LAST_SYNC, ""), parameters.get(LAST_COMPLETION, ""))
        columns_differ = changed_columns(struct_columns(existing.sd.cols), entry.columns, entry.full_name)
        differs = columns_differ or _differs(existing, entry)
        if last.instant > job.now.instant:
            commits = job.state.reload().timeline.commits
            if any(commit.requested == last.instant for commit in commits):
                return _Plan(entry, existing, False, False, PartitionEvents({}, {}), False, behind=True)
    if not entry.keys:
        return _Plan(entry, existing, differs, False, PartitionEvents({}, {}), False)
    incremental = job.meta.incremental and not whole and existing is not None
    touched = job.touched(last, incremental=incremental)
    present_values = job.values(touched.present)
    dropped = [values for values, _ in _deleted_values(job, touched.deleted)]
    registered = _registered(job, entry, existing, None if touched.whole else [*present_values, *dropped])
    events = partition_events(present_values, registered, whole=touched.whole, dropped=dropped, location=job.location)
    return _Plan(entry, existing, differs, columns_differ, events, touched.whole)


def _deleted_values(job: _Job, deleted: Collection[str]) -> list[tuple[Values, str]]:
    """Deleted partitions that can be in the metastore: a path that does not fit the extractor never got there."""
    fitting = []
    for partition in sorted(deleted):
        try:
            fitting.append((values_of(partition, job.extractor, job.fields, decode=job.decode), partition))
        except SyncRefused:
            continue
    return fitting


def _registered(
    job: _Job, entry: SyncedEntry, existing: Any | None, partition_values: Collection[Values] | None
) -> dict[Values, str]:
    """Values -> location of the entry's partitions: of those with `partition_values`; None: of all."""
    if existing is None:
        return {}
    if partition_values is None:
        names = job.metastore.partition_names(entry.database, entry.name)
    else:
        names = [partition_name(job.fields, values) for values in partition_values]
    partitions = job.metastore.partitions(entry.database, entry.name, names, job.hive.batch)
    return {tuple(partition.values): partition.sd.location for partition in partitions}


def _require_same_table(existing: Any, entry: SyncedEntry) -> None:
    """Raises SyncRefused unless the metastore's entry is of this table, and of a kind that a sync may change."""
    advice = (
        "Sync to another name (hoodie.datasource.hive_sync.table, .database), or drop the entry there if it is not "
        "needed, and sync again"
    )
    marked = (existing.parameters or {}).get(PLAIN_MARK, "")
    if marked != entry.plain:
        what = f"the {marked} of another table's view" if marked else f"an entry of the kind {existing.tableType}"
        raise SyncRefused(entry.full_name, f"the metastore has {what} of that name. {advice}")
    if entry.query:
        return
    if existing.tableType not in _TABLE_KINDS:
        raise SyncRefused(entry.full_name, f"the metastore has a {existing.tableType} of that name. {advice}")
    if without_scheme(existing.sd.location or "") != without_scheme(entry.location):
        problem = f"the metastore has a table of that name at {existing.sd.location}, and this one is at"
        raise SyncRefused(entry.full_name, f"{problem} {entry.location}. {advice}")
    if existing.sd.inputFormat not in KNOWN_INPUTS and not entry.plain:
        raise SyncRefused(
            entry.full_name,
            f"the metastore has a table of that name that is no entry of Hudi: it reads by {existing.sd.inputFormat}. "
            f"{advice}",
        )
    have = [name.lower() for name in struct_columns(existing.partitionKeys)]
    want = [name.lower() for name in entry.keys]
    if have != want:
        raise SyncRefused(
            entry.full_name,
            f"its partition columns in the metastore are ({', '.join(have)}), those of the table ({', '.join(want)}), "
            f"and Hive cannot change them. {advice}",
        )


def _differs(existing: Any, entry: SyncedEntry) -> bool:
    """Whether the metastore's entry lacks something, but for its columns."""
    parameters, serde = existing.parameters or {}, existing.sd.serdeInfo.parameters or {}
    # Spark's version is that of the session that made the entry.
    properties = {key: value for key, value in entry.properties.items() if key != "spark.sql.create.version"}
    return (
        not properties.items() <= parameters.items()
        or not entry.serde.items() <= serde.items()
        or existing.sd.inputFormat != entry.input_format
        or (existing.viewExpandedText or "") != entry.query
        or any((column.comment or "") != entry.comments.get(column.name.lower(), "") for column in existing.sd.cols)
    )


# --- doing ---


def _carry_out(job: _Job, plan: _Plan) -> EntrySync:
    if plan.behind:
        return EntrySync(plan.entry.full_name)
    metastore, entry, events, batch = job.metastore, plan.entry, plan.events, job.hive.batch
    created = plan.existing is None and metastore.create_table(new_table(entry))
    if plan.existing is None and not created:  # another sync has just made it
        return _carry_out(job, _plan(job, entry, whole=True))
    existing = metastore.table(entry.database, entry.name) if created else plan.existing
    refused = ""
    if plan.differs and events:
        existing, refused = _alter(job, plan, existing, recorded=None)
        plan = replace(plan, differs=plan.differs and not refused)
    named = (entry.database, entry.name)
    if events.add:
        parts = [new_partition(entry, values, job.location(path)) for values, path in events.add.items()]
        metastore.add_partitions(*named, parts, batch)
    if events.alter:
        names = [partition_name(job.fields, values) for values in events.alter]
        moved = metastore.partitions(*named, names, batch)
        for partition in moved:
            partition.sd.location = job.location(events.alter[tuple(partition.values)])
        metastore.alter_partitions(*named, moved, batch)
    if events.drop:
        metastore.drop_partitions(*named, [partition_name(job.fields, values) for values in events.drop], batch)
    entry_sync = EntrySync(
        entry.full_name, created, plan.differs, len(events.add), len(events.alter), len(events.drop), plan.whole
    )
    if entry_sync.changed or not (job.meta.conditional or (entry.plain and not entry.keys)):
        _, last = _alter(job, plan, existing, recorded=job.now)
        refused = refused or last
    return replace(entry_sync, refused=refused)


def _alter(job: _Job, plan: _Plan, table: Any, recorded: SyncedUpTo | None) -> tuple[Any, str]:
    """Give the metastore's entry what it lacks, and the synced instant; nothing when it has all of that. The entry, and
    why it keeps its columns, "" where it has those of the table.

    table     the entry as it was read
    recorded  None: the instant is recorded later
    """
    entry = plan.entry
    before = texts_of(table)
    parameters = {**(table.parameters or {}), **entry.properties}
    if recorded is not None and recorded.instant:
        parameters |= {LAST_SYNC: recorded.instant, LAST_COMPLETION: recorded.completion}
    # A shorter schema has fewer parts: those of the old one would be read with it.
    stale = [key for key in parameters if _is_schema_part(key) and key not in entry.properties]
    table.parameters = {key: value for key, value in parameters.items() if key not in stale}
    table.sd.serdeInfo.parameters = {**(table.sd.serdeInfo.parameters or {}), **entry.serde}
    table.sd.inputFormat, table.sd.outputFormat = entry.input_format, entry.output_format
    table.sd.serdeInfo.serializationLib = entry.serde_class
    if entry.query:
        table.viewOriginalText = table.viewExpandedText = entry.query
    columns = table.sd.cols
    if plan.differs:
        table.sd.cols = field_schemas(entry.columns, entry.comments)
    if texts_of(table) == before:
        return table, ""
    try:
        job.metastore.alter_table(table, cascade=plan.cascade and plan.differs)
    except ColumnsRefused as refusal:
        table.sd.cols = columns
        if texts_of(table) != before:
            job.metastore.alter_table(table, cascade=False)
        return table, refusal.problem
    return table, ""


def _is_schema_part(key: str) -> bool:
    return key.startswith(("spark.sql.sources.schema.part.", "spark.sql.sources.schema.partCol."))
