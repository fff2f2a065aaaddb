"""Writes into a table that is there, of which options may ask to leave out the rows whose key it has."""

from __future__ import annotations

from typing import Any

from hoodie.api.engine import Engine
from hoodie.api.inputs import arrow_stream, is_spark_frame
from hoodie.config.datasource import TableOptions
from hoodie.config.locks import ConcurrencyOptions
from hoodie.config.options import Options, declared
from hoodie.config.table import EMPTY_PAYLOAD, payload_name
from hoodie.config.write import WriteOperation
from hoodie.errors import InvalidOption, WriteConflict
from hoodie.storage.protocol import Storage
from hoodie.table.state import load_state
from hoodie.writing.batch.duplicates import drops_existing, for_new_keys, once_dropped, without_dropping
from hoodie.writing.result import WriteResult
from hoodie.writing.run import run

_PAYLOADS = next(spec for found, spec in declared(TableOptions) if found.name == "payload").keys


def write_rows(
    engine: Engine[Any], storage: Storage, operation: WriteOperation, rows: Any, options: Options
) -> WriteResult:
    """Check a batch and write it; of rows that are to be left out by their keys the others. Raises as `run`

    The keys are looked up before the write, which is made on the table as it was then, or again from the look-up on.
    """
    operation, options = meant(operation, options)
    if not drops_existing(operation, options):
        return run(engine.check(storage, operation, rows, options))
    if not load_state(storage).config.record_key:
        return run(engine.check(storage, operation, rows, for_new_keys(options)))
    rows = at_hand(rows)
    for left in range(options.read(ConcurrencyOptions).conflict_retries, -1, -1):
        state = load_state(storage)
        new, chosen = new_rows(engine, storage, operation, rows, options)
        try:
            return run(engine.check(storage, operation, new, chosen), made_of=state)
        except WriteConflict:
            if not left:
                raise
    raise AssertionError  # the last attempt returns or raises


def meant(operation: WriteOperation, options: Options) -> tuple[WriteOperation, Options]:
    """What a write does whose options name EmptyHoodieRecordPayload, which is no rule of a table but says that its rows
    are to be deleted; others as they are. Raises InvalidOption on an operation that deletes no rows by their keys"""
    named = {key: payload_name(options[key]) for key in _PAYLOADS if key in options}
    if EMPTY_PAYLOAD not in named.values():
        return operation, options
    if operation not in (WriteOperation.UPSERT, WriteOperation.DELETE):
        key = next(iter(named))
        raise InvalidOption(f"{key}={options[key]} deletes rows by their keys: take the operation upsert or delete")
    return WriteOperation.DELETE, Options({key: value for key, value in options.items() if key not in named})


def new_rows(
    engine: Engine[Any], storage: Storage, operation: WriteOperation, rows: Any, options: Options
) -> tuple[Any, Options]:
    """The rows whose keys the table does not have, and the options to write them with, if that is asked for; else both
    as they are."""
    if not drops_existing(operation, options):
        return rows, options
    found = engine.keys(storage, without_dropping(options)).filter_exists(rows)
    return (found if is_spark_frame(found) else found.to_arrow()), once_dropped(options)


def at_hand(rows: Any) -> Any:
    """Rows that can be looked at twice."""
    return rows if is_spark_frame(rows) else arrow_stream(rows).read_all()
