"""Reads of a table: which files they take, and how these become rows."""
