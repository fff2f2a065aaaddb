"""Base files: their columns, and the footer with key range and bloom filter."""
