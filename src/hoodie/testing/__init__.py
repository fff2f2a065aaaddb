"""What tests need: storage wrappers, a table builder, Hypothesis strategies."""
