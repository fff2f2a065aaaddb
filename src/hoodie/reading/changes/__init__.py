"""What changed between two instants: planned, and read from base files, logs and change logs."""
