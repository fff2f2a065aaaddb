"""Avro: schemas compiled to nodes that read and write whole columns, rows and single records."""
