"""Static checks of GPU training and serving runs: facts, runs, checks, verdicts."""

__version__ = "0.1.0"
