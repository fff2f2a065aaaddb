"""Hudi's metadata table, the table of files, statistics and keys in `.hoodie/metadata`: what it says, and how far that
may be believed.

Nothing outside knows its files. Source: docs/format/metadata-table.md.
"""
