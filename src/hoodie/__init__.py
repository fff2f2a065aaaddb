"""Upsert, delete and pull changes on Parquet tables that Hudi reads, with PySpark or without.

The names below are loaded when they are first used: `import hoodie` loads neither PySpark nor PyArrow nor pandas, and
tables that are opened without a session no PySpark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hoodie.api.datasource_read import read
    from hoodie.api.engine import KeyedRows
    from hoodie.api.merge_builder import MergeBuilder
    from hoodie.api.read_client import HoodieReadClient
    from hoodie.api.rows import Rows
    from hoodie.api.scan import scan
    from hoodie.api.table import HoodieTable, create_table, open_table
    from hoodie.api.write_client import HoodieWriteClient, write
    from hoodie.errors import HoodieError, HoodieWarning
    from hoodie.reading.changes.incremental import read_changes_arrow
    from hoodie.reading.scan import Scan
    from hoodie.reading.snapshot import read_arrow
    from hoodie.sources.register import register, unregister
    from hoodie.sources.view_refresh import refresh_view
    from hoodie.spark.names import register_table, unregister_table
    from hoodie.spark.session import local_session
    from hoodie.spark.ship import ship
    from hoodie.statements.run import sql
    from hoodie.writing.on_commit import on_commit
    from hoodie.writing.result import WriteResult

    __version__ = ""

__all__ = [
    "HoodieError",
    "HoodieReadClient",
    "HoodieTable",
    "HoodieWarning",
    "HoodieWriteClient",
    "KeyedRows",
    "MergeBuilder",
    "Rows",
    "Scan",
    "WriteResult",
    "__version__",
    "create_table",
    "local_session",
    "on_commit",
    "open_table",
    "read",
    "read_arrow",
    "read_changes_arrow",
    "refresh_view",
    "register",
    "register_table",
    "scan",
    "ship",
    "sql",
    "unregister",
    "unregister_table",
    "write",
]

#: Where each public name is defined: "module", or "module:name" where it has another name there.
__homes__ = {
    "HoodieError": "hoodie.errors",
    "HoodieReadClient": "hoodie.api.read_client",
    "HoodieTable": "hoodie.api.table",
    "HoodieWarning": "hoodie.errors",
    "HoodieWriteClient": "hoodie.api.write_client",
    "KeyedRows": "hoodie.api.engine",
    "MergeBuilder": "hoodie.api.merge_builder",
    "Rows": "hoodie.api.rows",
    "Scan": "hoodie.reading.scan",
    "WriteResult": "hoodie.writing.result",
    "create_table": "hoodie.api.table",
    "local_session": "hoodie.spark.session",
    "ship": "hoodie.spark.ship",
    "on_commit": "hoodie.writing.on_commit",
    "open_table": "hoodie.api.table",
    "read": "hoodie.api.datasource_read",
    "read_arrow": "hoodie.reading.snapshot",
    "read_changes_arrow": "hoodie.reading.changes.incremental",
    "refresh_view": "hoodie.sources.view_refresh",
    "register": "hoodie.sources.register",
    "register_table": "hoodie.spark.names",
    "scan": "hoodie.api.scan",
    "sql": "hoodie.statements.run",
    "unregister": "hoodie.sources.register",
    "unregister_table": "hoodie.spark.names",
    "write": "hoodie.api.write_client",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib import metadata

        try:
            found: Any = metadata.version("hoodie")
        except metadata.PackageNotFoundError:  # a source tree that is not installed
            found = "0+unknown"
    elif name in __homes__:
        from importlib import import_module

        module, _, original = __homes__[name].partition(":")
        try:
            found = getattr(import_module(module), original or name)
        except ModuleNotFoundError as missing:
            if missing.name != "pyspark":
                raise
            from hoodie.errors import MissingPackage

            raise MissingPackage("PySpark", "spark", f"hoodie.{name}") from missing
    else:
        raise AttributeError(f"module 'hoodie' has no attribute {name!r}")
    globals()[name] = found  # the next use finds it without coming here
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
