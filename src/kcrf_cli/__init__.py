"""The command line: each command parses, calls the core, and renders."""
