"""Frozen values: what the words of the format mean."""
