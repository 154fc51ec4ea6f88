"""The command line: each command parses, calls the core, and renders."""

import os
import signal
import sys

_IS_PROGRAM = os.path.basename((sys.argv or [""])[0]).removesuffix(".exe") in ("kcrf", "-m")

# Ctrl-C while modules are still being loaded ends the program without a traceback; then it is the command's (see
# `main`). Where the caller has it ignored, it stays so.
if _IS_PROGRAM and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
