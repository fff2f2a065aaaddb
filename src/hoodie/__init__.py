"""Upsert, delete and pull changes on Parquet tables that Hudi reads, with PySpark or without.

The names below are loaded when they are first used: `import hoodie` loads neither PySpark nor PyArrow nor pandas, and
tables that are opened without a session no PySpark.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hoodie import hudi, spark
    from hoodie.api.arrow.rows import Rows
    from hoodie.api.engine import KeyedRows
    from hoodie.api.merge_builder import MergeBuilder
    from hoodie.api.scan import Scan
    from hoodie.api.table import HoodieTable, create_table, open_table
    from hoodie.errors import HoodieError, HoodieWarning
    from hoodie.sources.register import register
    from hoodie.writing.result import WriteResult, on_commit, on_failure

    __version__ = ""

__all__ = [
    "HoodieError",
    "HoodieTable",
    "HoodieWarning",
    "KeyedRows",
    "MergeBuilder",
    "Rows",
    "Scan",
    "WriteResult",
    "__version__",
    "create_table",
    "hudi",
    "on_commit",
    "on_failure",
    "open_table",
    "register",
    "spark",
]

#: Where each public name is defined.
__homes__ = {
    "HoodieError": "hoodie.errors",
    "HoodieTable": "hoodie.api.table",
    "HoodieWarning": "hoodie.errors",
    "KeyedRows": "hoodie.api.engine",
    "MergeBuilder": "hoodie.api.merge_builder",
    "Rows": "hoodie.api.arrow.rows",
    "Scan": "hoodie.api.scan",
    "WriteResult": "hoodie.writing.result",
    "create_table": "hoodie.api.table",
    "hudi": "hoodie",
    "on_commit": "hoodie.writing.result",
    "on_failure": "hoodie.writing.result",
    "open_table": "hoodie.api.table",
    "register": "hoodie.sources.register",
    "spark": "hoodie",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__version__":
        from importlib import metadata

        try:
            value: Any = metadata.version("hoodie")
        except metadata.PackageNotFoundError:  # a source tree that is not installed
            value = "0+unknown"
    elif name in __homes__:
        module = __homes__[name]
        if module == __name__:  # one of the two modules for those who come with Spark, or from Hudi
            return import_module(f"hoodie.{name}")
        try:
            value = getattr(import_module(module), name)
        except ModuleNotFoundError as missing:
            if missing.name != "pyspark":
                raise
            from hoodie.errors import MissingPackage

            raise MissingPackage("PySpark", "spark", f"hoodie.{name}") from missing
    else:
        raise AttributeError(f"module 'hoodie' has no attribute {name!r}")
    globals()[name] = value  # the next use finds it without coming here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
