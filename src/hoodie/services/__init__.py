"""Table services, and changes of columns and version: compaction, cleaning, archiving, expiry, savepoints, upgrades."""
