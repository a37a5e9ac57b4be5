"""Frameworks: how each is recognised, and which of its parameters carries which practice."""
