"""Compaction, which merges logs into base files: planned, claimed, run, published, repaired."""
