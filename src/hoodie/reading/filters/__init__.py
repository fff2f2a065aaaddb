"""What a filter means, and which partitions, row groups and rows can pass it."""
