"""`python -m kcrf_cli` is `kcrf`."""

from .main import main

main(prog_name="kcrf")
