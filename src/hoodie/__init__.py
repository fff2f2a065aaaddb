"""Upsert, delete and pull changes on Parquet tables that Hudi reads, from PySpark."""

from hoodie.errors import HoodieError
from hoodie.spark.clients import HoodieWriteClient, write
from hoodie.spark.reader import HoodieReadClient, KeyedRows
from hoodie.spark.reader import read_path as read
from hoodie.spark.session import local_session
from hoodie.spark.table import HoodieTable, create_table, open_table
from hoodie.table.incremental import read_changes_arrow
from hoodie.table.read import read_arrow
from hoodie.table.result import WriteResult

__all__ = [
    "HoodieError",
    "HoodieReadClient",
    "HoodieTable",
    "HoodieWriteClient",
    "KeyedRows",
    "WriteResult",
    "create_table",
    "local_session",
    "open_table",
    "read",
    "read_arrow",
    "read_changes_arrow",
    "write",
]
