"""How a checked batch becomes data files."""
