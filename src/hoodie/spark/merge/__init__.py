"""Merges, updates and deletes by condition: what they ask for becomes one batch, and one write."""
