"""What other engines are given of a table: manifests of its newest base files, and its entries in a metastore."""
