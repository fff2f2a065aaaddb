"""What runs after a commit, and what other engines get of a table: manifests of its base files, metastore entries."""
