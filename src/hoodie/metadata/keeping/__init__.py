"""How a metadata table is built, kept up with each action on its table, compacted, cleaned and removed."""
