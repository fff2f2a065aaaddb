"""Table services, which keep a table small and quick: compaction, cleaning, archiving."""
