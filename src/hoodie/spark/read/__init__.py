"""File slices as DataFrames."""
