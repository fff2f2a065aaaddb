"""Table services, which keep a table small and fast: compaction, cleaning, archiving."""
