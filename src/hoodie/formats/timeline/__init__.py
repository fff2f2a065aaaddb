"""What the files of the timeline hold: commits, plans, results of table services, the archive."""
