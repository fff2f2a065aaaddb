"""Which version of a row wins."""
