"""Upsert, delete and pull changes on Parquet tables that Hudi reads, from PySpark."""
