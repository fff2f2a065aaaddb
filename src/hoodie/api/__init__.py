"""The public objects: the table, the clients, and calls that take the options of Hudi jobs."""
