"""SQL expressions with Spark's meaning, evaluated on Arrow rows: no Spark, and nothing of a table but its columns."""
