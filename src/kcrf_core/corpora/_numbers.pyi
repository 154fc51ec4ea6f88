"""Nothing for Python: other compiled modules call it."""
