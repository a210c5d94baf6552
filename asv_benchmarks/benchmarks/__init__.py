"""What asv measures; `patterns.py` holds the data.  NotImplementedError in a setup tells asv to skip a case."""
