"""What one task of a write does: the files of a file group, made from its rows."""
