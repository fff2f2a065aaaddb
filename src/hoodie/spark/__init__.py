"""DataFrames in and out; the only package that imports pyspark."""
