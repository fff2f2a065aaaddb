"""One file slice becomes rows: its base file, its logs, and both merged."""
