"""Decision trees, one module a framework: what to change next, and where a run stands."""
