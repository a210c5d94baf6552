"""c_api."""
