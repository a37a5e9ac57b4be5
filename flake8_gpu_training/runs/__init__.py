"""Runs: facts of several files linked into one training or serving job."""
