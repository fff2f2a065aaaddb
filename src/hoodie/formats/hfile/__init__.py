"""HFile, version 3: the files of cells, sorted by row, that the metadata table's base files and log blocks are."""
