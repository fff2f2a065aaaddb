"""Key and partition columns that `hoodie.properties` names and the table does not have.

Writers refuse batches without such a column, or take keys of another one; Hudi does not read a table that lacks a
partition column.
"""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from hoodie.doctor.findings import Fault, Finding, Severity
from hoodie.errors import InvalidOption
from hoodie.keygen.keygen import lacking_columns, stored_key_generator
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.table.properties import PROPERTIES
from hoodie.table.state import TableState, declared_schema


def lost_key_columns(state: TableState) -> Iterator[Finding]:
    """One finding for the record key, one for the partition path; none while nothing says which columns there are."""
    schema = declared_schema(state)
    if schema is None:
        return
    try:
        keygen = stored_key_generator(state.config.properties)
    except InvalidOption:  # of a key generator that this library lacks nothing is known
        return
    problems = lacking_columns(schema.names, partial(_has, pa.struct(list(schema))), keygen)
    # Without stored keys logs are merged by the key columns.
    merged_by_columns = state.config.merge_on_read and not state.config.meta_fields
    for role, setting, stored, severity in (
        ("record key", "hoodie.table.recordkey.fields", RECORD_KEY, merged_by_columns),
        ("partition", "hoodie.table.partition.fields", PARTITION_PATH, True),
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


def _has(columns: pa.DataType, path: str) -> bool:
    """Whether there is such a column, in whichever case: Spark does not tell cases apart."""
    name, _, rest = path.partition(".")
    kinds = [
        columns.field(at).type for at in range(columns.num_fields) if columns.field(at).name.lower() == name.lower()
    ]
    return any(not rest or (pa.types.is_struct(kind) and _has(kind, rest)) for kind in kinds)
