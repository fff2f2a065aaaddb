"""Log files: their blocks, and the rows and deleted keys that blocks hold."""
