"""A batch on its way to its tasks: rows of any source in Arrow, with keys, held in memory or staged."""
