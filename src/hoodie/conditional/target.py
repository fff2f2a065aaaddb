"""The table that a merge, an update or a delete by condition goes into, as it is now, and again after a conflict."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie.conditional.shape import TableShape, shape_of
from hoodie.config.datasource import overridden
from hoodie.config.write import WriteOperation, missing_options
from hoodie.errors import FileGone, UnsupportedTable
from hoodie.keygen.arrow_keys import in_units_of
from hoodie.keygen.keygen import KeyGenerator
from hoodie.model.meta import META_COLUMNS
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import writer_keygen
from hoodie.writing.finish import overtaken
from hoodie.writing.result import Phases, WriteResult
from hoodie.writing.run import with_retries
from hoodie.writing.write import Write, check, state_of_write


@dataclass(frozen=True, slots=True)
class MergeTarget:
    """The table as it is now.

    declared  its columns; None: it has none yet
    """

    write: Write
    keygen: KeyGenerator
    declared: pa.Schema | None
    shape: TableShape
    phases: Phases


def run_attempts(storage: Storage, settings: Settings, attempt: Callable[[MergeTarget], WriteResult]) -> WriteResult:
    """Rows that were read before another writer's commit are read again: each attempt is a whole one.

    settings  of a write that says of each row what becomes of it
    Raises  WriteConflict once there were enough of them; UnsupportedTable; as the attempts
    """

    def whole_attempt() -> WriteResult:
        target: MergeTarget | None = None
        try:
            with typed_errors():
                target = _target(storage, settings)
                return attempt(target)
        except FileGone as problem:
            conflict = None if target is None else overtaken(target.write.state, problem)
            if conflict is None:
                raise
            raise conflict from problem

    return with_retries(settings, whole_attempt)


def _target(storage: Storage, settings: Settings) -> MergeTarget:
    phases = Phases()
    with phases.time("check"):
        state = state_of_write(storage, settings)
        if not state.config.meta_fields:
            raise UnsupportedTable(
                f"{state.config.name} stores no record keys (hoodie.populate.meta.fields=false): upsert or delete rows "
                "by key instead"
            )
        write = check(state, WriteOperation.UPSERT, None, settings)
        if write.index.is_global and not write.rule.takes_whole_rows:
            raise UnsupportedTable(
                f"{state.config.name}: with a global index and the rule {write.rule.name}, which makes one row of "
                "two, there is no merge; upsert the rows"
            )
        keygen = in_units_of(writer_keygen(state), write.schema)
        scan = None if write.declared is not None else plan_read(state, Read(), settings.reading)
        declared = write.declared
        if scan is not None:  # columns that no commit names may be in a file
            file_schema = pa.schema([field for field in scan.schema if field.name not in META_COLUMNS])
            declared = file_schema if len(file_schema) else None
        shape = shape_of(write, keygen, pa.schema([]) if declared is None else declared)
    return MergeTarget(write, keygen, declared, shape, phases)


def keeping_columns(write: Write) -> Write:
    """The write as one whose rows may lack columns: the values that stored rows have there stay."""
    return replace(write, settings=Settings.read(overridden(write.settings.options, missing_options("keep"))))
