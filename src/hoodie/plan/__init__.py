"""Decisions: what a write should do. Values in, values out."""
