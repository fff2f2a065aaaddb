"""ALTER TABLE of columns: a commit without files that declares others.

Changes that files of before show as they are (columns at the end, wider numbers, comments) are declared alone. For the
others the columns get ids, by which Hudi reads older files with `hoodie.schema.on.read.enable`; a table that has such
ids keeps them.
Source: docs/format/commit-metadata.md (`latest_schema`); tests/fixtures/schema_on_read.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from hoodie.commit.transaction import Transaction, begin, given_up_on_error, publish
from hoodie.config.write import WriteOperation
from hoodie.errors import SchemaMismatch, UnsupportedTable, WriteConflict
from hoodie.formats.avro.schema import to_avro
from hoodie.formats.timeline.internal_schema import LATEST_SCHEMA, SCHEMA_COMMIT, SCHEMA_FOLDER, encode_history
from hoodie.model.commit import CommitMetadata, Operation, inflight_profile
from hoodie.reading.row_keys import read_keys
from hoodie.schema.by_id import Change, Node, changed, columns_of_version, first_version, needs_ids
from hoodie.schema.schema import with_meta_fields
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.altered_columns import history_path
from hoodie.table.settings import MapItems, Settings
from hoodie.table.state import TableState, columns_by_id, declared_schema
from hoodie.timeline.transition import inflight_content, to_inflight
from hoodie.writing.operations import kind_of
from hoodie.writing.write import writable_state

_log = logging.getLogger("hoodie.services")

ON_READ = "hoodie.schema.on.read.enable"


@typed_errors()
def alter_columns(
    storage: Storage, changes: Sequence[Change], settings: Settings, *, on_read: bool, run: MapItems | None = None
) -> str | None:
    """Change the columns of a table; the instant of the commit, None where the columns are so already.

    on_read  readers are expected to know columns by their ids: see `needs_ids`
    run      builds partitions of the metadata table that options ask for, if the table is large; None: this process
    Raises   SchemaMismatch on a change that cannot be; UnsupportedTable on one that asks for `on_read`, or a table that
             cannot be written; WriteConflict when another writer changes the columns at the same time. Nothing has
             changed then
    """
    state = writable_state(storage, settings)
    columns = declared_schema(state)
    if columns is None:
        raise SchemaMismatch(f"{state.config.name} has no columns yet: its first write brings them")
    after, version, latest = _columns_after(state, columns, changes, on_read=on_read)
    if after.equals(columns, check_metadata=True):
        return None
    action = kind_of(state.config.type, inserts_to_logs=False).action
    executors = settings.executors(run)
    transaction = begin(
        state, WriteOperation.UPSERT, action, writers=settings.writers, read_keys=read_keys, executors=executors
    )
    with given_up_on_error(transaction):
        now = transaction.state
        content = inflight_content(inflight_profile(Operation.ALTER_SCHEMA, ()), now.layout)
        transaction = replace(
            transaction, instant=to_inflight(storage, transaction.instant, content, layout=now.layout)
        )
        if not columns.equals(declared_schema(now), check_metadata=True) or columns_by_id(now) != columns_by_id(state):
            raise WriteConflict(f"{state.config.name}: another writer changed the columns just now; alter them again")
        written = with_meta_fields(after) if version else after
        extra = {"schema": to_avro(written, state.config.name, local_times=state.layout.version.local_times)}
        if version is not None:
            numbered = {**version, "version_id": int(transaction.time)}
            extra[LATEST_SCHEMA] = json.dumps(numbered, separators=(",", ":"))
            _keep(transaction, numbered, latest)
        publish(transaction, CommitMetadata(operation=Operation.ALTER_SCHEMA, extra=extra))
    _log.info("%s: columns altered at %s", state.config.name, transaction.time)
    return transaction.time


def _columns_after(
    state: TableState, columns: pa.Schema, changes: Sequence[Change], *, on_read: bool
) -> tuple[pa.Schema, Node | None, Node]:
    """The columns after the changes; their version, None where they have no ids; and the version before."""
    config = state.config
    last = config.partition_columns
    pinned = config.pinned_columns
    text = columns_by_id(state).get(LATEST_SCHEMA)
    by_ids = bool(text)
    version: Node = json.loads(text) if text else first_version(columns, strict=False)
    after, asks = columns, False
    for change in changes:
        asks = asks or needs_ids(change, after)
        before, version = version, changed(version, change, pinned, last)
        after = columns_of_version(version, before, after)
    if not asks and not by_ids:
        return after, None, {}
    if not by_ids and not on_read:
        raise UnsupportedTable(
            f"{config.name}: files of before this change are read right only by readers that know columns by their "
            f"ids: {ON_READ}=true says that all of the table's are. SET it first, as for Hudi. Reads by this library "
            "know them always; so does Hudi with this option. Columns at the end, wider numbers (int to bigint) and "
            "comments go without"
        )
    if by_ids:
        return after, version, json.loads(str(text))
    first = version = first_version(columns)
    after = columns
    for change in changes:
        before, version = version, changed(version, change, pinned, last)
        after = columns_of_version(version, before, after)
    return after, version, first


def _keep(transaction: Transaction, version: Node, latest: Node) -> None:
    """Write the history of the columns, the newest version first."""
    storage, config, timeline = transaction.state.storage, transaction.state.config, transaction.state.timeline
    older = [latest]
    if latest["version_id"]:
        older = json.loads(storage.read(history_path(storage, config, timeline, latest["version_id"])))["schemas"]
    path = f"{SCHEMA_FOLDER}/{transaction.time}{SCHEMA_COMMIT}"
    for suffix in (".requested", ".inflight"):
        storage.write(path + suffix, b"")
    storage.write(path, encode_history([version, *older]))
