"""The timeline: load, query, transition."""
