"""Typed options: each declared once, read from strings once."""
