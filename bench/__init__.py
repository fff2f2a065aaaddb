"""Upserts measured against rewriting the table with plain Spark: `make bench`."""
