"""Keys of DataFrames tagged with the file groups that hold them."""
