"""How record keys and partition paths are made from a row's columns."""
