"""Hoodie beside Delta Lake, Iceberg, Hudi and plain Spark 3.5, each in a Spark session of its own process."""
