"""Doing a plan and making it visible."""
