"""DataFrames in and out, and the public calls about a Spark session, which are loaded when they are first used."""

from typing import TYPE_CHECKING, Any

from hoodie.errors import MissingPackage

try:
    import pyspark  # noqa: F401
except ModuleNotFoundError as _missing:
    raise MissingPackage("PySpark", "spark", "what a Spark session does") from _missing

if TYPE_CHECKING:
    from hoodie.sources.register import unregister
    from hoodie.sources.view_refresh import refresh_view
    from hoodie.spark.names import register_table, unregister_table
    from hoodie.spark.session import local_session
    from hoodie.spark.workers import ship
    from hoodie.statements.run import sql

__all__ = ["local_session", "refresh_view", "register_table", "ship", "sql", "unregister", "unregister_table"]

#: Where each public name is defined.
__homes__ = {
    "local_session": "hoodie.spark.session",
    "refresh_view": "hoodie.sources.view_refresh",
    "register_table": "hoodie.spark.names",
    "ship": "hoodie.spark.workers",
    "sql": "hoodie.statements.run",
    "unregister": "hoodie.sources.register",
    "unregister_table": "hoodie.spark.names",
}


def __getattr__(name: str) -> Any:
    if name not in __homes__:
        raise AttributeError(f"module 'hoodie.spark' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(__homes__[name]), name)
    globals()[name] = value  # the next use finds it without coming here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
