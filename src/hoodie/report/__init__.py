"""A page about a table: what it holds, what happened to it, and what its services would do."""
