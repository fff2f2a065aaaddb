"""DataFrames in and out; the only package that imports pyspark."""

from hoodie.errors import MissingPackage

try:
    import pyspark  # noqa: F401
except ModuleNotFoundError as _missing:
    raise MissingPackage("PySpark", "spark", "what a Spark session does") from _missing
