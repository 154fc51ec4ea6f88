"""Files, progress and logs of commands."""
