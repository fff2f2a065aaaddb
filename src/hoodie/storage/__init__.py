"""The Storage protocol and what implements it."""
