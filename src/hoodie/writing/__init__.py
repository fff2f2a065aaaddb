"""One write, from a checked batch to its commit: planned, run, published, explained."""
