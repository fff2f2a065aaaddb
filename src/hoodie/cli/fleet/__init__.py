"""What is said of many tables at once."""
