"""Checks the invariants of a table, and repairs violations."""
