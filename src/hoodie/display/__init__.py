"""How results and long calls look in a console and in a notebook: short text, HTML tables, progress."""
