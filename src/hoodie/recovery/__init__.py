"""Undoing completed commits on request: rollback, savepoints, restore."""
