"""The asv benchmarks; `patterns.py` generates their data.  NotImplementedError in a setup makes asv skip the case."""
