"""Rows of tables without Spark, and the forms that people take them in."""
