"""Hudi's procedures, which CALL runs: what each takes and gives, and the function that does it."""
