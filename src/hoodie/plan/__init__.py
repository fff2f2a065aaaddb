"""Decisions of writes and table services: values in, values out."""
