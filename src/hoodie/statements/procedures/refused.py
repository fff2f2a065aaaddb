"""Procedures of Hudi that this library has nothing to do for: each says why, and what to do instead."""

from __future__ import annotations

from collections.abc import Callable

from hoodie.statements.procedures.procedure import Called, Rows


def because(reason: str) -> Callable[[Called], Rows]:
    """A procedure that is refused, whatever its arguments."""

    def refuse(called: Called) -> Rows:
        raise called.problem(reason)

    return refuse


no_clustering = because(
    "this library plans and runs no clustering: bulk_insert with hoodie.bulkinsert.sort.mode writes rows sorted, "
    "and CALL show_clustering shows the plans of other writers"
)
no_bootstrap = because(
    "this library makes no table on top of Parquet files that stay where they are: CALL hdfs_parquet_import, or a "
    "bulk_insert of them, copies their rows into a table"
)
no_bootstrap_index = because("the table has no bootstrap index: its rows are all in its own files")
no_hive_server = because(
    "this library asks no HiveServer2: compare the counts of the two tables, and CALL hive_sync brings the entry up to "
    "date from a metastore"
)
