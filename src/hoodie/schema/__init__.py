"""The columns of a table: their types, how the schema grows, and rows brought into it."""
