"""What asv measures; `patterns.py` holds the data.  NotImplementedError in a setup is how asv is told to skip a case."""
