"""A write as a value: the table at one moment, its index and rules, its columns, and its instant once it has begun."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from hoodie.commit.clustering_check import keep_clear
from hoodie.commit.transaction import Transaction, begin, given_up_on_error, to_work
from hoodie.config.table import require_unicode, require_writable
from hoodie.config.write import COMBINE, DROP, POLICY, IndexType, MissingColumns, WriteOperation
from hoodie.errors import InvalidOption, UnsupportedTable, WriteConflict
from hoodie.formats.avro.schema import to_avro
from hoodie.index.contract import ByKey, Index, IndexContext
from hoodie.keygen.keygen import KeyGenerator
from hoodie.lookup.context import LookupContext, refuse_unknown
from hoodie.lookup.index_choice import choose_index
from hoodie.lookup.index_follow import notify_rolled_back
from hoodie.lookup.record_index import with_record_index
from hoodie.merge.payloads import KNOWN_PAYLOADS, by_ordering, table_rule
from hoodie.merge.rules import MergeRule, greater_or_equal, keeping
from hoodie.metadata.keeping.drop import drop_metadata, drop_others, not_kept
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action
from hoodie.model.meta import RECORD_KEY
from hoodie.plan.write import TaskKind, WritePlan
from hoodie.reading.row_keys import read_keys
from hoodie.reading.slices.reader import slice_reader
from hoodie.schema.schema import (
    NO_DIFFERENCE,
    ColumnDifference,
    column_difference,
    reconcile,
    refusal,
    stored_form,
    warn_of_columns,
    with_meta_fields,
)
from hoodie.storage.protocol import Storage
from hoodie.table.create import with_write_options
from hoodie.table.replacement import WAITING, settle
from hoodie.table.settings import MapItems, Settings
from hoodie.table.state import TableFiles, TableState, columns_by_id, declared_schema, load_state
from hoodie.view.published import read_ahead
from hoodie.writing.batch.duplicates import KEY
from hoodie.writing.index_updates import WriteRecorder
from hoodie.writing.operations import (
    APPENDING,
    REPLACING,
    Combine,
    LateRows,
    OperationRules,
    Replaces,
    TableKind,
    blocking,
    kind_of,
    require_logs,
    rules_of,
)
from hoodie.writing.relocation import RelocationRule
from hoodie.writing.tasks.base_file import WriteSpec
from hoodie.writing.tasks.stored_rows import StoredRows

_log = logging.getLogger("hoodie.write")


@dataclass(frozen=True, slots=True, kw_only=True)
class Write(LookupContext):
    """A write whose batch fits the table: nothing is on disk before it has a transaction.

    state        of the table when the batch was compared with it; once begun, when the instant was taken
    schema       the user's columns after this write; avro_schema: the same as Avro JSON
    declared     the user's columns as the table has them; None: it has none yet
    difference   how the columns of the batch differ from these
    by_id        what the commit carries on of columns that Hudi altered: `columns_by_id`
    columns      of the batch; None: it has none of the user's (a delete by keys)
    keygen       makes the keys of its rows; None: they are not made of columns
    only_new     each row gets a key of its own, as the table has no key columns and the rows bring no keys
    made_of_rows its rows were made of those that the table had
    emptied      paths of partitions that an overwrite of partitions takes away, be rows of it in them or not
    transaction  None: not begun
    """

    operation: WriteOperation
    operation_rules: OperationRules
    declared: pa.Schema | None
    columns: pa.Schema | None
    avro_schema: str
    rule: MergeRule
    kind: TableKind
    difference: ColumnDifference = NO_DIFFERENCE
    by_id: Mapping[str, str] = field(default_factory=dict)
    keygen: KeyGenerator | None = None
    only_new: bool = False
    made_of_rows: bool = False
    emptied: frozenset[str] = frozenset()
    transaction: Transaction | None = None

    @property
    def storage(self) -> Storage:
        return self.state.storage

    @property
    def begun(self) -> Transaction:
        """The transaction of a write that has begun."""
        assert self.transaction is not None
        return self.transaction

    @property
    def key(self) -> tuple[str, ...]:
        """What makes a key: rows that have it in common are versions of one."""
        return (RECORD_KEY,) if self.index.is_global else KEY

    @property
    def updates_by_stored_keys(self) -> bool:
        """Whether the table has no key columns, and rows say by the keys that reads gave them which rows they are."""
        return self.keygen is not None and self.keygen.makes_new_keys and not self.only_new

    @property
    def keeps_statuses(self) -> bool:
        """Whether rows take along what is known of their keys."""
        counts = self.index.sees_logs and not self.names_new and self.operation_rules.kinds.insert is TaskKind.APPEND
        needed = self.index.is_global or self.index.record_writes is not None or counts
        return self.operation_rules.locate and needed

    @property
    def locates_staged(self) -> bool:
        """Whether the keys of staged rows are looked up a base file at a time; else each row has to be tagged."""
        return self.operation_rules.locate and self.by_file and not self.keeps_statuses

    @property
    def unseeing(self) -> bool:
        """Whether its rows are the same whatever other writers add to the table meanwhile."""
        rules = self.operation_rules
        reads = rules.new_keys or rules.late_rows is not LateRows.AS_READ or bool(self.rule.keeps)
        return self.operation in APPENDING and not reads and not self.made_of_rows

    @property
    def keeps_positions(self) -> bool:
        """Whether rows take along where they are in the base file of their group, for the logs beside it."""
        rules = self.operation_rules
        appends = rules.locate and rules.kinds.update is TaskKind.APPEND
        return appends and not self.index.is_global and self.settings.logs.record_positions

    @property
    def relocation_rule(self) -> RelocationRule:
        partitions = self.state.config.partition_columns
        return RelocationRule(self.schema, self.rule, partitions, self.index.moves, self.operation_rules.delete)

    def files_of(self, partitions: Collection[str]) -> TableFiles:
        """What the write sees of the partitions of its batch. Raises as `files` if it looks keys up."""
        if self.operation_rules.replaces is not Replaces.NOTHING:
            return TableFiles()  # rows go to new file groups, whatever is there
        return self.files(partitions) if self.operation_rules.locate else self.state.files(partitions)

    def files_of_hits(self, files: TableFiles, hits: Collection[FileGroupId]) -> TableFiles:
        """What the write sees, the partitions included in which an index by key has keys of the batch.

        Raises CorruptIndex when the index names file groups that are not there, and not for new keys
        """
        if self.operation_rules.replaces is Replaces.NOTHING:
            files = self.with_partitions(files, {group.partition for group in hits})
        if not self.names_new:
            refuse_unknown(self.index, hits, files.groups)
        return files

    @property
    def recorder(self) -> WriteRecorder | None:
        """How tasks tell the index what they did; None: it asks for nothing."""
        if self.index.record_writes is None:
            return None
        return WriteRecorder(self.index.record_writes, self.storage, self.begun.time, self.rule, self.operation_rules)

    def spec(self, *, lingering: bool = False) -> WriteSpec:
        """What tasks need. lingering: their attempts may outlive the write, as on executors"""
        schema = with_meta_fields(self.schema)
        return WriteSpec(
            storage=self.storage,
            instant=self.begun.time,
            schema=schema,
            avro_schema=to_avro(schema, self.state.config.name, local_times=self.state.layout.version.local_times),
            sizing=self.settings.sizing,
            bloom=self.settings.bloom,
            logs=self.settings.logs,
            cdc=self.state.config.logged_images if self.state.config.cdc else None,
            stored=self._stored_rows(schema),
            new_keys=not self.state.config.record_key,
            pending=self.begun.instant if lingering else None,
            layout=self.state.layout,
        )

    def _stored_rows(self, schema: pa.Schema) -> StoredRows | None:
        """How tasks that append to logs see the rows that are there; None: they need not."""
        rules = self.operation_rules
        appends = rules.match and TaskKind.APPEND in (rules.kinds.update, rules.kinds.fill)
        if not appends or not (rules.key_columns or rules.late_rows is not LateRows.AS_READ or self.rule.keeps):
            return None
        return StoredRows(self.state, slice_reader(self.state, schema, settings=self.settings.reading))

    def with_plan(self, plan: WritePlan | None) -> Write:
        """The write once its plan is on the timeline. Raises as `keep_clear`."""
        if plan is not None:
            self.keep_clear({task.group for task in plan.tasks})
        return replace(self, transaction=to_work(self.begun, plan))

    def keep_clear(self, groups: Collection[FileGroupId]) -> None:
        """See that no pending clustering is to replace these file groups. Raises WriteConflict"""
        if groups and self.begun.state.timeline.pending_replaces:
            keep_clear(self.begun, groups, withdraw=self.settings.write.withdraw_clusterings)


def state_of_write(storage: Storage, settings: Settings, new: TableState | None = None) -> TableState:
    """The table's state for a write of rows: with what its options add to the table's properties.

    new     the state of a table that is to replace the one that is there
    Raises  as `writable_state` and `with_write_options`
    """
    state = new or writable_state(storage, settings)
    return with_write_options(state, settings.options) if settings.describes_table else state


def writable_state(
    storage: Storage,
    settings: Settings,
    *,
    places_keys: bool = True,
    refuse: Callable[[TableState], object] | None = None,
) -> TableState:
    """The table's state, if this library may write it. With `hoodie.metadata.enable=false` its metadata table is
    removed first, as Hudi does; and of that of a later version all but the file lists.

    places_keys  whether the write says which file group a key is in; a compaction leaves it where it is
    refuse       raises where the call is refused: called before something is removed, as a refused call changes nothing
    Raises       UnsupportedTable saying what to do; CorruptFile where the timeline is lost
    """
    state = load_state(storage)
    # An overwrite died after its commit.
    if WAITING in state.config.properties and settle(storage, state.config):
        state = state.reload()
    require_writable(state.config, KNOWN_PAYLOADS)
    if not state.timeline.instants:
        state.view()  # which refuses a table whose timeline is lost
    if places_keys:
        refuse_column_types(state)
    drops = state.config.has_metadata_table and not settings.metadata.enable
    others = () if drops or not state.layout.version.defines_indexes else not_kept(storage, state.config)
    if not (drops or others):
        return state
    if places_keys:
        choose_index(state, settings)  # a table that is refused stays as it is
    if refuse is not None:
        refuse(state)
    if drops:
        drop_metadata(storage)
    else:  # before the write begins, as its end would be a conflict with other writers
        drop_others(storage, state.config, others)
    return state.reload()


#: Logical types of Avro that only Hudi 1.2 and later has: files of such columns have more to say than is written here.
_ONLY_READ = ("vector", "blob", "variant")


def refuse_column_types(state: TableState) -> None:
    """Raises UnsupportedTable when the table has columns of types that are read, and not written."""
    schema = next((commit.schema for commit in state.recent_commits() if commit.schema), "")
    for word in _ONLY_READ:
        if re.search(rf'"logicalType"\s*:\s*"{word}"', schema):
            raise UnsupportedTable(
                f"{state.config.name} has columns of Hudi's type {word.upper()}, which are read here and not written. "
                "Write the table with Hudi. Nothing was written."
            )


def check(
    state: TableState,
    operation: WriteOperation,
    columns: pa.Schema | None,
    settings: Settings,
    *,
    only_new: bool = False,
) -> Write:
    """See whether a batch fits the table.

    columns  of the batch; None: it has none of the user's (a delete by keys)
    only_new the table has no key columns, and the rows bring no keys: each gets one of its own
    Raises   SchemaMismatch naming columns and types; InvalidInput as `keeping`; as `choose_index`
    """
    if state.storage.remote and operation is not WriteOperation.BULK_INSERT and operation not in REPLACING:
        read_ahead(state.storage, state.timeline)  # all are read then: to see which published files are missing
    require_unicode("the table's path", state.storage.root)
    chosen = choose_index(state, settings if operation in APPENDING else blocking(settings))
    index = chosen.index
    require_logs(state, index, settings)
    if operation in REPLACING and not index.replaceable:
        raise UnsupportedTable(
            f"{state.config.name}: {operation} replaces file groups, and the index {index.name} of this table would "
            "write the next rows to the same ones, where readers would not see them. Delete the rows by key"
        )
    kind = kind_of(state.config.type, index.sees_logs)
    by_key = isinstance(index.look_up, ByKey) and index.look_up.every_write
    if not state.config.record_key:
        _refuse_for_new_keys(state, settings, index, placed_by_key=by_key)
    refuse_dropping(operation, settings)
    operation_rules = rules_of(operation, settings.write, kind, placed_by_key=by_key, only_new=only_new)
    if len(state.config.record_key) > 1:
        operation_rules = replace(operation_rules, key_columns=state.config.record_key)
    declared = declared_schema(state)
    schema, difference, stored_columns = declared, NO_DIFFERENCE, tuple[str, ...]()
    if declared is None:
        schema = pa.schema([]) if columns is None else stored_form(columns)
    elif columns is not None and not columns.equals(declared):
        difference, policy = column_difference(declared, columns), settings.missing.policy
        refused = refusal(difference, policy, operation, keeps=operation is WriteOperation.UPSERT)
        stored_columns = difference.missing if refused or policy is MissingColumns.KEEP else ()
        pinned = state.config.pinned_columns
        schema = reconcile(declared, columns, pinned=pinned, optional=stored_columns, refusal=refused)
    by_id = columns_by_id(state)
    if by_id:
        _require_columns_kept(state, declared, schema)
    local_times = state.layout.version.local_times
    if schema != declared:
        warn_of_columns(state.config.name, declared, schema, local_times=local_times)
    avro_schema = to_avro(schema, state.config.name, local_times=local_times)
    rule = table_rule(state.config.properties, avro_schema, settings.mergers)
    if stored_columns:
        rule = keeping(rule, stored_columns)
    return Write(
        state, settings, index, chosen.why, schema,
        operation=operation, operation_rules=operation_rules, declared=declared, columns=columns,
        avro_schema=avro_schema, rule=rule, kind=kind, difference=difference, by_id=by_id, only_new=only_new,
    )  # fmt: skip


def refuse_dropping(operation: WriteOperation, settings: Settings) -> None:
    """Raises InvalidOption where rows are to be left out, and nobody has done it."""
    if settings.drops_existing(operation):
        key = DROP if settings.dropping.duplicates else POLICY
        raise InvalidOption(
            f"{key}={settings.options.get(key)}: this call leaves out no rows; write with hoodie.hudi.write, "
            "table.insert or table.upsert, or filter the rows with HoodieReadClient.filter_exists"
        )


def _refuse_for_new_keys(state: TableState, settings: Settings, index: Index, *, placed_by_key: bool) -> None:
    """Raises InvalidOption and UnsupportedTable where a table without key columns is to do what needs keys of its rows;
    Hudi refuses these, too."""
    name = state.config.name
    key_options = {
        COMBINE: settings.write.combine_before_insert,
        DROP: settings.dropping.duplicates,
    }
    for key, value in key_options.items():
        if value:
            raise InvalidOption(
                f"{key}=true: {name} has no record key (hoodie.table.recordkey.fields): no two rows have one key. "
                "Leave the option out, drop duplicates before the write, or make a table with a record key"
            )
    if placed_by_key:
        raise UnsupportedTable(
            f"{name} has no record key, and the index {index.name} needs its columns: leave hoodie.index.type unset"
        )


def as_merge(write: Write, keeps: Collection[str] = ()) -> Write:
    """The write as one whose rows a MERGE made: two for one key are an error, and one with a lesser ordering value than
    the stored row's leaves that as it is, though the table's rule is to take what comes last.

    keeps  columns in which stored values stay, be they among those of the rows
    """
    plain = write.rule
    if plain.keeps:  # by the rule as it is without these
        plain = table_rule(write.state.config.properties, write.avro_schema, write.settings.mergers)
    rule = by_ordering(plain)
    late_rows = LateRows.AS_READ if rule is plain else LateRows.LOSE
    needs_ordering = not write.operation_rules.delete and rule.combine_with is greater_or_equal
    rules = replace(write.operation_rules, combine=Combine.UNIQUE, needs_ordering=needs_ordering, late_rows=late_rows)
    stored_columns = write.rule.keeps or tuple(name for name in write.schema.names if name in keeps)
    return replace(write, rule=keeping(rule, stored_columns), operation_rules=rules, made_of_rows=True)


def as_update(write: Write) -> Write:
    """The write as one of rows that an UPDATE made: where the table's rule is to take what comes last, they
    win against rows in logs, too."""
    takes_last = by_ordering(write.rule) is not write.rule
    late_rows = LateRows.WIN if takes_last else LateRows.AS_READ
    rules = replace(write.operation_rules, combine=Combine.STORED, late_rows=late_rows)
    return replace(write, operation_rules=rules, made_of_rows=True)


def _require_columns_kept(state: TableState, before: pa.Schema | None, after: pa.Schema) -> None:
    """Raises UnsupportedTable where a write changes columns that Hudi reads by their ids: it gives none to new ones."""
    if before is None or before == after:
        return
    changed = [field.name for field in after if field.name not in before.names or before.field(field.name) != field]
    raise UnsupportedTable(
        f"{state.config.name}: columns of this table were altered by Hudi (hoodie.schema.on.read.enable), which reads "
        f"them by their ids. Writes here keep the columns as they are; this one would change {', '.join(changed)}. "
        "Nothing was written: leave new columns out and cast the others, or let Hudi ALTER the table first"
    )


def start(write: Write, run: MapItems | None = None) -> Write:
    """The write with its instant.

    run     builds partitions of the metadata table that options ask for, if the table is large; None: this process
    Raises WriteConflict, LockTimeout as `begin`
    """
    write.settings.writers.warn_of_half()
    action = action_of(write.operation, write.kind)
    settings = write.settings
    executors = settings.executors(run)
    transaction = begin(
        write.state, write.operation, action, writers=settings.writers, read_keys=read_keys, executors=executors
    )
    with given_up_on_error(transaction):
        prepare_index_for(write.index, write.state, transaction)
        _require_checked(write, transaction)
        begun = with_transaction(write, transaction)
    config = begun.state.config
    _log.info("%s: %s begins at %s (%s)", config.name, write.operation, transaction.time, config.type)
    return begun


def prepare_index_for(index: Index, before: TableState, transaction: Transaction) -> None:
    """Tell an index outside the table what was rolled back, and let it catch up before any key is looked up. Raises as
    `Index.catch_up`

    before  the table as the write saw it first
    """
    if index.rolled_back is not None:
        notify_rolled_back(index, before.timeline, transaction.state.timeline)
    if index.catch_up is not None:
        now = transaction.state
        index.catch_up(before.timeline, IndexContext(now.storage, now.config, now.timeline))


def _require_checked(write: Write, transaction: Transaction) -> None:
    """The table that the batch was checked against is the one that it is written into: commits may have come between.

    Raises WriteConflict when these changed the table's columns, or were archived or rolled back meanwhile
    """
    if write.state.timeline.commits == transaction.state.timeline.commits:
        return
    now = transaction.state
    try:
        columns, by_id = declared_schema(now), columns_by_id(now)
    except FileNotFoundError as error:
        raise WriteConflict(f"a commit went away just now ({error}); write the batch again") from error
    as_first = write.declared is None and columns == write.schema  # another first writer brought the same columns
    if (columns == write.declared or as_first) and write.by_id == by_id:
        return
    raise WriteConflict("the table's columns were changed just now by another writer; write the batch again")


def action_of(operation: WriteOperation, kind: TableKind) -> Action:
    """The action of the operation's instant."""
    return Action.REPLACE_COMMIT if operation in REPLACING else kind.action


def with_transaction(write: Write, transaction: Transaction) -> Write:
    """The write with an instant that is there already; the options that complete the table's settings stay."""
    index = write.index
    if index.name == IndexType.RECORD_INDEX:
        index = with_record_index(index, transaction.state)
    state = replace(write.state, timeline=transaction.state.timeline)
    return replace(write, state=state, index=index, transaction=transaction)


def replaced_groups(write: Write, partitions: Collection[str]) -> dict[str, list[str]]:
    """The file groups that the write takes away: all that its partitions, those that it empties, or the table, had
    before.

    partitions  partition paths of the batch
    """
    replaces = write.operation_rules.replaces
    if replaces is Replaces.NOTHING:
        return {}
    chosen = write.emptied.union(partitions) if replaces is Replaces.PARTITIONS else None
    return write.begun.state.groups(chosen)
