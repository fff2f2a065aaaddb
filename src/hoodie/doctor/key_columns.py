"""Key and partition columns that `hoodie.properties` names and the table does not have, and a lost history of columns.

Writers refuse batches without such a column, or take keys of another one; Hudi does not read a table that lacks a
partition column.
"""

from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa

from hoodie.doctor.findings import Fault, Finding, Mend, Remedy, Severity
from hoodie.errors import CorruptFile, InvalidOption, clause
from hoodie.formats.timeline.internal_schema import LATEST_SCHEMA, SCHEMA_FOLDER, encode_history
from hoodie.keygen.keygen import lacking_columns, stored_key_generator
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.schema.by_id import Node
from hoodie.table.altered_columns import rebuilt_history
from hoodie.table.properties import PROPERTIES
from hoodie.table.state import TableState, columns_by_id, declared_schema

_PARTITION = "hoodie.table.partition.fields"


def _is_key_generator(properties: Mapping[str, str]) -> bool:
    try:
        stored_key_generator(properties)
    except InvalidOption:
        return False
    return True


def lost_key_columns(state: TableState) -> Iterator[Finding]:
    """One finding for the record key, one for the partition path; none while nothing says which columns there are."""
    schema = declared_schema(state)
    if schema is None:
        return
    try:
        keygen = stored_key_generator(state.config.properties)
    except InvalidOption as error:  # of a key generator that this library lacks nothing is known
        with_columns = {**state.config.properties, _PARTITION: schema.names[0]}
        if not state.config.partition_by and _is_key_generator(with_columns):
            advice = f"Put the partition columns into {_PARTITION} of that file, as they were when it was created"
            yield Finding(Severity.WARNING, Fault.COLUMN, PROPERTIES, clause(error), advice)
        return
    problems = lacking_columns(schema.names, partial(_has, pa.struct(list(schema))), keygen)
    # Without stored keys logs are merged by the key columns.
    merged_by_columns = state.config.merge_on_read and not state.config.meta_fields
    for role, setting, stored, severity in (
        ("record key", "hoodie.table.recordkey.fields", RECORD_KEY, merged_by_columns),
        ("partition", _PARTITION, PARTITION_PATH, True),
    ):
        lost = [problem for problem in problems if problem.startswith(f"{role} column")]
        if lost:
            same = f", whose values {stored} holds," if state.config.meta_fields else ""
            yield Finding(
                Severity.ERROR if severity else Severity.WARNING,
                Fault.COLUMN,
                PROPERTIES,
                f"{', '.join(lost)}; the columns are {', '.join(schema.names)}",
                f"Put the columns of the table{same} into {setting} of that file, as they were when it was created",
            )


def damaged_history_of_columns(state: TableState) -> Iterator[Finding]:
    """A lost or damaged newest file of `.hoodie/.schema`, without which files of before an ALTER cannot be read."""
    try:
        declared_schema(state)
    except CorruptFile as damage:
        if not damage.path.startswith(SCHEMA_FOLDER):
            raise
        advice, remedy = "--repair writes it anew, by its other files and the commits", None
        try:
            path, _ = _rebuilt(state)
            remedy = Remedy(Mend.COLUMNS, path)
        except CorruptFile as lacking:
            advice = f"Restore it from a copy of the table: {clause(lacking.problem)}"
        yield Finding(Severity.ERROR, Fault.COLUMNS, damage.path, damage.problem, advice, remedy)


def rewrite_history(state: TableState) -> None:
    """Write the newest file of `.hoodie/.schema` anew. Raises CorruptFile where nothing has one of its versions"""
    path, versions = _rebuilt(state)
    state.storage.write(path, encode_history(versions))


def _rebuilt(state: TableState) -> tuple[str, list[Node]]:
    return rebuilt_history(state.storage, state.config, state.timeline, columns_by_id(state)[LATEST_SCHEMA])


def _has(columns: pa.DataType, path: str) -> bool:
    """Whether there is such a column, in this case: writers, Hudi's as well, take no other for it."""
    name, _, rest = path.partition(".")
    kinds = [columns.field(at).type for at in range(columns.num_fields) if columns.field(at).name == name]
    return any(not rest or (pa.types.is_struct(kind) and _has(kind, rest)) for kind in kinds)
