"""Commands: `hoodie <command> ...`, or `python -m hoodie.cli` where the script is not installed."""
