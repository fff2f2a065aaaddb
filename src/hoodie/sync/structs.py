"""Entries and partitions as the structs of the metastore's interface."""

from __future__ import annotations

import time
from typing import Any

from hoodie.sync.entry import SyncedEntry
from hoodie.sync.metastore import field_schemas, interface, user
from hoodie.sync.partitions import Values


def new_table(entry: SyncedEntry) -> Any:
    kind = "VIRTUAL_VIEW" if entry.query else "MANAGED_TABLE" if entry.managed else "EXTERNAL_TABLE"
    return interface().Table(
        tableName=entry.name,
        dbName=entry.database,
        owner=user(),
        createTime=int(time.time()),
        lastAccessTime=0,
        retention=0,
        sd=_storage(entry, entry.location or None),
        partitionKeys=field_schemas(entry.keys, {}),
        parameters=dict(entry.properties),
        viewOriginalText=entry.query or None,
        viewExpandedText=entry.query or None,
        tableType=kind,
    )


def new_partition(entry: SyncedEntry, values: Values, location: str) -> Any:
    return interface().Partition(
        values=list(values),
        dbName=entry.database,
        tableName=entry.name,
        createTime=int(time.time()),
        lastAccessTime=0,
        sd=_storage(entry, location),
        parameters={},
    )


def _storage(entry: SyncedEntry, location: str | None) -> Any:
    hive = interface()
    return hive.StorageDescriptor(
        cols=field_schemas(entry.columns, entry.comments),
        location=location,
        inputFormat=entry.input_format,
        outputFormat=entry.output_format,
        compressed=False,
        numBuckets=0,
        serdeInfo=hive.SerDeInfo(serializationLib=entry.serde_class, parameters=dict(entry.serde)),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def texts_of(table: Any) -> tuple[object, ...]:
    """What of a metastore's entry a sync changes, to compare."""
    columns = tuple((column.name, column.type, column.comment or "") for column in table.sd.cols)
    formats = (table.sd.inputFormat, table.sd.outputFormat, table.sd.serdeInfo.serializationLib)
    parameters = dict(table.parameters or {}), dict(table.sd.serdeInfo.parameters or {})
    return columns, formats, parameters, table.viewExpandedText or ""
