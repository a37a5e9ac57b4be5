"""Checks: one module a category, every code declared once."""
