"""The subcommands, one module each: parse, call the core, render."""
