"""Commands called in the process of the test: what they print and their exit codes, in milliseconds."""

import sys
from collections.abc import Callable

import pytest

from contract.command import run


def call(main: Callable, name: str, *arguments: object) -> int:
    """The exit code of a command; standard output and error go where pytest captures them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *map(str, arguments)])
        patch.setattr(sys, "stdout", sys.stdout)  # which run() may replace
        patch.setattr(sys, "stderr", sys.stderr)
        with pytest.raises(SystemExit) as ended:
            run(main, name)
    return ended.value.code or 0
