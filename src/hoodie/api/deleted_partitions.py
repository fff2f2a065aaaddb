"""The partitions that a job of delete_partition removes: those that an option names, or that its rows are in."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.api.inputs import arrow_stream, column_names, is_spark_frame
from hoodie.errors import InvalidInput, PartitionsNotThere
from hoodie.expressions.text import tick
from hoodie.keygen.arrow_keys import in_units_of, partition_path
from hoodie.keygen.keygen import refuse_lacking
from hoodie.reading.table_schema import read_schema
from hoodie.table.state import TableState, table_keygen

_OPTION = "hoodie.datasource.write.partitions.to.delete"


def deleted_partitions(named: Sequence[str], rows: Any, state: TableState) -> list[str]:
    """The partition paths of the table that go, each once, sorted. What is not there is told of, as the job passes in
    Hudi.

    named    partition paths, in which `*` stands for any text; none: those of the rows
    rows     of the job, whose partitions they are; None: it has none
    Raises   InvalidInput without either, of the rows of a table without partitions, and where a row has no path;
             SchemaMismatch naming columns that the rows lack
    Source   Hudi's HoodieSparkSqlWriter
    """
    paths = named or _partitions_of_rows(rows, state)
    patterns = {path for path in named if "*" in path}
    existing_groups = state.groups(None if patterns else paths)
    chosen: set[str] = set()
    missing: list[str] = []
    for path in paths:
        matches = {path} & existing_groups.keys()
        if path in patterns and not matches:
            fits = re.compile(".*".join(map(re.escape, path.split("*"))), re.DOTALL).fullmatch
            matches = set(filter(fits, existing_groups))
        chosen |= matches
        if not matches:
            missing.append(path)
    if missing or not chosen:
        warnings.warn(PartitionsNotThere(state.config.name, tuple(missing)), stacklevel=2)
    return sorted(chosen)


def _partitions_of_rows(rows: Any, state: TableState) -> list[str]:
    """The partition paths of the rows, each once, sorted.

    rows     a DataFrame of Spark's, or what `arrow_stream` takes; only their partition columns are kept
    Raises   as `deleted_partitions`
    """
    keygen = in_units_of(table_keygen(state), read_schema(state))
    columns = list(dict.fromkeys(field.name.partition(".")[0] for field in keygen.partition_fields))
    if rows is None or not columns:
        raise InvalidInput(f"no partition is named: set {_OPTION} to paths such as 2024-01-31,2024-02-01")
    names = column_names(rows)
    unkeyed = replace(keygen, record_keys=())
    refuse_lacking(names, lambda name: name.partition(".")[0] in names, unkeyed, (), state.config.name)
    if is_spark_frame(rows):
        table = rows.select(*map(tick, columns)).distinct().toArrow()
    else:
        reader = arrow_stream(rows)
        partition_schema = pa.schema([reader.schema.field(name) for name in columns])
        table = pa.Table.from_batches((batch.select(columns) for batch in reader), partition_schema)
    paths = partition_path(table, keygen)
    if paths.null_count:
        raise InvalidInput(f"{paths.null_count} rows have no partition path: their time cannot be read. Set {_OPTION}")
    return sorted(pc.unique(paths).to_pylist())
