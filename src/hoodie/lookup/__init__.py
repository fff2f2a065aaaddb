"""The keys of a batch, looked up in the files of a table by the rules of its index."""
