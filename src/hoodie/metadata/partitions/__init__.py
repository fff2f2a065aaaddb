"""The partitions of the metadata table that writes keep: one module for each, and one line in the list of all."""
