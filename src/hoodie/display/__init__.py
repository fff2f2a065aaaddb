"""How results look in a console and in a notebook: short text, and HTML tables."""
