"""(timeline, listing) to file groups and slices: which files a reader sees."""
