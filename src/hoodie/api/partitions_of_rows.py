"""Which partitions rows are in: what delete_partition removes where no option names partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow.compute as pc

from hoodie.api.inputs import arrow_stream, column_names, is_spark_frame
from hoodie.errors import InvalidInput
from hoodie.expressions.text import tick
from hoodie.keygen.arrow_keys import partition_path
from hoodie.keygen.keygen import refuse_lacking
from hoodie.reading.table_schema import read_schema
from hoodie.table.state import TableState, in_units_of, table_keygen
from hoodie.view.slices import FileSystemView


def partitions_of_rows(rows: Any, state: TableState) -> list[str]:
    """The partition paths of the rows, each once, sorted.

    rows     a DataFrame of Spark's, or what `arrow_stream` takes; only their partition columns are read
    Raises   InvalidInput without rows, of a table without partitions, and where a row has no path; SchemaMismatch
             naming columns that are missing
    Source   Hudi's HoodieSparkSqlWriter
    """
    option = "hoodie.datasource.write.partitions.to.delete"
    keygen = in_units_of(table_keygen(state), read_schema(state, FileSystemView(state.timeline)))
    columns = list(dict.fromkeys(field.name.partition(".")[0] for field in keygen.partition_fields))
    if rows is None or not columns:
        raise InvalidInput(f"no partition is named: set {option} to paths such as 2024-01-31,2024-02-01")
    names = column_names(rows)
    unkeyed = replace(keygen, record_keys=())
    refuse_lacking(names, lambda name: name.partition(".")[0] in names, unkeyed, (), state.config.name)
    if is_spark_frame(rows):
        table = rows.select(*map(tick, columns)).distinct().toArrow()
    else:
        table = arrow_stream(rows).read_all().select(columns)
    paths = partition_path(table, keygen)
    if paths.null_count:
        raise InvalidInput(f"{paths.null_count} rows have no partition path: their time cannot be read. Set {option}")
    if not len(paths):
        raise InvalidInput(
            f"no partition is named: {option} is not set, and there are no rows whose partitions to delete"
        )
    return sorted(pc.unique(paths).to_pylist())
