"""What a table is: its settings and its timeline, without a look at its data files."""

import json
from dataclasses import dataclass
from itertools import islice
from typing import Any

from hoodie.config.table import BOOTSTRAP, TableConfig, require_readable, require_writable
from hoodie.errors import UnsupportedTable
from hoodie.facts.instants import InstantLine, line_of
from hoodie.facts.look import look
from hoodie.keygen.time_units import partition_names
from hoodie.model.instant import Action
from hoodie.model.meta import META_COLUMNS
from hoodie.storage.protocol import Storage
from hoodie.timeline.load import read_commit
from hoodie.timeline.timeline import Timeline

#: Payload classes that every table may have; others are looked up.
_COMMON = frozenset(
    f"org.apache.hudi.common.model.{name}" for name in ("OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload")
)
#: Commits that are looked at, at most, for one that has the table's columns.
_LOOKED_AT = 10
#: Operations that do not say what the table's columns are.
_SERVICES = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})


@dataclass(frozen=True, slots=True)
class Column:
    """A column, with its Avro type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Summary:
    """A table.

    columns     the user's, as the newest commit declares them; none of a table without commits
    commits     completed commits on the active timeline, `first` and `last` the oldest and newest of them
    pending     instants that are requested or inflight, oldest first
    savepoints  instants
    last_clean  instant of the newest completed clean; ""
    metadata    partitions of the metadata table that readers trust
    cannot_read, cannot_write  why Hoodie does not; "": it does
    """

    name: str
    database: str
    type: str
    version: int
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering: tuple[str, ...]
    payload: str
    columns: tuple[Column, ...]
    commits: int
    first: str
    last: InstantLine | None
    pending: tuple[InstantLine, ...]
    savepoints: tuple[str, ...]
    last_clean: str
    metadata: tuple[str, ...]
    cannot_read: str
    cannot_write: str


def summarize(storage: Storage) -> Summary:
    """Look at a table: its properties, one listing of its timeline, and its newest commits."""
    config, timeline = look(storage)
    commits = timeline.commits
    cleans = timeline.completed({Action.CLEAN})
    return Summary(
        name=config.name,
        database=config.database,
        type=config.type.value,
        version=config.version,
        record_key=config.record_key,
        partition_by=partition_names(config.partition_by, config.properties),
        ordering=config.ordering,
        payload=config.payload_class or config.merge_mode,
        columns=declared_columns(storage, config, timeline),
        commits=len(commits),
        first=commits[0].requested if commits else "",
        last=line_of(storage, timeline, commits[-1]) if commits else None,
        pending=tuple(line_of(storage, timeline, instant) for instant in timeline.pending(Action)),
        savepoints=tuple(instant.requested for instant in timeline.completed({Action.SAVEPOINT})),
        last_clean=cleans[-1].requested if cleans else "",
        metadata=config.metadata_partitions,
        cannot_read=_refusal(storage, config, writing=False),
        cannot_write=_refusal(storage, config, writing=True),
    )


def _refusal(storage: Storage, config: TableConfig, *, writing: bool) -> str:
    """Why Hoodie does not read or write the table; ""."""
    try:
        require_readable(config)
        if BOOTSTRAP in config.properties:
            from hoodie.view.load import require_rows  # here: other tables are looked at without pyarrow

            require_rows(storage, config)
        if writing:
            payloads = _COMMON
            if config.payload_class and config.payload_class not in payloads:
                from hoodie.merge.payloads import KNOWN_PAYLOADS  # here: it needs pyarrow

                payloads = frozenset(KNOWN_PAYLOADS)
            require_writable(config, payloads)
    except UnsupportedTable as refused:
        return " ".join(str(refused).split())
    return ""


def declared_columns(storage: Storage, config: TableConfig, timeline: Timeline) -> tuple[Column, ...]:
    """The user's columns, as the newest commit declares them; none of a table without commits."""
    for instant in islice(reversed(timeline.commits), _LOOKED_AT):
        metadata = read_commit(storage, timeline, instant)
        if metadata.schema and metadata.operation not in _SERVICES:
            return _of_avro(metadata.schema)
    return _of_avro(config.create_schema) if config.create_schema else ()


def _of_avro(schema: str) -> tuple[Column, ...]:
    """The columns of an Avro record; none of text that is not one, which a read refuses."""
    try:
        fields = json.loads(schema)["fields"]
        columns = tuple(Column(str(field["name"]), _type(field["type"])) for field in fields)
    except (ValueError, KeyError, TypeError):
        return ()
    return tuple(column for column in columns if column.name not in META_COLUMNS)


def _type(declared: Any) -> str:
    """The name of an Avro type: of a union with null that of the other, a logical type before its form."""
    if isinstance(declared, list):
        others = [part for part in declared if part != "null"]
        return _type(others[0]) if len(others) == 1 else "union"
    if isinstance(declared, dict):
        if declared.get("type") == "array":
            return f"array<{_type(declared.get('items'))}>"
        if declared.get("type") == "map":
            return f"map<{_type(declared.get('values'))}>"
        return str(declared.get("logicalType") or _type(declared.get("type")))
    return str(declared)
