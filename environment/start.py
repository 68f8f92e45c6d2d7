"""Runs the module of a command; Ctrl-C while it is still importing ends with exit code 130, without a traceback.

usage: start.py MODULE [ARGUMENT...]
"""

import runpy
import sys

EX_INTERRUPTED = 128 + 2  # SIGINT, as contract/command.py ends a command that is at work

if __name__ == "__main__":
    try:
        runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
    except KeyboardInterrupt:
        sys.exit(EX_INTERRUPTED)
