"""SQL on tables of ours: statements are recognised and split, Spark evaluates every expression in them."""
