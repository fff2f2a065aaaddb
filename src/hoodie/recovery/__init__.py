"""Going back by call: rollback, savepoints, restore."""
