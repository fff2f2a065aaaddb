"""The timeline: loaded, queried, changed and archived."""
