"""Everything the parts of one write need to know: the transaction, the rules, what files are there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie.config.table import require_writable
from hoodie.config.write import WriteOperation
from hoodie.formats.avro_schema import to_avro
from hoodie.merge.payloads import KNOWN_PAYLOADS, table_rule
from hoodie.merge.rules import MergeRule
from hoodie.model.instant import Action
from hoodie.model.schema import reconcile, stored_form, with_meta_fields
from hoodie.plan.write import WritePlan
from hoodie.storage.protocol import Storage
from hoodie.table.base_file import WriteSpec
from hoodie.table.foreign_index import refuse_buckets, refuse_groups_of_logs
from hoodie.table.properties_file import update_properties
from hoodie.table.semantics import REPLACING, Replaces, Semantics, Settings, TableKind, kind_of, semantics_of
from hoodie.table.state import TableFiles, TableState, declared_schema, load_state
from hoodie.table.transaction import Transaction, begin, to_work

_METADATA_KEYS = ("hoodie.table.metadata.partitions", "hoodie.table.metadata.partitions.inflight")


@dataclass(frozen=True, slots=True)
class Checked:
    """A write whose batch fits the table; nothing is on disk yet.

    schema  the user's columns after this write
    """

    state: TableState
    operation: WriteOperation
    semantics: Semantics
    settings: Settings
    schema: pa.Schema
    rule: MergeRule
    kind: TableKind

    @property
    def avro_schema(self) -> str:
        return to_avro(self.schema, self.state.config.name)

    def files(self, state: TableState, partitions: Collection[str]) -> TableFiles:
        """What the write sees of partitions of its table.

        Raises UnsupportedTable when keys are to be looked up and a file group holds some where the index does not look
        """
        files = state.files(partitions)
        if self.semantics.locate:
            refuse_groups_of_logs(files, self.settings.write.index)
        return files


@dataclass(frozen=True, slots=True)
class WriteJob:
    """A write that has its instant."""

    checked: Checked
    transaction: Transaction
    spec: WriteSpec

    @property
    def state(self) -> TableState:
        return self.transaction.state

    @property
    def spread_spec(self) -> WriteSpec:
        """For tasks on executors, whose attempts may outlive the write."""
        return replace(self.spec, pending=self.transaction.instant)

    def with_plan(self, plan: WritePlan | None) -> WriteJob:
        """The job once its plan is on the timeline."""
        return WriteJob(self.checked, to_work(self.transaction, plan), self.spec)


def writable_state(storage: Storage, settings: Settings, *, places_keys: bool = True) -> TableState:
    """The table's state, if this library may write it. With `hoodie.metadata.enable=false` a metadata table that others
    left is removed first, as Hudi does: a stale one would hide new files from readers.

    places_keys  whether the write says which file group a key is in; a compaction leaves it where it is
    Raises       UnsupportedTable saying what to do
    """
    state = load_state(storage)
    without = replace(state.config, metadata_partitions=(), metadata_inflight=())
    removing = not settings.write.metadata_table and without != state.config
    require_writable(without if removing else state.config, KNOWN_PAYLOADS)
    if places_keys:
        refuse_buckets(state)
    if removing:  # only now: a table that is refused stays as it is
        update_properties(storage, dict.fromkeys(_METADATA_KEYS, None))
        storage.delete_tree(".hoodie/metadata")
        state = state.reload()
    return state


def check(state: TableState, operation: WriteOperation, columns: pa.Schema | None, settings: Settings) -> Checked:
    """See whether a batch fits the table.

    columns  of the batch; None: it has none of the user's (a delete by keys)
    Raises   SchemaMismatch naming columns and types
    """
    kind = kind_of(state.config.type, settings.write.index.sees_logs)
    semantics = semantics_of(operation, settings.write, kind)
    schema = _schema_after(state, columns)
    rule = table_rule(state.config.properties, to_avro(schema, state.config.name), settings.mergers)
    return Checked(state, operation, semantics, settings, schema, rule, kind)


def _schema_after(state: TableState, columns: pa.Schema | None) -> pa.Schema:
    before = declared_schema(state)
    if columns is None:
        return before if before is not None else pa.schema([])
    if before is None:
        return stored_form(columns)
    config = state.config
    pinned = {*config.record_key, *(name.partition(":")[0] for name in config.partition_by), *config.ordering}
    return reconcile(before, columns, pinned=pinned)


def start(checked: Checked) -> WriteJob:
    """Take the write's instant."""
    return with_transaction(
        checked, begin(checked.state, checked.operation, action_of(checked.operation, checked.kind))
    )


def action_of(operation: WriteOperation, kind: TableKind) -> Action:
    """The action of the operation's instant."""
    return Action.REPLACE_COMMIT if operation in REPLACING else kind.action


def with_transaction(checked: Checked, transaction: Transaction) -> WriteJob:
    """The job of a write whose instant is there already."""
    schema = with_meta_fields(checked.schema)
    spec = WriteSpec(
        storage=checked.state.storage,
        instant=transaction.time,
        schema=schema,
        avro_schema=to_avro(schema, checked.state.config.name),
        sizing=checked.settings.sizing,
        bloom=checked.settings.bloom,
        logs=checked.settings.logs,
    )
    return WriteJob(checked, transaction, spec)


def replaced_groups(job: WriteJob, partitions: Collection[str]) -> dict[str, list[str]]:
    """The file groups that the write takes away: all that its partitions, or the table, had before.

    partitions  partition paths of the batch
    """
    replaces = job.checked.semantics.replaces
    if replaces is Replaces.NOTHING:
        return {}
    slices = job.state.slices(partitions if replaces is Replaces.PARTITIONS else None)
    return {partition: [s.group.file_id for s in part] for partition, part in slices.items()}
