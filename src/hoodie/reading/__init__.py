"""How file slices become rows."""
