"""Merges, updates and deletes by condition: what they may ask for, and their rows where this process makes them."""
