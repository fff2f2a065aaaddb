"""Hudi's metadata table, the table of files, statistics and keys in `.hoodie/metadata`: what it says, how far that may
be believed, and how it is kept.

Nothing outside knows its files. Source: docs/format/metadata-table.md.
"""
